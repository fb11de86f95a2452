"""How plausible is a motion? `check` measures what an eye would catch, without asking what the motion was meant to be."""

from __future__ import annotations

import torch

from bunraku.evaluate.balance import balance_metrics
from bunraku.evaluate.clip import clip_metrics, prepare
from bunraku.evaluate.collisions import collision_metrics
from bunraku.evaluate.feet import feet_metrics
from bunraku.evaluate.joints import joint_metrics
from bunraku.evaluate.loop import loop_metrics
from bunraku.evaluate.report import Report
from bunraku.evaluate.rhythm import rhythm_metrics
from bunraku.evaluate.smoothness import smoothness_metrics
from bunraku.kinematics.motion import Motion


@torch.no_grad()
def check(motion: Motion, *, ground: float = 0.0) -> Report:
    """The plausibility report of a motion that should stand on a flat ground at height `ground` [m].

    Works for any skeleton: metrics that need roles the skeleton lacks, or more frames than there are, are None.
    """
    clip = prepare(motion, ground)
    contacts = None if clip.feet is None else "stored" if clip.feet.stored else "detected"
    return Report(
        skeleton=motion.skeleton.name,
        contacts=contacts,
        clip=clip_metrics(clip),
        feet=feet_metrics(clip),
        smoothness=smoothness_metrics(clip),
        joints=joint_metrics(clip),
        collisions=collision_metrics(clip),
        balance=balance_metrics(clip),
        rhythm=rhythm_metrics(clip),
        loop=loop_metrics(clip),
    )
