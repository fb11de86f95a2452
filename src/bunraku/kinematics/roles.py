"""Which joint plays which part of a body, read from the joints' names and checked against the shape of the tree.

Limbs first (`limbs`; by shape alone where the names are silent: `body_plan`). The trunk follows from them: hips is where the legs
meet the spine, chest is where the arms meet it. A role that stays uncertain is left out; a small JSON file can give it (`with_roles`).
"""

from __future__ import annotations

import difflib
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from bunraku.errors import BadValue, FileProblem, FormatProblem
from bunraku.kinematics import library
from bunraku.kinematics.body_plan import biped_limbs
from bunraku.kinematics.limbs import NamedBody, first, limb_roles
from bunraku.kinematics.skeleton import ROLES, SIDES, Skeleton


def infer_roles(skeleton: Skeleton) -> dict[str, int]:
    """Role → joint number, for as many of ROLES as names and geometry make certain."""
    for name in library.skeleton_names():
        known = library.skeleton(name)
        if set(known.joints) == set(skeleton.joints):
            return {role: skeleton.index[known.joints[joint]] for role, joint in known.roles.items()}
    body = NamedBody(skeleton)
    limbs = limb_roles(body) or biped_limbs(skeleton, body.p)
    roles = {**_trunk(body, limbs), **limbs}
    claims = Counter(roles.values())  # a joint that seems to be two parts is neither for certain
    return {role: roles[role] for role in ROLES if role in roles and claims[roles[role]] == 1}


# --- trunk ----------------------------------------------------------------------------------------------------------


def _trunk(body: NamedBody, limbs: Mapping[str, int]) -> dict[str, int]:
    thighs = [limbs[role] for role in ("left_hip", "right_hip") if role in limbs]
    arms = [limbs.get(f"{side}_collar", limbs.get(f"{side}_shoulder", -1)) for side in SIDES]
    arms = [joint for joint in arms if joint >= 0]
    head, neck = first(body.named(None, "head")), first(body.named(None, "neck"))
    upper = _common_ancestor(body, arms) if len(arms) == 2 else None
    anchor = next((joint for joint in (upper, neck, head) if joint is not None), None)
    hips = _hips(body, thighs, anchor)
    roles: dict[str, int | None] = {"hips": hips, "neck": neck, "head": head}
    if hips is None:
        roles["chest"] = next((j for j in body.named(None, "spine") if "chest" in body.names[j].words), None)
        return {role: joint for role, joint in roles.items() if joint is not None}
    chest = _chest(body, hips, upper, neck if neck is not None else head)
    if chest is not None:
        roles["chest"] = chest
        inside = body.skeleton.path(hips, chest)[1:-1]
        roles["spine"] = first([joint for joint in inside if body.usable[joint] and body.names[joint].part != "hips"], inside)
        if head is None:
            roles |= _neck_and_head(body, chest, arms, neck)
    return {role: joint for role, joint in roles.items() if joint is not None}


def _common_ancestor(body: NamedBody, joints: list[int]) -> int:
    shared = set.intersection(*(set(body.skeleton.ancestors(joint)) for joint in joints))
    return max(shared, key=lambda joint: body.depth[joint])


def _hips(body: NamedBody, thighs: list[int], anchor: int | None) -> int | None:
    named = body.named(None, "hips", "hip")
    if len(thighs) < 2:
        return first(named)
    hips = _common_ancestor(body, [*thighs, *([] if anchor is None else [anchor])])
    low = float(body.p[hips, 1] - body.p[:, 1].min()) < 0.5 * float(body.p[thighs[0], 1] - body.p[:, 1].min())
    if body.usable[hips] and not low:
        return hips
    # legs and spine that meet only in a root on the ground or in a control bone: the pelvis is the lowest bone of the trunk
    return first(named, [joint for joint in body.named(None, "spine") if body.names[joint].core in ("spine", "body")], [hips])


def _chest(body: NamedBody, hips: int, upper: int | None, neck: int | None) -> int | None:
    """Where the arms hang; a Biped hangs its collars on the neck, then it is the joint below; without arms, what carries the neck."""
    for joint, is_neck in ((upper, upper is not None and body.names[upper].part == "neck"), (neck, True)):
        if joint is None:
            continue
        chest = body.skeleton.parents[joint] if is_neck else joint
        if chest >= 0 and chest != hips and hips in body.skeleton.ancestors(chest):
            return chest
    return None


def _neck_and_head(body: NamedBody, chest: int, arms: list[int], neck: int | None) -> dict[str, int]:
    """A head without a name: the last joint of the chain that goes on from the chest, or from a named neck, under one name."""

    def onward(joint: int, core: str | None) -> list[int]:
        children = [c for c in body.skeleton.children[joint] if body.usable[c] and not any(c in body.skeleton.ancestors(arm) for arm in arms)]
        return [c for c in children if body.side(c) is None and (core is None or body.names[c].core == core) and float(body.p[c, 1] - body.p[chest, 1]) > 0]

    start = [neck] if neck is not None else onward(chest, None)
    if len(start) != 1:
        return {}
    chain = start
    while len(further := onward(chain[-1], body.names[chain[0]].core)) == 1:
        chain = [*chain, *further]
    if len(chain) == 1:
        return {"neck": chain[0]} if neck is not None else {"head": chain[0]}
    return {"neck": chain[0], "head": chain[-1]}


# --- roles given by the user ----------------------------------------------------------------------------------------


def with_roles(skeleton: Skeleton, roles: Mapping[str, Any] | str | os.PathLike[str]) -> Skeleton:
    """The skeleton with roles set by a mapping role → joint name (None takes a role away), or by a JSON file that holds one."""
    if not isinstance(roles, Mapping):
        return roles_from_json(skeleton, _read(Path(roles)))
    return roles_from_json(skeleton, roles)


def roles_from_json(skeleton: Skeleton, data: Mapping[str, Any]) -> Skeleton:
    """As `with_roles`, from data already read. Roles that are not named stay as they are."""
    roles = dict(skeleton.roles)
    for role, joint in data.items():
        if role not in ROLES:
            raise BadValue(f"there is no role '{role}'{_closest(role, ROLES)}. The roles are: {', '.join(ROLES)}.")
        if joint is None:
            roles.pop(role, None)
        elif joint in skeleton.joints:
            roles[role] = skeleton.joints.index(joint)
        else:
            raise BadValue(f"role '{role}' names the joint {joint!r}, which skeleton '{skeleton.name}' does not have{_closest(str(joint), skeleton.joints)}.")
    _refuse_shared(skeleton, roles, given=data)
    return replace(skeleton, roles={role: roles[role] for role in ROLES if role in roles})


def _refuse_shared(skeleton: Skeleton, roles: Mapping[str, int], given: Mapping[str, Any]) -> None:
    """A part of no length has no direction: a foot that is also its toe would be turned two ways at once."""
    of_joint: dict[int, str] = {}
    for role, joint in roles.items():
        if (other := of_joint.setdefault(joint, role)) != role:
            spare = other if role in given and other not in given else role  # what was only inferred may go
            raise BadValue(
                f"roles '{other}' and '{role}' are both played by the joint '{skeleton.joints[joint]}' of skeleton '{skeleton.name}'; "
                f'a joint plays one role: name another joint, or take one role away with {{"{spare}": null}}.'
            )


def _closest(given: str, choices: Iterable[str]) -> str:
    lowered = {choice.lower(): choice for choice in choices}
    match = difflib.get_close_matches(given.lower(), lowered, n=1, cutoff=0.4)
    return f"; the closest is '{lowered[match[0]]}'" if match else ""


def _read(path: Path) -> Mapping[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise FileProblem(f"cannot read the roles file '{path}': {problem.strerror}.") from problem
    except ValueError as problem:
        raise FormatProblem(f"the roles file '{path}' is not JSON ({problem}); it should look like {{\"left_foot\": \"Foot_L\"}}.") from problem
    if not isinstance(data, dict):
        raise FormatProblem(f"the roles file '{path}' holds a {type(data).__name__}; one object such as {{\"left_foot\": \"Foot_L\"}} is needed.")
    return data
