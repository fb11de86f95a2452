"""glTF 2.0, the home format of characters: what comes in with a rig goes out the same, plus one animation."""

from bunraku.files.gltf.animation import load_clip
from bunraku.files.gltf.read import load_character
from bunraku.files.gltf.write import save_character

__all__ = ["load_character", "load_clip", "save_character"]
