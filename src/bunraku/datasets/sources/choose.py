"""Sources by the names they have on the command line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, get_args

from bunraku.datasets.source import Source
from bunraku.errors import BadValue

Kind = Literal["cmu", "style100", "folder", "amass", "bones-seed"]
KINDS: tuple[Kind, ...] = get_args(Kind)
WITH_CAPTIONS = ("folder", "amass")  # those whose captions lie elsewhere


def source_of(kind: str, folder: str | os.PathLike[str], captions: str | os.PathLike[str] | None = None) -> Source:
    """The source of that kind in a folder. `captions`: a CSV (folder) or HumanML3D's folder (amass)."""
    if kind not in KINDS:
        raise BadValue(f"'{kind}' is no kind of source; there are {', '.join(KINDS)}.")
    if (captions is None) == (kind in WITH_CAPTIONS):
        needs = {"folder": "a CSV with the columns file and text", "amass": "HumanML3D's folder with index.csv and texts/"}
        raise BadValue(f"'{kind}' needs captions: {needs[kind]}." if captions is None else f"'{kind}' brings its own captions; leave '{captions}' out.")
    folder = Path(folder)
    if kind == "cmu":
        from bunraku.datasets.sources.cmu import CmuPack

        return CmuPack(folder)
    if kind == "style100":
        from bunraku.datasets.sources.style100 import Style100Pack

        return Style100Pack(folder)
    if kind == "bones-seed":
        from bunraku.datasets.sources.bones_seed import BonesSeed

        return BonesSeed(folder)
    assert captions is not None
    if kind == "amass":
        from bunraku.datasets.sources.amass import AmassWithTexts

        return AmassWithTexts(folder, Path(captions))
    from bunraku.datasets.sources.folder import MotionFolder

    return MotionFolder.of(folder, Path(captions))
