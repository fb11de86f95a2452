"""Which feet and hands hang on the wrong bone, told by name, side, place and skin."""

from __future__ import annotations

import numpy as np
import pytest

from bunraku.files.gltf.repair import find_detached


@pytest.mark.parametrize(
    ("names", "parents", "moves"),
    [
        ("Root Body BackUpperLeg.L BackLowerLeg.L FrontLowerLeg.L IKBackLeg.L", [-1, 0, 1, 2, 1, 0], {5: 3}),
        ("Root UpperLeg.L LowerLeg.L Foot.L", [-1, 0, 1, 2], {}),  # hangs right already
        ("Root UpperLeg.L LowerLeg.L Foot.R", [-1, 0, 1, 0], {}),  # the other side
        ("Root UpperLeg.L LowerLeg.L PoleTarget.L", [-1, 0, 1, 0], {}),  # a handle
        ("Root UpperArm.L LowerArm.L Hand.L", [-1, 0, 1, 0], {3: 2}),
        ("Root thigh.l shin.l IK-foot.l", [-1, 0, 1, 0], {3: 2}),
        ("Root MidFrontLeg2.L MidFrontLeg3.L FrontLeg3.L MidFrontFoot.L", [-1, 0, 1, 0, 0], {4: 2}),
    ],
)
def test_which_feet_are_detached(names: str, parents: list[int], moves: dict[int, int]) -> None:
    count = len(parents)
    p = np.stack([np.zeros(count), -np.arange(count) * 0.2, np.zeros(count)], axis=1)
    assert find_detached(names.split(), parents, p, np.ones(count, bool)) == moves


def test_a_handle_without_skin_does_not_replace_the_foot_a_leg_has() -> None:
    names, parents = ["Root", "upperleg.l", "lowerleg.l", "foot.l", "IK-foot.l"], [-1, 0, 1, 2, 0]
    p, skin = np.array([0.0, 0.1, 0.2, 0.3, 0.3])[:, None] * (0.0, 1.0, 0.0), np.array([False, True, True, True, False])
    assert find_detached(names, parents, p, skin) == {}
    assert find_detached(names, parents, p, ~np.zeros(5, bool)) == {4: 2}
