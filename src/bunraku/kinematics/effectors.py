"""The ends of the body that can be told where to be, and the joints that show where they are."""

from __future__ import annotations

from bunraku.kinematics.forward import rest_poses
from bunraku.kinematics.skeleton import Skeleton


def effector_joints(skeleton: Skeleton, effector: str) -> list[int]:
    """The joint whose turn is that of the effector, then the one at its far end, if any.

    A hand ends at the fingertip that rests furthest from the wrist, a foot at its toe joint. As in the released models.
    """
    base = skeleton.role(effector)
    if effector.endswith("_foot"):
        toe = effector.replace("_foot", "_toe")
        return [base, skeleton.role(toe)] if skeleton.has(toe) else [base]
    if effector.endswith("_hand"):
        p_rest = rest_poses(skeleton).p_world_joint
        tips = [j for j in range(len(skeleton)) if j != base and not skeleton.children[j] and base in skeleton.ancestors(j)]
        return [base, max(tips, key=lambda j: float((p_rest[j] - p_rest[base]).norm()))] if tips else [base]
    return [base]
