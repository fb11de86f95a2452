"""Which features a network is told in training: constraints as users set them, drawn at random for a whole batch at once (kimodo §4.3).

A pattern says *what* is known (groups of columns, as `generator.conditioning` writes them) and *when* (frames). One in ten clips is
told nothing but its sentence, one in four two patterns at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from bunraku.errors import BadValue
from bunraku.generator.features import FeatureLayout
from bunraku.kinematics.effectors import effector_joints
from bunraku.training.moving import moved

ENDS = ("left_hand", "right_hand", "left_foot", "right_foot")
NONE_SHARE, MIXED_SHARE = 0.10, 0.25
MOST_KEYS = 20  # keyframes of a sparse pattern at the end of training
LONGEST_LEAD = 5  # [frames] of a piece before, on which the next one goes on
_DENSE = (0.2, 0.8)  # share of the clip that a dense path covers


@dataclass(frozen=True, kw_only=True, eq=False)
class Groups:
    """The columns that constraints make known together, by name."""

    names: tuple[str, ...]
    columns: Bool[Tensor, "G D"]

    @staticmethod
    def of(layout: FeatureLayout) -> Groups:
        table: dict[str, Tensor] = {}

        def add(name: str, *parts: slice | list[int]) -> None:
            row = torch.zeros(layout.width, dtype=torch.bool)
            for part in parts:
                row[part] = True
            table[name] = row

        add("path", [0, 2])
        add("height", [1])
        add("heading", layout.heading)
        add("positions", layout.joint_positions)
        add("contacts", layout.contacts)
        for end in ENDS:
            if not layout.skeleton.has(end):
                continue
            base, *far = effector_joints(layout.skeleton, end)
            tied = [joint for joint in far if layout.skeleton.parents[joint] == base]
            add(f"{end} keyed", *(layout.position_columns(joint) for joint in (base, *far)))
            add(f"{end} placed", layout.position_columns(base))
            add(f"{end} tied", *(layout.position_columns(joint) for joint in tied))
            add(f"{end} turned", layout.rotation_columns(base))
        return Groups(names=tuple(table), columns=torch.stack(list(table.values())))

    def row(self, *names: str) -> Bool[Tensor, " G"]:
        """Those groups marked; names that this skeleton lacks are passed over."""
        return torch.tensor([name in names for name in self.names])


@dataclass(frozen=True, kw_only=True, eq=False)
class Pattern:
    """S patterns on top of each other for each of B clips."""

    frames: Bool[Tensor, "S B F"]
    groups: Bool[Tensor, "S B G"]

    def mask(self, groups: Groups) -> Bool[Tensor, "B F D"]:
        """Which features are known."""
        columns = (self.groups.float() @ groups.columns.to(self.groups.device).float()) > 0
        return (self.frames[..., None] & columns[:, :, None]).any(dim=0)

    def to(self, device: torch.device) -> Pattern:
        return Pattern(frames=moved(self.frames, device), groups=moved(self.groups, device))


class PatternSampler:
    """Draws patterns for clips of one body."""

    def __init__(self, groups: Groups, families: dict[str, float] | None = None) -> None:
        shares = FAMILIES if families is None else families
        if unknown := sorted(set(shares) - set(FAMILIES)):
            raise BadValue(f"there is no family of constraints '{unknown[0]}'; there are {', '.join(FAMILIES)}.")
        self.groups = groups
        self.names = tuple(shares)
        self.shares = torch.tensor(list(shares.values()), dtype=torch.float64)

    def draw(self, clips: int, frames: int, most_keys: int, generator: torch.Generator) -> Pattern:
        """`most_keys` grows in training from 1 to MOST_KEYS; fewer are drawn more often."""
        parts = [self._one(clips, frames, most_keys, generator) for _ in range(2)]
        dice = torch.rand(clips, generator=generator)
        told = torch.stack([dice >= NONE_SHARE, dice >= 1 - MIXED_SHARE])
        return Pattern(frames=torch.stack([part[0] for part in parts]) & told[..., None], groups=torch.stack([part[1] for part in parts]))

    def _one(self, clips: int, frames: int, most_keys: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """When (B F) and what (B G) of one pattern for each clip."""
        family = torch.multinomial(self.shares, clips, replacement=True, generator=generator)
        when = {
            "keys": _keys(clips, frames, most_keys, generator),
            "ends": _both_ends(clips, frames, generator),
            "lead": _lead(clips, frames, generator),
            "stretch": _stretch(clips, frames, generator),
        }
        chance = torch.rand(clips, len(_CHANCES), generator=generator)
        what = torch.stack([_GROUPS[name](self.groups, chance) for name in self.names])
        timing = torch.stack([when[_TIMING[name]] for name in self.names])
        rows = torch.arange(clips)
        return timing[family, rows], what[family, rows]


# --- when ------------------------------------------------------------------------------------------------------------


def _keys(clips: int, frames: int, most: int, generator: torch.Generator) -> Bool[Tensor, "B F"]:
    """A few frames anywhere: k of them with a chance in proportion to 1 / k."""
    most = max(min(most, frames), 1)
    count = torch.multinomial(1 / torch.arange(1, most + 1), clips, replacement=True, generator=generator) + 1
    rank = torch.rand(clips, frames, generator=generator).argsort(dim=1).argsort(dim=1)
    return rank < count[:, None]


def _both_ends(clips: int, frames: int, generator: torch.Generator) -> Bool[Tensor, "B F"]:
    """A block at the start, at the end, or both, each up to a quarter of the clip: motion in between is wanted."""
    longest = max(frames // 4, 1)
    first, last = (torch.randint(1, longest + 1, (clips, 1), generator=generator) for _ in range(2))
    which = torch.randint(0, 4, (clips, 1), generator=generator)  # 0: start, 1: end, 2 and 3: both
    at = torch.arange(frames)
    return ((at < first) & (which != 1)) | ((at >= frames - last) & (which != 0))


def _lead(clips: int, frames: int, generator: torch.Generator) -> Bool[Tensor, "B F"]:
    """The first few frames: the end of a piece that this one goes on from (`generator.stitch`); in one of four also the last few."""
    count = torch.randint(1, LONGEST_LEAD + 1, (2, clips, 1), generator=generator)
    led_to = torch.rand(clips, 1, generator=generator) < 0.25
    at = torch.arange(frames)
    return (at < count[0]) | ((at >= frames - count[1]) & led_to)


def _stretch(clips: int, frames: int, generator: torch.Generator) -> Bool[Tensor, "B F"]:
    """One unbroken stretch; in one of ten clips all of it."""
    low, high = _DENSE
    share = low + (high - low) * torch.rand(clips, 1, generator=generator)
    share = torch.where(torch.rand(clips, 1, generator=generator) < 0.1, torch.ones_like(share), share)
    length = (share * frames).round().clamp_min(1)
    start = (torch.rand(clips, 1, generator=generator) * (frames - length + 1)).floor()
    at = torch.arange(frames)
    return (at >= start) & (at < start + length)


# --- what ------------------------------------------------------------------------------------------------------------

_CHANCES = ("heading", "kind", "turned", *ENDS)  # columns of the dice that the functions below read


def _some_ends(chance: Float[Tensor, "B C"]) -> list[Bool[Tensor, " B"]]:
    """Which hands and feet: each with a chance of a half, and one at least."""
    dice = chance[:, -len(ENDS) :]
    most = dice.argmax(dim=1)
    return [(dice[:, k] > 0.5) | (most == k) for k in range(len(ENDS))]


def _marked(groups: Groups, clips: int, *names: str) -> Bool[Tensor, "B G"]:
    return groups.row(*names).expand(clips, -1).clone()


def _path(groups: Groups, chance: Float[Tensor, "B C"]) -> Bool[Tensor, "B G"]:
    with_heading = chance[:, 0] < 0.5
    return _marked(groups, len(chance), "path") | (with_heading[:, None] & groups.row("heading"))


def _effectors_keyed(groups: Groups, chance: Float[Tensor, "B C"]) -> Bool[Tensor, "B G"]:
    """As released files say it: the end with its turn, and where the body is around it."""
    marked = _marked(groups, len(chance), "path", "height", "heading")
    for end, chosen in zip(ENDS, _some_ends(chance), strict=True):
        marked |= chosen[:, None] & groups.row(f"{end} keyed", f"{end} turned")
    return marked


def _effectors_alone(groups: Groups, chance: Float[Tensor, "B C"]) -> Bool[Tensor, "B G"]:
    """A place, a turn or both, and nothing of the rest of the body."""
    kind = chance[:, 1]
    marked = torch.zeros(len(chance), len(groups.names), dtype=torch.bool)
    for end, chosen in zip(ENDS, _some_ends(chance), strict=True):
        marked |= (chosen & (kind < 0.8))[:, None] & groups.row(f"{end} placed")
        marked |= (chosen & (kind >= 0.5) & (kind < 0.8))[:, None] & groups.row(f"{end} tied")
        marked |= (chosen & (kind >= 0.5))[:, None] & groups.row(f"{end} turned")
    return marked


def _pose(groups: Groups, chance: Float[Tensor, "B C"]) -> Bool[Tensor, "B G"]:
    return _marked(groups, len(chance), "path", "height", "heading", "positions")


def _pose_and_ends(groups: Groups, chance: Float[Tensor, "B C"]) -> Bool[Tensor, "B G"]:
    return _pose(groups, chance) | groups.row(*(f"{end} turned" for end in ENDS))


def _heading(groups: Groups, chance: Float[Tensor, "B C"]) -> Bool[Tensor, "B G"]:
    return _marked(groups, len(chance), "heading")


def _contacts(groups: Groups, chance: Float[Tensor, "B C"]) -> Bool[Tensor, "B G"]:
    return _marked(groups, len(chance), "contacts")


_GROUPS: dict[str, Callable[[Groups, Tensor], Tensor]] = {
    "pose keys": _pose,
    "in between": _pose,
    "lead": _pose_and_ends,
    "effector keys": _effectors_keyed,
    "effectors alone": _effectors_alone,
    "waypoints": _path,
    "path": _path,
    "headings": _heading,
    "contacts": _contacts,
}
_TIMING = {
    **dict.fromkeys(("pose keys", "effector keys", "effectors alone", "waypoints", "headings", "contacts"), "keys"),
    "in between": "ends",
    "lead": "lead",
    "path": "stretch",
}
# how often each is drawn: the paper's five families about equally, each shared among its variants
FAMILIES: dict[str, float] = {
    "pose keys": 0.6,
    "in between": 0.2,
    "lead": 0.3,
    "effector keys": 0.7,
    "effectors alone": 0.5,
    "waypoints": 0.9,
    "path": 1.0,
    "headings": 0.2,
    "contacts": 0.5,
}


def most_keys_at(progress: float) -> int:
    """The largest number of keyframes after a share of the training with constraints: 1 at first, MOST_KEYS at its end."""
    return round(1 + (MOST_KEYS - 1) * min(max(progress, 0.0), 1.0))


