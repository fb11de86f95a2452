"""Does a motion do what was asked? Simple things in words, checked by geometry: speed, airtime, sign of the yaw, heights, hands and feet.

A check is only as good as its answer on captured motion that is said to do the same: `said` finds such captions, and
`measure_checks` the share of them that pass. On CMU's captions and their mirror images, all splits, on which they were tuned, the
thresholds below give

    walk 95 % of 266, run 84 % of 310, jump 85 % of 350, turn left 82 % of 87, turn right 81 % of 90, sit down 82 % of 56,
    wave the right hand 80 % of 10, kick with the left leg 85 % of 20,

and pass 28, 4, 4, 25, 25, 12, 8 and 6 % of all other stretches, many of which do it without saying so. Most of what is said and does
not pass is not done: "jumps and turns left" that turns right, "sits" that mimes a meal while standing, "runs" at 1.1 m/s.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from bunraku.datasets.clip import Split
from bunraku.datasets.sides import mirrored_text
from bunraku.datasets.store import Dataset
from bunraku.kinematics.edit import mirror
from bunraku.kinematics.motion import Motion
from bunraku.trials.body import Body, longest_run
from bunraku.trials.stretch import SENTENCE_WEIGHT


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """Something simple to ask for."""

    prompt: str
    shows: Callable[[Body], bool]
    said: str  # a pattern (regular expression) that captions of such motion match
    unsaid: str = r"(?!)"  # and one that they do not


def _walks(body: Body) -> bool:
    """Forwards at a walk's speed for a quarter of the time or more, upright, at most a moment off the ground."""
    brisk = float(body.speed.quantile(0.75))
    upright = float(body.height("hips").median()) > 0.75 * body.rest_hips
    return 0.4 <= brisk <= 2.1 and body.forward > 0.1 and body.airborne < 0.2 and upright


def _runs(body: Body) -> bool:
    """Faster than one walks for a tenth of the time, or off the ground on a brisk way."""
    fast = float(body.speed.quantile(0.9))
    return fast > 1.9 or (fast > 1.3 and body.airborne >= 0.1)


def _jumps(body: Body) -> bool:
    """Both feet off the ground for a fifth of a second, the hips above where they stand."""
    return body.airborne >= 0.2 and float(body.lift("hips").max()) > 0.03


def _turns(side: int) -> Callable[[Body], bool]:
    """At its furthest by 30° or more to that side (+1 left, −1 right), and less to the other."""

    def shows(body: Body) -> bool:
        there, other = float((side * body.yaw).max()), float((-side * body.yaw).max())
        return there >= math.radians(30) and there > other

    return shows


def _sits(body: Body) -> bool:
    """For half a second the hips are lower than they stand and both thighs are closer to level than to upright."""
    seated = (body.height("hips") < 0.92 * body.rest_hips) & (body.thighs > math.radians(45))
    return longest_run(seated) >= 0.5 * body.fps


def _waves_right(body: Body) -> bool:
    """The right hand, for a while well above the hips, goes to and fro; it moves half as much again as the left, or is up twice as long."""
    up = {side: float((body.height(f"{side}_hand") > body.height("hips") + 0.1).float().mean()) for side in ("left", "right")}
    busier = body.path("right_hand", "right_shoulder") > 1.5 * body.path("left_hand", "left_shoulder")
    return up["right"] > 0.2 and (busier or up["right"] > 2 * up["left"]) and body.swings("right_hand", "right_shoulder", 0.05) >= 2


def _kicks(side: str) -> Callable[[Body], bool]:
    """That foot goes up by 30 cm or more, at speed and higher than the other."""
    other = "left" if side == "right" else "right"

    def shows(body: Body) -> bool:
        own, others = float(body.lift(f"{side}_foot").max()), float(body.lift(f"{other}_foot").max())
        fast = float((body.at(f"{side}_foot").diff(dim=0).norm(dim=-1) * body.fps).max()) if len(body.motion) > 1 else 0.0
        return own > 0.3 and own > others + 0.05 and fast > 2.0

    return shows


BEHAVIOURS: Mapping[str, Behaviour] = {
    "walk": Behaviour(
        prompt="A person walks forward.",
        shows=_walks,
        said=r"^(?:a |the )?\w+ (?:is )?walk(?:s|ing) (?:straight )?forwards?\b",
        unsaid=r"\b(?:then|and|stop|turn|jump|run|sit|climb|stair|ladder|crouch|bend|bent|crawl|slow)",
    ),
    "run": Behaviour(prompt="A person runs forward.", shows=_runs, said=r"\b(?:runs?|running|sprints?|jogs?)\b", unsaid=r"\b(?:in place|on the spot|hand)"),
    "jump": Behaviour(prompt="A person jumps up high.", shows=_jumps, said=r"\bjump(?:s|ing)?\b", unsaid=r"\bjumping jack|over|rope|hop|try|tries"),
    "turn left": Behaviour(
        prompt="A person turns to the left.",
        shows=_turns(+1),
        said=r"\bturn(?:s|ing)?\b[^,.]{0,30}\bleft\b(?! (?:foot|leg|arm|hand|head|knee))",
        unsaid=r"right|back|\bhead\b|upper body|torso|waist|slight",
    ),
    "turn right": Behaviour(
        prompt="A person turns to the right.",
        shows=_turns(-1),
        said=r"\bturn(?:s|ing)?\b[^,.]{0,30}\bright\b(?! (?:foot|leg|arm|hand|head|knee))",
        unsaid=r"left|back|\bhead\b|upper body|torso|waist|slight",
    ),
    "sit down": Behaviour(prompt="A person sits down.", shows=_sits, said=r"\bsits?(?:ting)? (?:back )?down\b"),
    "wave the right hand": Behaviour(
        prompt="A person waves with the right hand.",
        shows=_waves_right,
        said=r"\bwav(?:es?|ing)\b[^,.]{0,30}\bright (?:hand|arm)|\bright (?:hand|arm)\b[^,.]{0,20}\bwav(?:es?|ing)\b",
        unsaid=r"left|both",
    ),
    "kick with the left leg": Behaviour(
        prompt="A person kicks with the left leg.",
        shows=_kicks("left"),
        said=r"\bkick(?:s|ed|ing)?\b[^,.]{0,30}\bleft (?:leg|foot)|\bleft (?:leg|foot)\b[^,.]{0,20}\bkick",
        unsaid=r"right|both|alternat",
    ),
}


def shows(name: str, motion: Motion) -> bool:
    """Whether a motion does it."""
    return BEHAVIOURS[name].shows(Body(motion))


# --- are the checks sane? --------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Sanity:
    """How a check does on captured motion."""

    said: int  # stretches whose caption says so
    passed: float | None  # share of them that pass; None where there are none
    others_passed: float | None  # share of all other stretches that pass all the same


def measure_checks(dataset: Dataset, splits: tuple[Split, ...] = ("train", "val", "test")) -> dict[str, Sanity]:
    """Every check on every captioned stretch of a dataset and on its mirror image."""
    counts = {name: [0, 0, 0, 0] for name in BEHAVIOURS}  # said, of them passed, others, of them passed
    for body, sentences in _told_bodies(dataset, splits):
        for name, behaviour in BEHAVIOURS.items():
            first = 0 if any(is_said(name, text) for text in sentences) else 2
            counts[name][first] += 1
            counts[name][first + 1] += behaviour.shows(body)
    return {
        name: Sanity(said=said, passed=good / said if said else None, others_passed=wrong / others if others else None)
        for name, (said, good, others, wrong) in counts.items()
    }


def _told_bodies(dataset: Dataset, splits: tuple[Split, ...]) -> Iterator[tuple[Body, list[str]]]:
    for number in [number for split in splits for number in dataset.of_split(split)]:
        texts: dict[tuple[int, int], tuple[list[str], list[str]]] = {}
        for caption in dataset.clips[number].captions:
            if caption.weight >= SENTENCE_WEIGHT:
                plain, swapped = texts.setdefault((caption.start, caption.stop), ([], []))
                other = mirrored_text(caption.text)
                plain.append(other if caption.mirrored else caption.text)
                swapped.append(caption.text if caption.mirrored else other)
        for (start, stop), (plain, swapped) in texts.items():
            motion = dataset.motion(number, range(start, stop))
            yield Body(motion), plain
            yield Body(mirror(motion)), swapped


def is_said(name: str, text: str) -> bool:
    behaviour, line = BEHAVIOURS[name], text.lower().strip()
    return bool(re.search(behaviour.said, line)) and not re.search(behaviour.unsaid, line)
