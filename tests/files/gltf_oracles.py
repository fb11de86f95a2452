"""Third-party programs that judge what we write: Khronos' validator and Blender, each in a process of its own, where installed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"
ORACLES = TOOLS.parent / ".oracles"


def validator_errors(*paths: Path) -> dict[str, list[dict[str, str]]]:
    if not (ORACLES / "node_modules" / "gltf-validator").is_dir():
        pytest.skip("the glTF validator is not installed")
    result = subprocess.run(["node", str(TOOLS / "validate_gltf.mjs"), *map(str, paths)], capture_output=True, text=True, check=True)
    return {row["file"]: row["errors"] for row in map(json.loads, result.stdout.splitlines())}


def blender_positions(path: Path, clip: str, fps: float, frames: int, joints: tuple[str, ...]) -> np.ndarray:
    """Where Blender's importer puts the joints: (frames, joints, 3)."""
    python = ORACLES / "blender" / "bin" / "python"
    if not python.exists():
        pytest.skip("Blender is not installed")
    command = [python, TOOLS / "blender_joints.py", path, "--fps", fps, "--clip", clip, "--frames", frames]
    seen = json.loads(subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True).stdout)
    return np.array(seen["frames"])[:, [seen["joints"].index(joint) for joint in joints]]
