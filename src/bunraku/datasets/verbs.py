"""A little English grammar, as much as captions need: the verbs of motion, and three forms of each."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# base forms; what is not here is left as it stands
VERBS = _words(
    """walk run jog jump hop leap skip climb crawl sit stand kick punch box dance wave throw catch swing pull push lift carry pick reach bend turn
    sweep wash clean drink eat smoke laugh cry yawn stretch lie lay get put take hang swim dodge duck roll flip step sidestep march sneak limp
    stagger stumble trip fall balance squat kneel crouch look point clap signal direct shake open close hold move play tie mop paint hammer
    dribble shoot pass bounce wait rest sleep stalk hit block stab slash fish row comb brush read write type sew mix chop tap nod bow salute
    juggle spin twist slide tiptoe stride lunge stomp strut scratch rub grab drag drop sneeze cough drive ride unscrew screw fix adjust wind
    scoop rise raise lower strike avoid touch blow cheer conduct sing search investigate poke inspect knock peel serve dive explore vault dip
    do go make start begin stop continue try pretend rotate pace lean sway gesture place bring pivot jerk circle cross extend straighten
    perform act seem appear use return face leave give toss flap cartwheel stroll trot sprint rock shuffle wander twirl"""
)
_IRREGULAR = {"go": "goes", "do": "does"}
_DOUBLED = _words("run jog hop skip sit swim hit stab chop tap nod spin rub grab drag drop get put stop trip flip step dip clap begin flap squat")
_INGS = {"lie": "lying", "tie": "tying", "tiptoe": "tiptoeing"}


def third_person(verb: str) -> str:
    """walk → walks, wash → washes, carry → carries."""
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    if verb.endswith(("s", "sh", "ch", "x", "z", "o")):
        return verb + "es"
    return verb[:-1] + "ies" if verb.endswith("y") and verb[-2:-1] not in tuple("aeiou") else verb + "s"


def continuous(verb: str) -> str:
    """walk → walking, run → running, wave → waving."""
    if verb in _INGS:
        return _INGS[verb]
    if verb in _DOUBLED:
        return verb + verb[-1] + "ing"
    return verb[:-1] + "ing" if verb.endswith("e") and not verb.endswith(("ee", "oe", "ye")) else verb + "ing"


BASE_OF_THIRD = {third_person(verb): verb for verb in VERBS}
BASE_OF_CONTINUOUS = {continuous(verb): verb for verb in VERBS}
