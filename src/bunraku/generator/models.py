"""Which models there are by name, and in which folder their files lie.

A name is that of a model that comes with the package, of a folder, or of a released model on Hugging Face, which is fetched once.
"""

from __future__ import annotations

import os
from pathlib import Path

from bunraku.errors import FileProblem
from bunraku.generator.checkpoint import OURS, RELEASED, WEIGHTS

SHIPPED = Path(__file__).resolve().parents[1] / "models"  # one folder a model, as `checkpoint.save_model` writes it
DEFAULT = "default"  # the folder there that is used when no model is named

# on Hugging Face, the newest of each kind first, so that a name without version finds it
ON_THE_HUB = (
    "nvidia/Kimodo-SOMA-RP-v1.1",
    "nvidia/Kimodo-SOMA-RP-v1",
    "nvidia/Kimodo-SOMA-SEED-v1.1",
    "nvidia/Kimodo-SOMA-SEED-v1",
    "nvidia/Kimodo-G1-RP-v1",
    "nvidia/Kimodo-G1-SEED-v1",
    "nvidia/Kimodo-SMPLX-RP-v1",
)
_HUB_FILES = (WEIGHTS, RELEASED, "stats/*/*.npy")


def shipped_models() -> list[str]:
    """The names of the models inside this package."""
    if not SHIPPED.is_dir():
        return []
    return sorted(folder.name for folder in SHIPPED.iterdir() if (folder / OURS).is_file())


def find_model(name: str | os.PathLike[str] | None = None) -> Path:
    """The folder of a model; None is the default one."""
    shipped = shipped_models()
    if name is None:
        if DEFAULT in shipped:
            return SHIPPED / DEFAULT
        raise FileProblem(f"no trained model comes with this version of bunraku yet. Name one with --model (in Python: model=…): {_choices(shipped)}.")
    name = os.fspath(name)
    if name in shipped:
        return SHIPPED / name
    if _is_folder(name):
        return Path(name)
    released = _released(name)
    if released is None:
        raise FileProblem(f"there is no model '{name[:80]}'. There is {_choices(shipped)}.")
    return _fetched(released)


def _is_folder(name: str) -> bool:
    try:
        return bool(name) and Path(name).is_dir()
    except (OSError, ValueError):  # a name that is too long, a null character
        return False


def _released(name: str) -> str | None:
    """`nvidia/Kimodo-SOMA-RP-v1.1`, `Kimodo-SOMA-RP`, `soma-rp`: capitals, owner, `kimodo-` and version may be left out."""
    wanted = name.lower().removeprefix("nvidia/").removeprefix("kimodo-")
    for known in ON_THE_HUB:
        short = known.lower().removeprefix("nvidia/kimodo-")
        if wanted in (short, short.rsplit("-", 1)[0]):
            return known
    return None


def _fetched(name: str) -> Path:
    from bunraku.files.hub import model_folder

    return model_folder(name, _HUB_FILES, or_else="name a folder that holds its files with --model FOLDER.")


def _choices(shipped: list[str]) -> str:
    ours = f"{', '.join(shipped)} (in this package), " if shipped else ""
    short = ", ".join(known.removeprefix("nvidia/") for known in ON_THE_HUB)
    return f"{ours}a folder with {WEIGHTS} and {OURS} or {RELEASED}, or a released model that Hugging Face has: {short}"
