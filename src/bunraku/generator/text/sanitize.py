"""How a prompt is tidied before it is encoded, as the released models do: "  walks   SLOWLY" becomes "Walks slowly.".

The steps, in the release's order: strip and collapse spaces; drop what is no letter or digit in front; first letter upper, **all
others lower case**; drop odd punctuation behind; end with a full stop; begin every sentence with a capital. Both LLM2Vec and MiniLM
read prompts like this: the release's encoder was used so, and for our own models a prompt should not move differently because of a
missing full stop. (MiniLM is blind to case anyway.)

What counts as odd is ours: whatever is no letter, digit, closing bracket, quotation mark or one of `. ! ?`.
"""

from __future__ import annotations

import re

_KEPT_BEHIND = ".!?)]\"'”’»"
_SENTENCE_START = re.compile(r"([.!?]\s+)(\w)")


def sanitize_text(text: str) -> str:
    """The tidied prompt; empty where nothing of it is a letter or a digit."""
    text = " ".join(text.split())
    start = next((i for i, letter in enumerate(text) if letter.isalnum()), len(text))
    text = text[start:].capitalize()
    while text and not (text[-1].isalnum() or text[-1] in _KEPT_BEHIND):
        text = text[:-1]
    if text and text[-1] not in ".!?":
        text += "."
    return _SENTENCE_START.sub(lambda found: found[1] + found[2].upper(), text)
