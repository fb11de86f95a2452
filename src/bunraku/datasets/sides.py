"""Sentences in the mirror: left and right, clockwise and counter-clockwise swapped; "right" that means no side is left alone."""

from __future__ import annotations

import re

_SWAPS = {
    "left": "right",
    "right": "left",
    "leftward": "rightward",
    "rightward": "leftward",
    "leftwards": "rightwards",
    "rightwards": "leftwards",
    "leftmost": "rightmost",
    "rightmost": "leftmost",
    "lefty": "righty",
    "righty": "lefty",
    "clockwise": "counterclockwise",
}
_COUNTER = r"(?:counter|anti)[\s-]?clockwise"
_WORD = re.compile(rf"\b(?:{_COUNTER}|{'|'.join(_SWAPS)})\b", re.IGNORECASE)

# "right after", "right in front of": at once, exactly. After a word of direction it is a side all the same: "turns right before …"
_EXACTLY = r"away|after|afterwards?|before|now|there|here|in front|in the|behind|at|back|next to|where|when|as|up to|above|below|beside|by|angles?|side up"
_ADVERB = re.compile(rf"\s+(?:{_EXACTLY})\b", re.IGNORECASE)
_DIRECTED = re.compile(
    r"(?:\b(?:the|his|her|their|its|my|your|both|a|to|and|or|turn\w*|fac\w+|veer\w*|go\w*|mov\w+|walk\w*|step\w*|lean\w*|look\w*|sway\w*|pivot\w*|spin\w*|rotat\w+"
    r"|slightly|left|far|towards?|from|with|of|on)[\s,-]+)$",
    re.IGNORECASE,
)
_SETTLED = re.compile(r"\b(?:all|that's|that is)\s+$", re.IGNORECASE)
# "left the room", "she has left": gone away
_LEAVES = re.compile(r"\b(?:he|she|they|who|person|man|woman|someone|has|have|had)\s+$", re.IGNORECASE)
_OBJECT = re.compile(r"\s+(?:the|a|an|his|her|their)\s+(?:room|frame|scene|area|house|place|building|screen|stage|floor|ground|spot|chair)\b", re.IGNORECASE)


def mirrored_text(text: str) -> str:
    """What the sentence says of the motion with left and right swapped."""
    return _WORD.sub(lambda found: _swapped(found, text), text)


def sides_of(text: str) -> tuple[str, ...]:
    """The words of side in a sentence, in order: what no paraphrase may lose."""
    found = [(match, match[0].lower()) for match in _WORD.finditer(text) if _swapped(match, text) != match[0]]
    return tuple("counterclockwise" if word not in _SWAPS else word.removesuffix("s") for _, word in found)


def _swapped(found: re.Match[str], text: str) -> str:
    word, before, after = found[0], text[: found.start()], text[found.end() :]
    if word.lower() == "right" and (_SETTLED.search(before) or (_ADVERB.match(after) and not _DIRECTED.search(before))):
        return word
    if word.lower() == "left" and _LEAVES.search(before) and _OBJECT.match(after):
        return word
    return _as_written(word, _SWAPS.get(word.lower(), "clockwise"))


def _as_written(like: str, word: str) -> str:
    """The word in the capitals of another."""
    if like.isupper() and len(like) > 1:
        return word.upper()
    return word.capitalize() if like[:1].isupper() else word
