"""What a dataset holds, as plain values: for `bunraku data info`."""

from __future__ import annotations

import os
import re
from collections import Counter
from typing import Any

from bunraku.datasets.clip import SPLITS
from bunraku.datasets.store import Dataset

SHOWN = 12  # categories, and reasons for what was left out


def describe_dataset(dataset: Dataset) -> dict[str, Any]:
    """Clips, hours and captions by split; categories; what was repaired, cut and left out; licence and credit lines."""
    splits = {split: _part(dataset, dataset.of_split(split)) for split in SPLITS}
    categories: Counter[str] = Counter()
    for clip in dataset.clips:
        categories[clip.category or "none"] += clip.frames
    captions = [caption for clip in dataset.clips for caption in clip.captions]
    return {
        "dataset": os.fspath(dataset.folder),
        "name": dataset.about.name,
        "skeleton": dataset.skeleton.name,
        "fps": dataset.fps,
        **_part(dataset, list(range(len(dataset)))),
        "splits": splits,
        "empty splits": [split for split, part in splits.items() if not part["clips"]],
        "sources of captions": dict(Counter(caption.source or "none" for caption in captions).most_common()),
        "mirrored captions": sum(caption.mirrored for caption in captions),
        "clips without captions": sum(not clip.captions for clip in dataset.clips),
        "hours by category": {name: round(frames / dataset.fps / 3600, 3) for name, frames in categories.most_common(SHOWN)},
        "clips with": dict(Counter(topic for clip in dataset.clips for topic in clip.notes).most_common()),
        "left out": dict(Counter(_reason(why) for _, why in dataset.left_out).most_common(SHOWN)),
        "licence": dataset.about.licence,
        "credits": list(dataset.about.credits),
    }


def _part(dataset: Dataset, clips: list[int]) -> dict[str, Any]:
    infos = [dataset.clips[clip] for clip in clips]
    hours = sum(info.frames for info in infos) / dataset.fps / 3600
    return {"clips": len(infos), "hours": round(hours, 3), "captions": sum(len(info.captions) for info in infos)}


def _reason(why: str) -> str:
    """A sentence without what is different from clip to clip."""
    why = re.sub(r"'[^']*'", "…", why)
    return re.sub(r"\d+(?:\.\d+)?", "N", why)
