"""The part of FBX reading that runs in a process of its own: `python -m bunraku.files.fbx_child FILE CLIP > arrays.npz`.

The Python binding of ufbx (0.0.5) does not count references rightly: an element of a scene that is let go and asked for again, or
handed out twice by one of its lists, is freed under its users. So each list is read once, everything is kept until the end, and the
process ends without tidying up. And an FBX file is binary data from anywhere, taken apart in C: see `child`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bunraku.files.child import Refused, answer

_MOST_FRAMES = 100_000
_kept: list[Any] = []  # every object of the binding, see above


def _keep(value: Any) -> Any:
    _kept.append(value)
    return value


def _items(values: Any) -> list[Any]:
    return [_keep(values[i]) for i in range(len(_keep(values)))]


def _from_columns(value: Any) -> np.ndarray:
    """The columns of a 3 × 4 matrix."""
    A = np.eye(4)
    A[:3] = np.array([tuple(column) for column in (value.c0, value.c1, value.c2, value.c3)]).T
    return A


def _from_parts(translation: np.ndarray, xyzw: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Matrices (… 4 4) of a turn and a scale, then a shift."""
    x, y, z, w = np.moveaxis(xyzw / np.linalg.norm(xyzw, axis=-1, keepdims=True), -1, 0)
    rows = [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)]
    rows += [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)]
    rows += [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]
    A = np.zeros((*x.shape, 4, 4))
    A[..., :3, :3] = np.stack(rows, axis=-1).reshape(*x.shape, 3, 3) * scale[..., None, :]
    A[..., :3, 3] = translation
    A[..., 3, 3] = 1
    return A


def read(path: str, clip: str) -> dict[str, np.ndarray]:
    """World matrices of all joints in metres, Y-up; `clip` is the name or number of an animation, or empty for the first."""
    import ufbx

    # inherited scale is undone in the children, so that a world matrix is the product of the matrices above it
    compensate = ufbx.InheritModeHandling.COMPENSATE_NO_FALLBACK
    scene = _keep(
        ufbx.load_file(path, ignore_embedded=True, inherit_mode_handling=compensate, target_axes=ufbx.axes_right_handed_y_up, target_unit_meters=1.0)
    )
    nodes = _items(scene.nodes)
    index = {node.typed_id: i for i, node in enumerate(nodes)}
    above = [_keep(node.parent) for node in nodes]
    parents = [-1 if node is None else index[node.typed_id] for node in above]
    bound: dict[int, np.ndarray] = {}
    for cluster in [cluster for skin in _items(scene.skin_deformers) for cluster in _items(skin.clusters)]:
        bone = _keep(cluster.bone_node)
        if bone is not None:
            bound[index[bone.typed_id]] = _from_columns(cluster.bind_to_world)
    joints = _joints(parents, {i for i, node in enumerate(nodes) if _keep(node.bone) is not None} | set(bound))
    rank = {joint: i for i, joint in enumerate(joints)}
    stacks = _items(scene.anim_stacks)
    stack = _choose(stacks, clip)
    times, fps = _times(stack, float(_keep(scene.settings).frames_per_second))
    used = sorted({node for joint in joints for node in _chain(parents, joint)})
    frames = _world(ufbx.evaluate_transform, _keep(stack.anim), nodes, parents, used, times)
    return {
        "names": np.array([nodes[joint].name for joint in joints]),
        "parents": np.array([rank.get(parents[joint], -1) for joint in joints]),
        "frames": np.stack([frames[joint] for joint in joints], axis=1),
        "rest": _rest(nodes, parents, joints, bound),
        "bound": np.array(sum(joint in bound for joint in joints)),
        "fps": np.array(fps),
        "clip": np.array(stack.name),
        "clips": np.array([other.name for other in stacks]),
    }


def _times(stack: Any, fps: float) -> tuple[np.ndarray, float]:
    """The moments [s] of the frames of an animation."""
    begin, end = float(stack.time_begin), float(stack.time_end)
    count = (end - begin) * fps + 1.5 if end > begin else 1
    if not 0 < fps < 1e4 or not count < _MOST_FRAMES:
        raise Refused(f"claims {count:.0f} frames at {fps:g} per second; up to {_MOST_FRAMES} are read")
    return begin + np.arange(int(count)) / fps, fps


def _world(evaluate: Any, anim: Any, nodes: list[Any], parents: list[int], used: list[int], times: np.ndarray) -> dict[int, np.ndarray]:
    """`A_world_node` (F 4 4) of the nodes in `used`, which holds the parents of all it holds."""
    world: dict[int, np.ndarray] = {}
    for node in used:
        local = [evaluate(anim, nodes[node], time) for time in times.tolist()]
        A = _from_parts(*(np.array([tuple(getattr(t, part)) for t in local]) for part in ("translation", "rotation", "scale")))
        world[node] = world[parents[node]] @ A if parents[node] >= 0 else A
    return world


def _chain(parents: list[int], node: int) -> list[int]:
    """The node, its parent … up to the scene's root."""
    chain = [node]
    while parents[chain[-1]] >= 0:
        chain.append(parents[chain[-1]])
    return chain


def _joints(parents: list[int], bones: set[int]) -> list[int]:
    """The bones and every node between two of them, parents first (ufbx sorts nodes by depth)."""
    if not bones:
        raise Refused("has no bones (LimbNode or skin cluster), so there is no skeleton to read")
    chains = [_chain(parents, bone) for bone in bones]
    between = {node for chain in chains for node in chain[: max(i for i, node in enumerate(chain) if node in bones) + 1]}
    return sorted(between)


def _rest(nodes: list[Any], parents: list[int], joints: list[int], bound: dict[int, np.ndarray]) -> np.ndarray:
    """The pose the skin is bound in; a joint that no skin uses keeps its unanimated place in its parent."""
    rest: dict[int, np.ndarray] = {}
    for joint in joints:
        above = rest.get(parents[joint])
        rest[joint] = bound.get(joint, _from_columns(nodes[joint].node_to_world) if above is None else above @ _from_columns(nodes[joint].node_to_parent))
    return np.stack([rest[joint] for joint in joints])


def _choose(stacks: list[Any], clip: str) -> Any:
    names = [stack.name for stack in stacks]
    if not stacks:
        raise Refused("has a skeleton but no animation")
    if not clip:
        return stacks[0]
    if clip in names:
        return stacks[names.index(clip)]
    if clip.isdecimal() and int(clip) < len(stacks):
        return stacks[int(clip)]
    raise Refused(f"has no clip '{clip}'; it has {', '.join(names)}")


if __name__ == "__main__":
    answer("FBX", read)
