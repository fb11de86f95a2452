"""Pixar's own library for USD, where the extra `usd` is installed. Imported by the process that reads, too, so nothing heavy here."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

from bunraku.errors import FileProblem


@cache
def pxr() -> Any:
    """The modules of usd-core that are used here."""
    try:
        from pxr import Gf, Sdf, Tf, Usd, UsdGeom, UsdShade, UsdSkel, Vt
    except ImportError as error:
        raise FileProblem("USD files need the extra: pip install 'bunraku[usd]'.") from error
    return SimpleNamespace(Gf=Gf, Sdf=Sdf, Tf=Tf, Usd=Usd, UsdGeom=UsdGeom, UsdShade=UsdShade, UsdSkel=UsdSkel, Vt=Vt)
