"""A Character to a file: the document it came from, unchanged but for one more animation, or a plain new one."""

from __future__ import annotations

import os

from bunraku.files.gltf.build import build_document
from bunraku.files.gltf.document import write_document
from bunraku.files.gltf.read import GltfSource
from bunraku.files.gltf.write_back import with_animation
from bunraku.kinematics.motion import Motion
from bunraku.rig.character import Character


def save_character(character: Character, path: str | os.PathLike[str], motion: Motion | None = None, clip_name: str | None = None) -> None:
    """Writes `.glb` or `.gltf`. A motion must be one of the character's own skeleton; its name is `clip_name`, else its prompt."""
    if isinstance(character.source, GltfSource):
        document, nodes = character.source.document, character.source.nodes
    else:
        document, nodes = build_document(character)
    if motion is not None:
        document = with_animation(document, nodes, character.skeleton, motion, clip_name)
    write_document(document, path)
