"""What a joint's name says: side, front or hind limb, which part of the body, and whether it is a control rather than a bone.

Every tool writes names in its own way (`mixamorig:LeftUpLeg`, `Bip01 L Thigh`, `DEF-thigh.L`, `J_Bip_L_UpperLeg`, `lThigh`), but
nearly all are made of the same few words once prefixes, separators, camel case and numbers are taken apart.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

# The same part of a body under the names that tools give it. Words are joined: "upper_arm", "UpperArm" and "upperarm" are one.
PART_WORDS = {
    "thigh": "thigh upperleg upleg legupper femur",
    "shin": "calf shin lowerleg lowleg loleg leglower midleg knee shank tibia",
    "hip": "hip",
    "leg": "leg",
    "ankle": "ankle",
    "foot": "foot feet paw",
    "toe": "toe toes ball",
    "collar": "clavicle collar clav collarbone scapula",
    "shoulder": "shoulder",
    "upperarm": "upperarm uparm armupper shldr humerus",
    "arm": "arm",
    "forearm": "forearm lowerarm lowarm loarm armlower elbow radius ulna",
    "wrist": "wrist",
    "hand": "hand",
    "palm": "palm palmp palmr palmi palmt",
    "finger": "index middle ring pinky thumb finger little",
    "hips": "hips pelvis",
    "spine": "spine abdomen torso waist back lowerback upperback thorax body chest upperchest abdomenlower abdomenupper chestlower chestupper",
    "neck": "neck necklower neckupper lowerneck upperneck",
    "head": "head",
}
_PART = {word: part for part, words in PART_WORDS.items() for word in words.split()}
LIMB_PARTS = frozenset(PART_WORDS) - {"hips", "spine", "neck", "head"}

_SIDE = {"l": "left", "left": "left", "lft": "left", "r": "right", "right": "right", "rgt": "right"}
_END = {"front": "front", "fore": "front", "back": "back", "hind": "back", "rear": "back"}
_CONTROL_WORDS = """
    ik fk mch org ctrl ctl control controller pole target pt goal effector slot handslot socket attach prop weapon nub end leaf tip site top
    twist tweak helper heel phys collider jiggle hair skirt cloth sec adj corrective volume eye jaw ear metacarpal"""
# Words that tools put around every name and that say nothing about the body
_NOISE_WORDS = """
    joint bone jnt jt link skel skeleton base bend stretch def deform c m x b j bn bip biped valve mixamorig character armature rig
    cc main pitch roll yaw"""
_CONTROL, _NOISE = frozenset(_CONTROL_WORDS.split()), frozenset(_NOISE_WORDS.split())
_BODY_WORDS = frozenset(_PART) | frozenset(_SIDE) | frozenset(_END) | {"up", "upper", "low", "lower", "lo", "mid"}
_TOKEN = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


@dataclass(frozen=True, kw_only=True)
class JointName:
    side: str | None  # "left", "right"
    end: str | None  # "front", "back": which pair of legs
    part: str | None  # a key of PART_WORDS
    core: str  # the words that are left, joined
    control: bool  # a handle, a helper or the end of a bone: never a role
    words: frozenset[str]


@lru_cache(maxsize=4096)
def parse(name: str, prefixes: frozenset[str] = frozenset()) -> JointName:
    """A name taken apart. `prefixes` are words that say nothing in this skeleton (see `common_prefixes`)."""
    words = [word for word in _words(name) if not word.isdigit()]
    side, words = _take_side(words)
    known = frozenset(words)
    end = next((_END[word] for word in words if word in _END and not (word == "fore" and "arm" in words)), None)
    core_words = [word for word in words if word not in _NOISE and word not in _CONTROL and word not in prefixes]
    if end and len(core_words) > 1:  # a limb of a quadruped; "Back" alone is a spine bone, "forearm" is no front leg
        qualified = [word for word in core_words if word not in _END]
        if qualified and _PART.get("".join(qualified)) in LIMB_PARTS:
            core_words = qualified
        else:
            end = None
    else:
        end = None
    core = "".join(core_words)
    control = bool(known & _CONTROL) and "neck" not in known  # 'NeckTwist01' is the only neck that its tool makes
    return JointName(side=side, end=end, part=_PART.get(core), core=core, control=control, words=known)


def common_prefixes(names: Iterable[str]) -> frozenset[str]:
    """Words that begin more than half of the names and are no word of a body: the name of the character, put before every joint."""
    found: set[str] = set()
    rest = [words for name in names if len(words := _words(name)) > 1]
    while rest:
        word, count = Counter(words[0] for words in rest).most_common(1)[0]
        if count <= len(rest) / 2 or word in _BODY_WORDS:
            break
        found.add(word)
        rest = [words[1:] for words in rest if words[0] == word and len(words) > 2]
    return frozenset(found)


def name_without_side(name: str) -> tuple[str, ...]:
    """The words and numbers of a name, its side left out: the same for a joint and its partner on the other side."""
    return tuple(_take_side(_words(name))[1])


def _words(name: str) -> list[str]:
    """Lower-case words and numbers, from the last namespace on."""
    tokens = [token.lower() for token in _TOKEN.findall(re.split(r"[:|]", name)[-1])]
    return [word for token in tokens for word in _split_side(token)]


def _split_side(token: str) -> list[str]:
    """'leftupleg' → left, upleg; 'lthigh' → l, thigh; anything else stays whole."""
    for prefix in ("left", "right", "l", "r"):
        if token.startswith(prefix) and token[len(prefix) :] in _PART:
            return [prefix, token[len(prefix) :]]
    return [token]


def _take_side(words: list[str]) -> tuple[str | None, list[str]]:
    """The side a name states and the remaining words. The last side word counts: the R of 'PalmR.L' is the ring finger."""
    for i in range(len(words) - 1, -1, -1):
        if words[i] in _SIDE:
            return _SIDE[words[i]], words[:i] + words[i + 1 :]
    return None, words
