"""Writes docs/map.md from the first sentence of every module's docstring: `python tools/write_map.py`."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "bunraku"
# from the doors down to the ground: each room imports only rooms further down
ROOMS = (
    *("", "cli", "recipes", "distill", "training", "trials", "retrieval", "datasets", "datasets/sources"),
    *("generator", "generator/text", "priors", "evaluate", "timeline", "files", "files/gltf"),
    *("film", "splats", "picture", "rig", "rig/fit", "kinematics", "diffusion", "geometry", "math"),
)
HEAD = """# Map

One line per file, from the doors down to the ground. Imports go down only (`make check`). Written by `python tools/write_map.py`.
"""
BESIDE = """
## Beside the package
- `tests/` mirrors `src/bunraku/`; `tests/files/test_bvh_read.py` tests `files/bvh_read.py`.
- `examples/` are numbered scripts; the first is `make demo`. `benchmarks/` write `docs/benchmarks.md`.
- `docs/conventions.md` (axes, names, roles), `docs/metrics.md` (every number of the report), `docs/decisions/` (why it is so), `docs/lab.md` (what was tried).
- `tools/`: what is run by hand or by tests, never imported: this map, referees (Blender, glTF's validator), measurements on assets, the baking of the human.
"""


def first_sentence(path: Path) -> str:
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    return " ".join(text.split("\n\n")[0].split())


def room(folder: str) -> str:
    here = SOURCE / folder
    lines = [f"\n## {folder or 'bunraku'}/", first_sentence(here / "__init__.py"), ""]
    for path in sorted(here.glob("*.py")):
        if path.name != "__init__.py":
            lines.append(f"- `{path.relative_to(SOURCE).as_posix()}` {first_sentence(path)}")
    return "\n".join(lines) + "\n"


def the_map() -> str:
    return HEAD + "".join(map(room, ROOMS)) + BESIDE


if __name__ == "__main__":
    (ROOT / "docs" / "map.md").write_text(the_map())
