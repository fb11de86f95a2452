"""Short sentences out of the few words by which databases label their recordings: "run/jog" becomes "A person runs or jogs."."""

from __future__ import annotations

import re

from bunraku.datasets.verbs import BASE_OF_CONTINUOUS, VERBS, third_person

_NOTHING = frozenset({"", "unknown", "clean", "calibration", "motion", "story", "no description"})
_LINKED = re.compile(r"(, (?:then |and )?|\bor |\band )([a-z]+)")
_REMARKS = re.compile(r"\s*\((?:[^()]*subjects?[^()]*|repeated|opposite direction|human subject)\)|\bCleanedGRS\b|_|\b0*\d{2,3}\b(?! deg)", re.IGNORECASE)


def label_sentence(label: str, category: str = "") -> str:
    """A sentence that says what a label says; empty where it says nothing."""
    animal = re.search(r"\(human subject\)", label) is not None and "animal" in category.lower()
    words = " ".join(_split_capitals(_REMARKS.sub(" ", label)).replace("/", " or ").split()).strip(" -.,;")
    if words.lower() in _NOTHING or not any(ch.isalpha() for ch in words):
        return ""
    if animal:
        return f"A person acts like {_article(words.lower())} {words.lower()}."
    topic, _, rest = words.partition(" - ")
    return _sentence((rest or topic).lower())


def _sentence(words: str) -> str:
    first = re.match(r"[a-z]+", words)
    verb = first[0] if first else ""
    if verb in VERBS:
        return f"A person {third_person(verb)}{_LINKED.sub(_conjugated, words[len(verb) :])}."
    if verb in BASE_OF_CONTINUOUS or (verb.endswith("ing") and len(verb) > 5):
        return f"A person is {words}."
    return f"A person performs this: {words}."


def _conjugated(found: re.Match[str]) -> str:
    return found[1] + (third_person(found[2]) if found[2] in VERBS else found[2])


def _article(word: str) -> str:
    return "an" if word[:1] in "aeiou" else "a"


def _split_capitals(label: str) -> str:
    """JumpForward → Jump Forward."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", label)
