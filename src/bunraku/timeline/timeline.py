"""The whole of what an author asks for, as one value: prompts one after the other, and constraints numbered through them all."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from bunraku.errors import BadValue
from bunraku.timeline.constraints import Constraint, EffectorTarget, FootPlan, Heading, PoseKey, RootPath
from bunraku.timeline.edit import retime_constraints
from bunraku.timeline.prompt import Prompt, check_count, prompt_frames

FPS = 30.0  # of every released model
_TYPES = (RootPath, Heading, PoseKey, EffectorTarget, FootPlan)


@dataclass(frozen=True, kw_only=True, eq=False)
class Timeline:
    """Prompts and constraints, and how the generator should go about them; what is None is left to the command or the model."""

    prompts: tuple[Prompt, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    fps: float = FPS  # by which the frames of the constraints count
    heading: float | None = None  # [rad] which way the body faces in the first frame
    seed: int | None = None
    loop: bool = False  # the last frame leads back into the first
    samples: int | None = None
    steps: int | None = None  # of the sampler
    first_wins: bool = False  # of constraints that disagree, as in the release; False: they are refused
    guided: bool = True  # False: one pass without guidance, whatever the weights say
    guidance_text: float | None = None
    guidance_constraint: float | None = None

    def __post_init__(self) -> None:
        for name, kinds, meaning in (("prompts", Prompt, "Prompt(text=…, seconds=…)"), ("constraints", _TYPES, "one of the constraint types")):
            values = tuple(getattr(self, name))
            wrong = next((value for value in values if not isinstance(value, kinds)), None)
            if wrong is not None:
                raise BadValue(f"a timeline's {name} are each a {meaning}; got {type(wrong).__name__}.")
            object.__setattr__(self, name, values)
        check_count(len(self.prompts))
        if not (_is_number(self.fps) and 0 < self.fps <= 1000):
            raise BadValue(f"a timeline of {self.fps} frames per second cannot be; choose more than 0 and at most 1000.")
        for name in ("heading", "guidance_text", "guidance_constraint"):
            value = getattr(self, name)
            if value is not None and not (_is_number(value) and abs(value) <= 1e6):
                raise BadValue(f"a timeline's {name} is {value}; a finite number is needed.")
        for name, least, most in (("seed", 0, 2**63 - 1), ("samples", 1, 100_000), ("steps", 1, 100_000)):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most):
                raise BadValue(f"a timeline's {name} is {str(value)[:40]}; a whole number from {least} to {most} is needed.")

    @property
    def seconds(self) -> float:
        """How long all prompts last together."""
        return math.fsum(prompt.seconds for prompt in self.prompts)

    def prompt_frames(self, fps: float | None = None) -> list[range]:
        """The frames that each prompt owns, by the timeline's frame rate or another; together every frame once."""
        return prompt_frames(self.prompts, self.fps if fps is None else fps)

    def frames(self, fps: float | None = None) -> int:
        """Frames in all."""
        if not self.prompts:
            raise BadValue("a timeline without prompts has no length; give it at least one Prompt(text=…, seconds=…).")
        return self.prompt_frames(fps)[-1].stop

    def at(self, fps: float) -> Timeline:
        """The same timeline with its constraints at the frames nearest in time at another frame rate."""
        return replace(self, fps=float(fps), constraints=tuple(retime_constraints(self.constraints, self.fps, fps)))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
