"""After the network: every constraint met exactly, feet that stand kept standing, and everything else left as the model made it.

    motion ─► mend   frames that jump where the model was told what to do
           ─► warp   whole poses, hips, headings and the root's path, by smooth corrections          (kinematics/warp, steer)
           ─► nail   a place on the ground for every stance of a foot                                 (kinematics/footing)
           ─► solve  legs to the nails, hands and feet to their targets, over the whole clip at once  (kinematics/inverse)
           ─► measure what is still missed; once more where something is; say so where it stays

Constraints outweigh contacts: a foot that cannot stay where it stands without breaking one slides. What no pose can reach is
approached as far as the body goes and named in `provenance.notes`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from bunraku.errors import BadValue, BunrakuError, SkeletonMismatch
from bunraku.evaluate.adherence import adherence
from bunraku.generator.missed import EXACT, EXACT_TURN, Numbering, note_on_slides, notes_on
from bunraku.generator.wishes import Wishes
from bunraku.kinematics.contacts import body_scale, contacts_from_positions
from bunraku.kinematics.footing import Ground, Kept, Nail, height_over, nail_feet, within_reach
from bunraku.kinematics.forward import forward_kinematics
from bunraku.kinematics.inverse import Effort, Freedom, PositionTarget, RotationTarget, Target, displace, solve
from bunraku.kinematics.motion import Motion, is_finite
from bunraku.kinematics.skeleton import CONTACT_ROLES, SIDES, Skeleton
from bunraku.kinematics.spread import beside
from bunraku.kinematics.steer import steer
from bunraku.kinematics.warp import on_hinges, through_headings, through_places, through_poses, through_turns, without_jumps
from bunraku.timeline.constraints import Constraint, PoseKey, RootPath

HARD, FIRM = 2e4, 4e3  # [1/m, 1/rad] how much constraints matter, and feet that stand
SWINGING, SOFT = 15.0, 2.0  # [1/m] the path of a foot in the air, [1/rad] how it was turned
STIFFNESS = {"spine": 60.0, "collar": 4.0, "shoulder": 1.5, "elbow": 1.0, "hand": 1.0, "leg": 1.0}  # [1/rad] against being turned
HIPS_PLACE = 15.0  # [1/m] against being moved
FADE = 0.22  # [s] within which a correction dies out
STRETCH = 0.995  # of a leg in line: what lies further is not asked of a foot that only stands
LIFT = 0.05  # [m, person-sized] how far a foot that is out of reach rises before it slides
LEAN = 0.30  # [m, person-sized] how far the body may follow a hand or foot that is out of reach


@dataclass(frozen=True, kw_only=True)
class CleanupOptions:
    """How much is put right, and how long is tried."""

    feet: bool = True  # nail standing feet
    rounds: int = 4  # of solving and measuring
    iterations: int = 20  # of the first solve


def cleanup(
    motion: Motion,
    constraints: Sequence[Constraint] = (),
    *,
    ground: Ground | float = 0.0,
    options: CleanupOptions = CleanupOptions(),
    on_progress: Callable[[float], None] | None = None,
) -> Motion:
    """The motion with its constraints met (to 1 mm and 0.1°) and its feet standing still on `ground`, a height or y(x, z) [m].

    Its contacts decide when feet stand; where it has none they are detected. They are in the result, foot plans included.
    """
    return cleanup_all([motion], [constraints], ground=ground, options=options, on_progress=on_progress)[0]


def cleanup_all(
    motions: Sequence[Motion],
    constraints: Sequence[Sequence[Constraint]] | None = None,
    *,
    ground: Ground | float = 0.0,
    options: CleanupOptions = CleanupOptions(),
    numbering: Sequence[Numbering] | None = None,
    on_progress: Callable[[float], None] | None = None,
) -> list[Motion]:
    """`cleanup` for many motions, each with its own constraints. All are checked before the first is touched."""
    asked = [()] * len(motions) if constraints is None else constraints
    if len(asked) != len(motions):
        raise BadValue(f"{len(motions)} motions were given with {len(asked)} lists of constraints; one list for each motion is needed.")
    for motion, own in zip(motions, asked, strict=True):
        _check(motion, own)
    height: Ground = ground if callable(ground) else lambda x, z: torch.full_like(x, float(ground))
    numbers = [Numbering()] * len(motions) if numbering is None else numbering
    cleaned = []
    for k, (motion, own, number) in enumerate(zip(motions, asked, numbers, strict=True)):
        with torch.no_grad():
            cleaned.append(_cleaned(motion, own, height, options, number))
        if on_progress is not None:
            on_progress((k + 1) / len(motions))
    return cleaned


def _check(motion: Motion, constraints: Sequence[Constraint]) -> None:
    if not is_finite(motion):
        raise BadValue("a motion to be cleaned up holds numbers that are not finite; look at it with `bunraku check`.")
    for k, constraint in enumerate(constraints):
        outside = [f for f in constraint.frames.tolist() if not 0 <= f < len(motion)]
        if outside:
            raise BadValue(f"constraint {k} ({type(constraint).__name__}) speaks of frame {outside[0]}; this motion has the frames 0 to {len(motion) - 1}.")
        given = [v for v in (*vars(constraint).values(), *vars(getattr(constraint, "poses", constraint)).values()) if isinstance(v, Tensor)]
        if not all(bool(torch.isfinite(v).all()) for v in given):
            raise BadValue(f"constraint {k} ({type(constraint).__name__}) holds numbers that are not finite.")
        if isinstance(constraint, PoseKey) and constraint.poses.skeleton.joints != motion.skeleton.joints:
            other = f"a pose of '{constraint.poses.skeleton.name}' for a motion of '{motion.skeleton.name}'"
            raise SkeletonMismatch(f"constraint {k} is {other}; retarget the one to the other first.")


def _cleaned(motion: Motion, constraints: Sequence[Constraint], ground: Ground, options: CleanupOptions, number: Numbering) -> Motion:
    dtype, device = motion.quats.dtype, motion.quats.device
    given = motion.to("cpu", torch.float64)
    wishes = Wishes.of(given, constraints)
    contacts = _contacts(given, wishes, ground)
    given = replace(given, contacts=None)
    warped = _warped(given, wishes)
    try:
        nails = [] if contacts is None or not options.feet else _nails(warped, contacts, wishes, ground)
        done = _solved(given, warped, nails, wishes, constraints, options)
        if slides := note_on_slides(nails, number):
            done = replace(done, provenance=done.provenance.noted(slides=slides))
    except BunrakuError as problem:  # the solver met something it cannot handle; one clip must not take a batch down
        done = replace(warped, provenance=motion.provenance.noted(cleanup=f"feet and hands were left as they are: {problem}"))
    notes = notes_on(adherence(done, constraints), number)
    contacts = None if contacts is None else contacts.to(device)
    return replace(done.to(dtype).to(device), contacts=contacts, provenance=done.provenance.noted(**notes))


# --- the whole body --------------------------------------------------------------------------------------------------


def _warped(motion: Motion, wishes: Wishes) -> Motion:
    """The motion bent through poses, hips and headings, then moved until its smoothed root passes where it should."""
    hips = motion.skeleton.roles.get("hips", 0)
    motion = without_jumps(on_hinges(motion), wishes.anywhere())
    if bool(wishes.whole.any()):
        translations = None if wishes.translations is None else wishes.translations.values
        poses = replace(motion, quats=wishes.quats.values, root_position=wishes.root.values, translations=translations)
        motion = through_poses(motion, poses, wishes.whole)
    at, turned = wishes.places["hips"], wishes.turns["hips"]
    if bool(at.known.any()):
        motion = through_places(motion, hips, at.values, at.known, wishes.whole)
    if bool(turned.known.any()):
        motion = through_turns(motion, hips, turned.values, turned.known, wishes.whole)
    if bool(wishes.heading.known.any()):
        motion = through_headings(motion, hips, wishes.heading.values, wishes.heading.known, wishes.whole | turned.known)
    return on_hinges(displace(motion, hips, _steering(motion, wishes)))


def _steering(motion: Motion, wishes: Wishes) -> Float[Tensor, "F 3"]:
    """How the hips must move for their smoothed path to be where it should [m]; not where their own place is given."""
    shift = torch.zeros_like(motion.root_position)
    if bool(wishes.path.known.any()):
        p_hips = forward_kinematics(motion).p_world_joint[:, motion.skeleton.roles.get("hips", 0)]
        shift[:, [0, 2]] = steer(
            p_hips, wishes.path.values, wishes.path.known, beside(wishes.whole | wishes.places["hips"].known, 0.5 * motion.fps), motion.fps
        )
    return shift


def _contacts(motion: Motion, wishes: Wishes, ground: Ground) -> Bool[Tensor, "F 4"] | None:
    """When the feet stand: as planned, else as the motion says, else as it shows."""
    if not any(motion.skeleton.has(role) for role in CONTACT_ROLES):
        return None
    contacts = None if motion.contacts is None else motion.contacts.cpu()
    if contacts is None:
        p = forward_kinematics(motion).p_world_joint
        level = torch.stack([p[..., 0], height_over(ground, p), p[..., 2]], dim=-1)
        contacts = contacts_from_positions(motion.skeleton, level, motion.fps)
    return torch.where(wishes.contacts.known[:, None], wishes.contacts.values, contacts)


# --- limbs -----------------------------------------------------------------------------------------------------------


def _solved(
    given: Motion, warped: Motion, nails: list[Nail], wishes: Wishes, constraints: Sequence[Constraint], options: CleanupOptions
) -> Motion:
    """Hips, spine, legs and arms of the warped motion, corrected until nothing is missed that can be reached."""
    body = warped.skeleton
    stiffness = _stiffness(body, wishes, legs=any(bool(nail.planted.any()) for nail in nails))
    if not stiffness:
        return warped
    freedom = Freedom.of(body, stiffness, body.roles.get("hips", 0))
    hold, unit, bend = _hold(wishes, len(freedom.joint)), 1 / body_scale(body), (FADE * warped.fps) ** 2
    place = HIPS_PLACE * unit
    smooth = {"smooth": bend, "smooth_moving": place * bend}
    effort = Effort(stay=1.0, stay_moving=place, **smooth, iterations=options.iterations, tolerance=1e-4, limit_rounds=12, damping=1e-6)
    done = reference = warped
    for attempt in range(options.rounds):
        targets = _targets(given, warped, done, nails, wishes, slack=0.12 / unit if attempt == 0 else 0.0)
        done = solve(done, targets, freedom, effort, reference=reference, hold=hold)
        misses = adherence(done, constraints)
        paths = [miss for miss in misses if isinstance(miss.constraint, RootPath)]
        if attempt and all(miss in paths or (miss.position < EXACT and miss.turn < EXACT_TURN) for miss in misses):
            break
        if attempt == 0 and any(miss.position > 0.95 * EXACT for miss in paths):  # the hips have moved to reach something
            shift = _steering(done, wishes)
            done, reference = displace(done, freedom.moving, shift), displace(reference, freedom.moving, shift)
    return done


def _nails(warped: Motion, contacts: Bool[Tensor, "F 4"], wishes: Wishes, ground: Ground) -> list[Nail]:
    """Where the feet stand, given the places that constraints name: those of whole poses, and of feet on their own."""
    body, poses = warped.skeleton, forward_kinematics(warped)
    kept: dict[int, Kept] = {}
    for side in SIDES:
        for part in ("foot", "toe"):
            if not body.has(f"{side}_{part}"):
                continue
            joint, foot = body.role(f"{side}_{part}"), body.roles.get(f"{side}_foot", body.role(f"{side}_{part}"))
            place, turn = wishes.places[f"{side}_foot"], wishes.turns[f"{side}_foot"]
            p, R = poses.p_world_joint, torch.where(turn.known[:, None, None], turn.values, poses.R_world_joint[:, foot])
            arm = R @ (poses.R_world_joint[:, foot].transpose(-1, -2) @ (p[:, joint] - p[:, foot])[..., None])
            there = torch.where((place.known & ~wishes.whole)[:, None], place.values + arm[..., 0], p[:, joint])
            kept[joint] = (place.known | wishes.whole, there)
    return nail_feet(body, poses.p_world_joint, contacts, warped.fps, ground, kept, wishes.contacts.known)


def _stiffness(body: Skeleton, wishes: Wishes, *, legs: bool) -> dict[int, float]:
    """Which joints may be turned, and how unwillingly."""
    asked = {effector: bool(wishes.places[effector].known.any() | wishes.turns[effector].known.any()) for effector in wishes.places}
    stiffness: dict[int, float] = {}
    for side in SIDES:
        if (legs or asked["left_foot"] or asked["right_foot"]) and body.has(f"{side}_hip", f"{side}_foot"):
            stiffness |= dict.fromkeys(body.path(body.role(f"{side}_hip"), body.role(f"{side}_foot")), STIFFNESS["leg"])
        if asked[f"{side}_hand"]:
            parts = [part for part in ("chest", "collar", "shoulder", "elbow", "hand") if body.has(part if part == "chest" else f"{side}_{part}")]
            joints = [body.role(part if part == "chest" else f"{side}_{part}") for part in parts]
            if body.has("hips", "chest"):
                stiffness |= dict.fromkeys(body.path(body.role("hips"), body.role("chest"))[1:], STIFFNESS["spine"])
            for part, top, end in zip(parts, joints, [*joints[1:], joints[-1]], strict=True):
                own = [j for j in body.path(top, end) if j != end or part == "hand"]
                stiffness |= dict.fromkeys(own, STIFFNESS["spine" if part == "chest" else part])
    hinged = None if body.hinges is None else {body.index[name] for name in body.hinges.joints}
    return {j: value for j, value in stiffness.items() if hinged is None or j in hinged}


def _hold(wishes: Wishes, turns: int) -> Float[Tensor, "F N"]:
    """What must not be given up to reach something else: whole poses, the place of the hips, the path."""
    hold = torch.zeros(len(wishes.whole), 3 + turns, dtype=torch.float64)
    if bool(wishes.path.known.any()):
        hold[:, [0, 2]] = 100.0  # the path is smoothed over the frames around it
    hold[wishes.path.known.nonzero()[:, :1], torch.tensor([[0, 2]])] = HARD
    hold[wishes.places["hips"].known, :3] = HARD
    hold[wishes.whole] = HARD
    return hold


def _targets(given: Motion, warped: Motion, now: Motion, nails: list[Nail], wishes: Wishes, slack: float) -> list[Target]:
    """`slack` [m]: how far beyond a leg's reach a foot is still asked to stand, for the hips will follow."""
    body, unit = warped.skeleton, 1 / body_scale(warped.skeleton)
    p_given, p_now, poses = forward_kinematics(given).p_world_joint, forward_kinematics(now).p_world_joint, forward_kinematics(warped)
    targets: list[Target] = []
    for nail in nails:
        top = body.roles.get(f"{nail.side}_hip", 0)
        reach = torch.maximum((p_given[:, nail.joint] - p_given[:, top]).norm(dim=-1), torch.tensor(STRETCH * _length(body, top, nail.joint)))
        weight = torch.where(nail.planted, FIRM, SWINGING if nail.joint == body.roles.get(f"{nail.side}_foot") else 0.0) * unit
        p_world = within_reach(nail.p_world, p_now[:, top], reach + slack, LIFT / unit)
        targets.append(PositionTarget(joint=nail.joint, p_world=p_world, weight=weight * ~(wishes.whole | wishes.places[f"{nail.side}_foot"].known)))
    for effector, place in wishes.places.items():
        turn = wishes.turns[effector]
        if effector == "hips" or not body.has(effector):
            continue
        joint = body.role(effector)
        if bool(place.known.any()):
            top = body.roles.get(effector.replace("hand", "shoulder").replace("foot", "hip"), 0)
            reach = torch.full((len(now),), _length(body, top, joint) + LEAN / unit, dtype=torch.float64)
            p_world = within_reach(place.values, poses.p_world_joint[:, top], reach, 10.0)
            targets.append(PositionTarget(joint=joint, p_world=p_world, weight=HARD * unit * (place.known & ~wishes.whole)))
        soft = SOFT if effector.endswith("foot") else 0.0
        if soft or bool(turn.known.any()):
            R_world = torch.where(turn.known[:, None, None], turn.values, poses.R_world_joint[:, joint])
            targets.append(RotationTarget(joint=joint, R_world=R_world, weight=torch.where(turn.known & ~wishes.whole, HARD, soft).double()))
    return targets


def _length(body: Skeleton, top: int, joint: int) -> float:
    """The length of a limb in line [m]."""
    return float(body.offsets[body.path(top, joint)[1:]].norm(dim=-1).sum())
