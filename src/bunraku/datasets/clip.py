"""What a dataset says of one clip: its captions, its split, where it came from and what was done to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

from bunraku.errors import FormatProblem

Split = Literal["train", "val", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)


@dataclass(frozen=True, kw_only=True)
class Caption:
    """A sentence, and which frames of its clip it describes."""

    text: str
    start: int  # half-open range of frames
    stop: int
    mirrored: bool = False  # it describes the clip with left and right swapped
    source: str = ""  # who wrote it: "humanml3d", "kitml", "index", "folder" …
    weight: float = 1.0  # how often it is drawn against other captions: whole sentences 1, bare labels less


@dataclass(frozen=True, kw_only=True)
class ClipInfo:
    """One unbroken piece of motion."""

    name: str  # unique in its dataset
    split: Split
    frames: int
    captions: tuple[Caption, ...]
    category: str = ""  # the source's own label of the action, if it has one
    subject: str = ""
    source: str = ""
    notes: Mapping[str, str] = field(default_factory=dict)  # what was repaired or assumed


@dataclass(frozen=True, kw_only=True)
class About:
    """What a dataset is, and whom to thank."""

    name: str
    licence: str
    credits: tuple[str, ...]  # lines to be shown wherever the data, or a model trained on it, is given out


def clip_to_json(clip: ClipInfo) -> dict[str, Any]:
    """Plain values; what is empty or usual is left out."""
    captions = []
    for caption in clip.captions:
        plain = {"text": caption.text, "range": [caption.start, caption.stop]}
        captions.append(plain | {name: value for name, value in asdict(caption).items() if name in ("mirrored", "source") and value})
        if caption.weight != 1.0:
            captions[-1]["weight"] = caption.weight
    plain = {"name": clip.name, "split": clip.split, "frames": clip.frames}
    plain |= {name: getattr(clip, name) for name in ("category", "subject", "source") if getattr(clip, name)}
    return plain | ({"notes": dict(clip.notes)} if clip.notes else {}) | {"captions": captions}


def clip_from_json(plain: Mapping[str, Any], where: str) -> ClipInfo:
    try:
        captions = tuple(
            Caption(
                text=str(row["text"]),
                start=int(row["range"][0]),
                stop=int(row["range"][1]),
                mirrored=bool(row.get("mirrored", False)),
                source=str(row.get("source", "")),
                weight=float(row.get("weight", 1.0)),
            )
            for row in plain["captions"]
        )
        clip = ClipInfo(
            name=str(plain["name"]),
            split=plain["split"],
            frames=int(plain["frames"]),
            captions=captions,
            notes={str(topic): str(note) for topic, note in plain.get("notes", {}).items()},
            **{name: str(plain.get(name, "")) for name in ("category", "subject", "source")},
        )
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise FormatProblem(f"{where} is no description of a clip ({type(error).__name__}: {error}); build the dataset again.") from error
    if clip.split not in SPLITS or clip.frames < 1 or not all(0 <= c.start < c.stop <= clip.frames for c in captions):
        raise FormatProblem(f"{where} does not fit together: split '{clip.split}', {clip.frames} frames, captions beyond them; build the dataset again.")
    return clip
