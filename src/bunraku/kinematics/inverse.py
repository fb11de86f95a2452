"""Inverse kinematics for a whole clip at once: joint turns that reach world targets and stay smooth in time.

Unknowns are, per frame, the world displacement of one moving joint (the hips) and the turns of the chosen joints: three per
ball joint, one per hinge. They minimise, by Gauss–Newton with Levenberg damping,

    Σ |w (p − p*)|²  +  Σ |w log(R R*ᵀ)|²  +  Σ stay² |e|²  +  Σ smooth² |e(f−1) − 2 e(f) + e(f+1)|²

where e(f) is how far frame f has been turned and moved away from a reference motion. Because smoothness is asked of the
*change*, a brisk reference stays brisk. Frames couple only to their two neighbours on either side, so the normal matrix is
banded and one Cholesky factorisation of it costs time linear in the number of frames. Hinges keep within their limits: every
step minimises the quadratic model over the box that the limits leave.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg
import torch
from jaxtyping import Bool, Float
from threadpoolctl import threadpool_limits
from torch import Tensor

from bunraku.errors import BunrakuError
from bunraku.kinematics.forward import WorldPoses, forward_kinematics
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.skeleton import Skeleton
from bunraku.math.curves import smooth_step
from bunraku.math.rotations import exp_quat, log_matrix, log_quat, quat_conjugate, quat_multiply, slerp

MAX_WINDOW = 600  # frames solved together; longer clips are solved in windows that overlap
WINDOW_OVERLAP = 60
ACTIVE_SET_ROUNDS = 3


@dataclass(frozen=True, kw_only=True, eq=False)
class PositionTarget:
    """A joint should be at a place in the world."""

    joint: int
    p_world: Float[Tensor, "F 3"]  # [m]
    weight: Float[Tensor, " F"]  # [1/m]; 0 where there is no wish


@dataclass(frozen=True, kw_only=True, eq=False)
class RotationTarget:
    """A joint should be turned a certain way in the world."""

    joint: int
    R_world: Float[Tensor, "F 3 3"]
    weight: Float[Tensor, " F"]  # [1/rad]


@dataclass(frozen=True, kw_only=True)
class Effort:
    """What a solution may cost: how strongly it holds on to the reference, how smooth the change is, how long to try."""

    stay: float = 0.1  # [1/rad]
    stay_moving: float = 1.0  # [1/m] for the displacement of the moving joint
    smooth: float = 2.0  # [frame²/rad]
    smooth_moving: float = 20.0  # [frame²/m]
    iterations: int = 12
    tolerance: float = 1e-5  # stop when the cost falls by less than this share
    limit_rounds: int = ACTIVE_SET_ROUNDS  # of finding out which hinges end on a limit; after the usual ones, none is let off again
    damping: float = 1e-3  # Levenberg's, to begin with: less where targets are weighed so heavily that their share of it would hold up all else


@dataclass(frozen=True, kw_only=True, eq=False)
class Freedom:
    """The unknowns of one frame: which joints turn about which of their own axes, and which joint is carried about."""

    skeleton: Skeleton
    moving: int
    joint: Tensor  # (D,) joint of each unknown turn
    axis: Float[Tensor, "D 3"]  # in the joint's frame
    lower: Float[Tensor, " D"]  # [rad]; −inf for ball joints
    upper: Float[Tensor, " D"]
    stiffness: Float[Tensor, " D"]  # multiplies the effort of each turn: a spine bends less willingly than a knee
    moves: Bool[Tensor, "D J"]  # does this turn displace the origin of joint j?
    turns: Bool[Tensor, "D J"]  # does it turn joint j?

    @staticmethod
    def of(skeleton: Skeleton, stiffness: Mapping[int, float], moving: int) -> Freedom:
        """All turns of the joints named in `stiffness` (three per ball joint, one per hinge), and the displacement of `moving`."""
        hinged = {} if skeleton.hinges is None else {skeleton.index[name]: h for h, name in enumerate(skeleton.hinges.joints)}
        rows: list[tuple[int, Tensor, float, float]] = []
        for j in sorted(stiffness):
            if j in hinged and skeleton.hinges is not None:
                h = hinged[j]
                rows.append((j, skeleton.hinges.axes[h].double(), float(skeleton.hinges.lower[h]), float(skeleton.hinges.upper[h])))
            else:
                rows += [(j, axis, -torch.inf, torch.inf) for axis in torch.eye(3, dtype=torch.float64)]
        below = torch.zeros(len(skeleton), len(skeleton), dtype=torch.bool)  # below[a, j]: j is a or hangs under a
        for j in range(len(skeleton)):
            below[skeleton.ancestors(j), j] = True
        joint = torch.tensor([row[0] for row in rows])
        turns = below[joint]
        moves = turns.clone()
        moves[torch.arange(len(rows)), joint] = False
        return Freedom(
            skeleton=skeleton,
            moving=moving,
            joint=joint,
            axis=torch.stack([row[1] for row in rows]),
            lower=torch.tensor([row[2] for row in rows], dtype=torch.float64),
            upper=torch.tensor([row[3] for row in rows], dtype=torch.float64),
            stiffness=torch.tensor([stiffness[row[0]] for row in rows], dtype=torch.float64),
            moves=moves,
            turns=turns,
        )


Target = PositionTarget | RotationTarget


def solve(
    start: Motion,
    targets: Sequence[Target],
    freedom: Freedom,
    effort: Effort = Effort(),
    reference: Motion | None = None,
    on_progress: Callable[[float], None] | None = None,
    hold: Float[Tensor, "F N"] | None = None,
) -> Motion:
    """The motion near `reference` (default: `start`) that comes closest to the targets, found from `start`.

    `on_progress` is told the share of the frames that are done. `hold` adds to the effort to stay, frame by frame: [1/m] for the
    three displacements of the moving joint, then [1/rad] for each turn of `freedom`.
    """
    with threadpool_limits(1):  # small matrices: more threads only wait for each other, and on a busy machine very long
        return _solve(start, targets, freedom, effort, start if reference is None else reference, on_progress, hold)


def _solve(
    start: Motion,
    targets: Sequence[Target],
    freedom: Freedom,
    effort: Effort,
    reference: Motion,
    on_progress: Callable[[float], None] | None,
    hold: Float[Tensor, "F N"] | None,
) -> Motion:
    start64, reference64 = start.to(torch.float64), reference.to(torch.float64)
    targets64 = [replace(t, **{k: v.double() for k, v in vars(t).items() if isinstance(v, Tensor)}) for t in targets]
    solved: Motion | None = None
    for first in range(0, max(len(start) - WINDOW_OVERLAP, 1), MAX_WINDOW - WINDOW_OVERLAP):
        frames = slice(first, min(first + MAX_WINDOW, len(start)))
        window = _Window(start64[frames], reference64[frames], [_cut(t, frames) for t in targets64], freedom, effort, None if hold is None else hold[frames])
        solved = window.solve() if solved is None else _crossfade(solved, window.solve(), first)
        if on_progress is not None:
            on_progress(frames.stop / len(start))
    assert solved is not None
    return replace(solved.to(start.quats.dtype), contacts=start.contacts)


class _Window:
    """One run of Gauss–Newton over frames that are solved together. N = 3 + D unknowns a frame, displacement first."""

    def __init__(self, start: Motion, reference: Motion, targets: list[Target], freedom: Freedom, effort: Effort, hold: Tensor | None) -> None:
        self.start, self.reference, self.targets, self.freedom, self.effort = start, reference, targets, freedom, effort
        self.stay = torch.cat([torch.full((3,), effort.stay_moving), effort.stay * freedom.stiffness]).double()
        if hold is not None:
            self.stay = torch.hypot(self.stay.expand(hold.shape), hold.double())  # (F N) from here on, instead of (N,)
        self.smooth = torch.cat([torch.full((3,), effort.smooth_moving), effort.smooth * freedom.stiffness]).double()

    def solve(self) -> Motion:
        motion, damping = _within_limits(self.start, self.freedom), self.effort.damping
        cost, system = self._linearize(motion)
        for _ in range(self.effort.iterations):
            step = self._step(motion, *system, damping)
            candidate = _within_limits(_apply(motion, step, self.freedom), self.freedom)
            new_cost, new_system = self._linearize(candidate)
            if not np.isfinite(new_cost):
                raise BunrakuError("inverse kinematics met numbers that are not finite; check the motion and its targets with `bunraku check`.")
            if new_cost < cost:
                gain = (cost - new_cost) / max(cost, 1e-12)
                motion, cost, system, damping = candidate, new_cost, new_system, max(damping / 5, 1e-9)
                if gain < self.effort.tolerance:
                    break
            else:
                damping *= 10
                if damping > 1e6:
                    break
        return motion

    def _linearize(self, motion: Motion) -> tuple[float, tuple[Tensor, Tensor]]:
        """Cost, and the frame blocks of the normal equations: H (F N N) without smoothness, gradient (F N) with it."""
        poses = forward_kinematics(motion)
        e = _displacement(motion, self.reference, poses, self.freedom)
        rows, residuals = _target_rows(poses, self.targets, self.freedom), misses(poses, self.targets)
        H = torch.einsum("frn,frm->fnm", rows, rows)
        gradient = torch.einsum("frn,fr->fn", rows, residuals)
        H.diagonal(dim1=-2, dim2=-1).add_(self.stay**2)
        bend = _second_difference(e) * self.smooth
        gradient = gradient + e * self.stay**2 + _second_difference_transposed(bend * self.smooth, len(e))
        cost = residuals.square().sum() + (e * self.stay).square().sum() + bend.square().sum()
        return float(cost), (H, gradient)

    def _step(self, motion: Motion, H: Tensor, gradient: Tensor, damping: float) -> Float[Tensor, "F N"]:
        """The minimiser of the quadratic model within the hinge limits, by a primal–dual active set: guess which hinges end on
        a limit, solve for the others, and let the signs of step and multiplier correct the guess."""
        low, high = _room(motion, self.freedom)
        weight = damping * (H.diagonal(dim1=-2, dim2=-1) + 1e-6)
        bounded = bool(torch.isfinite(low).any() or torch.isfinite(high).any())
        at_low, at_high = torch.zeros_like(low, dtype=torch.bool), torch.zeros_like(low, dtype=torch.bool)
        for attempt in range(self.effort.limit_rounds if bounded else 1):
            free = ~(at_low | at_high)
            held = torch.where(at_low, low, torch.where(at_high, high, torch.zeros_like(low)))
            slope = gradient + self._model(H, weight, held)
            band = _banded(H, self.smooth**2, weight, free)
            flat = scipy.linalg.solveh_banded(band, -(slope * free).numpy().ravel(), lower=True, overwrite_ab=True, check_finite=False)
            step = torch.from_numpy(flat).view_as(gradient) * free + held
            if not bounded:
                break
            push = -(gradient + self._model(H, weight, step)) / (H.diagonal(dim1=-2, dim2=-1) + 1e-6)
            was = at_low, at_high
            at_low, at_high = step + push < low - 1e-12, step + push > high + 1e-12
            if attempt >= ACTIVE_SET_ROUNDS - 1:  # guesses that go round in circles: what is beyond its limit joins those that are held
                at_low, at_high = was[0] | (step < low - 1e-9), was[1] | (step > high + 1e-9)
            if torch.equal(was[0], at_low) and torch.equal(was[1], at_high):
                break
        return step

    def _model(self, H: Tensor, weight: Tensor, step: Tensor) -> Float[Tensor, "F N"]:
        """The matrix of the quadratic model times a step."""
        bent = _second_difference_transposed(_second_difference(step), len(step)) * self.smooth**2
        return (H @ step[..., None]).squeeze(-1) + bent + weight * step


def _cut(target: Target, frames: slice) -> Target:
    return replace(target, **{name: value[frames] for name, value in vars(target).items() if isinstance(value, Tensor)})


def _crossfade(earlier: Motion, later: Motion, first: int) -> Motion:
    """One motion from two that overlap from frame `first` of the earlier one, blended over the overlap."""
    overlap = len(earlier) - first
    t = smooth_step(torch.arange(1, overlap + 1, dtype=later.quats.dtype) / (overlap + 1))

    def blend(a: Tensor, b: Tensor) -> Tensor:
        mixed = a[first:] + (b[:overlap] - a[first:]) * t.reshape(-1, *[1] * (a.dim() - 1))
        return torch.cat([a[:first], mixed, b[overlap:]])

    quats = slerp(earlier.quats[first:], later.quats[:overlap], t[:, None].expand(-1, later.quats.shape[1]))
    translations = later.translations
    if translations is not None and earlier.translations is not None:
        translations = blend(earlier.translations, translations)
    return replace(
        later,
        root_position=blend(earlier.root_position, later.root_position),
        quats=torch.cat([earlier.quats[:first], quats, later.quats[overlap:]]),
        translations=translations,
    )


# --- the pieces of the linear system ---------------------------------------------------------------------------------


def misses(poses: WorldPoses, targets: Sequence[Target]) -> Float[Tensor, "F R"]:
    """How far each target is missed, times its weight: three numbers a target."""
    p, R = poses.p_world_joint, poses.R_world_joint
    missed = [torch.zeros(len(p), 0, dtype=p.dtype)]
    for target in targets:
        away = p[:, target.joint] - target.p_world if isinstance(target, PositionTarget) else log_matrix(R[:, target.joint] @ target.R_world.transpose(-1, -2))
        missed.append(away * target.weight[:, None])
    return torch.cat(missed, dim=1)


def _target_rows(poses: WorldPoses, targets: list[Target], freedom: Freedom) -> Float[Tensor, "F R N"]:
    """The derivative of `misses`: turning about a world axis a at p_d moves p by a × (p − p_d)."""
    p, R = poses.p_world_joint, poses.R_world_joint
    axis = torch.einsum("fdij,dj->fdi", R[:, freedom.joint], freedom.axis)
    pivot = p[:, freedom.joint]
    carried = torch.zeros(len(freedom.skeleton), dtype=torch.bool)
    carried[[j for j in range(len(carried)) if freedom.moving in freedom.skeleton.ancestors(j)]] = True
    rows = [torch.zeros(len(p), 0, 3 + len(freedom.joint), dtype=p.dtype)]
    eye = torch.eye(3, dtype=p.dtype)
    for target in targets:
        j = target.joint
        if isinstance(target, PositionTarget):
            turn = torch.linalg.cross(axis, p[:, j, None] - pivot) * freedom.moves[:, j, None]
            shift = (eye * carried[j]).expand(len(p), 3, 3)
        else:
            turn = axis * freedom.turns[:, j, None]
            shift = torch.zeros(len(p), 3, 3, dtype=p.dtype)
        rows.append(torch.cat([shift, turn.transpose(-1, -2)], dim=-1) * target.weight[:, None, None])
    return torch.cat(rows, dim=1)


def _second_difference(e: Float[Tensor, "F N"]) -> Float[Tensor, "G N"]:
    return e[:-2] - 2 * e[1:-1] + e[2:] if len(e) > 2 else e[:0]


def _second_difference_transposed(b: Float[Tensor, "G N"], frames: int) -> Float[Tensor, "F N"]:
    out = torch.zeros(frames, b.shape[1], dtype=b.dtype)
    if len(b):
        out[:-2] += b
        out[1:-1] -= 2 * b
        out[2:] += b
    return out


def _banded(H: Float[Tensor, "F N N"], smooth: Float[Tensor, " N"], damping: Float[Tensor, "F N"], free: Bool[Tensor, "F N"]) -> np.ndarray:
    """LAPACK's lower band storage of blockdiag(H) + smoothness + damping, with held unknowns cut out: band[k, c] = A[c + k, c]."""
    F, N, _ = H.shape
    band = torch.zeros(2 * N + 1 if F > 2 else N, F, N, dtype=H.dtype)
    for k in range(N):
        band[k, :, : N - k] = H.diagonal(offset=-k, dim1=-2, dim2=-1)
    band[0] += damping
    if F > 2:
        for lag in range(3):
            band[lag * N, : F - lag] += _fourth_difference(F, lag)[:, None] * smooth
    flat_free = free.reshape(-1).to(H.dtype)
    matrix = band.reshape(band.shape[0], -1)
    for k in range(1, matrix.shape[0]):
        matrix[k, : F * N - k] *= flat_free[k:] * flat_free[: F * N - k]
    matrix[0] = torch.where(flat_free > 0, matrix[0], torch.ones_like(matrix[0]))
    return matrix.numpy()


def _fourth_difference(frames: int, lag: int) -> Float[Tensor, " G"]:
    """Diagonal `lag` of D2ᵀD2, where D2 takes second differences and both ends are free."""
    bend = (1.0, -2.0, 1.0)
    diagonal = torch.zeros(frames - lag, dtype=torch.float64)
    for i in range(3 - lag):
        diagonal[i : i + frames - 2] += bend[i] * bend[i + lag]
    return diagonal


# --- the unknowns ----------------------------------------------------------------------------------------------------


def _displacement(motion: Motion, reference: Motion, poses: WorldPoses, freedom: Freedom) -> Float[Tensor, "F N"]:
    """How far the motion is from the reference, in the unknowns: world metres, then radians about each unknown's axis."""
    shift = poses.p_world_joint[:, freedom.moving] - forward_kinematics(reference).p_world_joint[:, freedom.moving]
    turn = log_quat(quat_multiply(quat_conjugate(reference.quats), motion.quats))[:, freedom.joint]
    return torch.cat([shift, (turn * freedom.axis).sum(-1)], dim=-1)


def _apply(motion: Motion, step: Float[Tensor, "F N"], freedom: Freedom) -> Motion:
    turns = torch.zeros(len(motion), len(freedom.skeleton), 3, dtype=step.dtype)
    turns.index_add_(1, freedom.joint, step[:, 3:, None] * freedom.axis)
    moved = displace(motion, freedom.moving, step[:, :3])
    return replace(moved, quats=quat_multiply(motion.quats, exp_quat(turns)))


def displace(motion: Motion, joint: int, shift_world: Float[Tensor, "F 3"]) -> Motion:
    """The motion with a joint, and all that hangs below it, moved by a world displacement [m]."""
    if joint == 0:
        return replace(motion, root_position=motion.root_position + shift_world)
    translations = motion.skeleton.offsets.to(motion.quats).expand(len(motion), -1, 3) if motion.translations is None else motion.translations
    R_world_parent = forward_kinematics(motion).R_world_joint[:, motion.skeleton.parents[joint]]
    translations = translations.clone()
    translations[:, joint] += (R_world_parent.transpose(-1, -2) @ shift_world[..., None]).squeeze(-1)
    return replace(motion, translations=translations)


# --- hinge limits ----------------------------------------------------------------------------------------------------


def _angles(motion: Motion, freedom: Freedom) -> Float[Tensor, "F D"]:
    """The angle of each unknown from the rest pose (only used where it is a hinge)."""
    turn = log_quat(quat_multiply(quat_conjugate(motion.skeleton.rest_quats.to(motion.quats)), motion.quats))
    return (turn[:, freedom.joint] * freedom.axis).sum(-1)


def _within_limits(motion: Motion, freedom: Freedom) -> Motion:
    if not torch.isfinite(freedom.lower).any():
        return motion
    excess = _angles(motion, freedom)
    excess = torch.minimum(torch.maximum(excess, freedom.lower), freedom.upper) - excess
    return _apply(motion, torch.cat([torch.zeros(len(motion), 3, dtype=excess.dtype), excess], dim=-1), freedom)


def _room(motion: Motion, freedom: Freedom) -> tuple[Float[Tensor, "F N"], Float[Tensor, "F N"]]:
    """How far each unknown may still go down and up [rad]; without bound for displacements and ball joints."""
    angle = _angles(motion, freedom)
    boundless = torch.full((len(angle), 3), torch.inf, dtype=angle.dtype)
    return torch.cat([-boundless, freedom.lower - angle], dim=-1), torch.cat([boundless, freedom.upper - angle], dim=-1)
