"""Scenes that rasterisers may stumble over, and what a loss of their pictures says of everything that gradients reach."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from bunraku.splats import Camera, Rendering, Splats, random_splats, render

WIDTH, HEIGHT = 53, 37  # neither fills its tiles


def before(eye: tuple[float, float, float] = (0.3, 0.8, 3.2)) -> Camera:
    return Camera.look_at(eye, (0.0, 0.0, 0.0), WIDTH, HEIGHT)


def one(size: tuple[float, float, float] = (0.2, 0.3, 0.1), logit: float = 1.0, place: tuple[float, float, float] = (0.1, -0.05, 0.0)) -> Splats:
    return Splats(
        means=torch.tensor([place]), factors=torch.diag(torch.tensor(size))[None], opacity_logits=torch.tensor([logit]), sh=torch.tensor([[[0.5, -0.4, 1.2]]])
    )


def joined(*parts: Splats) -> Splats:
    return Splats(**{name: torch.cat([getattr(part, name) for part in parts]) for name in ("means", "factors", "opacity_logits", "sh")})


def _needles() -> Splats:
    crowd = random_splats(40, 4)
    thin = torch.tensor([4.0, 1e-3, 1e-4])
    return replace(crowd, factors=torch.linalg.qr(crowd.factors)[0] * thin)


def _wall() -> Splats:
    """Opaque splats in many layers: pixels are finished long before the last one."""
    crowd = random_splats(1500, 5)
    return replace(crowd, factors=4 * crowd.factors, opacity_logits=torch.full((1500,), 7.0))


SCENES: dict[str, Callable[[], tuple[Splats, Camera]]] = {
    "crowd": lambda: (random_splats(400, 0), before()),
    "colours that depend on direction": lambda: (random_splats(150, 1, degree=3), before()),
    "degree 1": lambda: (random_splats(80, 2, degree=1), before()),
    "one": lambda: (one(), before()),
    "one in the corner": lambda: (one(place=(-0.9, 0.55, 0.2)), before()),
    "one beside the picture": lambda: (one(place=(40.0, 0.0, 0.0)), before()),
    "behind the camera": lambda: (joined(one(place=(0.3, 0.8, 5.0)), random_splats(30, 3)), before()),
    "on the near plane": lambda: (joined(one(place=(0.3, 0.8, 3.19)), random_splats(30, 3)), before()),
    "huge": lambda: (joined(one(size=(300.0, 200.0, 100.0), logit=-1.0), random_splats(30, 3)), before()),
    "needles": lambda: (_needles(), before()),
    "points": lambda: (one(size=(0.0, 0.0, 0.0)), before()),
    "camera inside": lambda: (replace(random_splats(200, 6), opacity_logits=torch.full((200,), -2.0)), before((0.05, 0.02, 0.1))),
    "invisible": lambda: (one(logit=-20.0), before()),
    "no opacity at all": lambda: (joined(one(logit=-torch.inf), one(place=(0.4, 0.0, 0.0))), before()),
    "opaque wall": lambda: (_wall(), before()),
    "same depth": lambda: (joined(one(), one(size=(0.1, 0.4, 0.2)), one(size=(0.4, 0.1, 0.2))), before()),
    "empty": lambda: (random_splats(0, 0), before()),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcome:
    rendering: Rendering
    gradients: dict[str, Tensor]

    def on(self, device: str) -> Outcome:
        shown = {name: getattr(self.rendering, name).to(device) for name in ("color", "alpha", "depth")}
        return Outcome(rendering=replace(self.rendering, **shown), gradients={name: value.to(device) for name, value in self.gradients.items()})


def outcome(splats: Splats, camera: Camera, backend: str, *, dtype: torch.dtype = torch.float32) -> Outcome:
    """A picture, and the gradient of a loss that weighs every pixel's colour, alpha and depth differently."""
    splats = splats.map(lambda value: value.detach().to(dtype).requires_grad_())
    camera = camera.to(dtype=dtype)
    camera = replace(camera, T_world_camera=camera.T_world_camera.detach().clone().requires_grad_())
    rendering = render(splats, camera, backend)  # pyright: ignore[reportArgumentType]
    generator = torch.Generator().manual_seed(1)
    loss = torch.zeros((), dtype=dtype, device=splats.means.device)
    for value in (rendering.color, rendering.alpha, rendering.depth):
        loss = loss + (value * torch.randn(value.shape, generator=generator).to(value)).sum()
    leaves = {name: getattr(splats, name) for name in ("means", "factors", "opacity_logits", "sh")} | {"T_world_camera": camera.T_world_camera}
    found = torch.autograd.grad(loss, list(leaves.values()), allow_unused=True)
    return Outcome(
        rendering=rendering, gradients={name: torch.zeros_like(leaf) if g is None else g for (name, leaf), g in zip(leaves.items(), found, strict=True)}
    )


def assert_same(left: Outcome, right: Outcome, *, color: float = 1e-4, gradient: float = 1e-3) -> None:
    """Colours and alphas within `color`, depths within as much of their size, gradients within a share of the largest of their kind.

    Where a splat's alpha is 1/255 to the last digit, one rasteriser may draw it and another not. That depends on how a processor rounds,
    and is granted to one number in a thousand.
    """
    for name in ("color", "alpha", "depth"):
        a, b = (getattr(side.rendering, name).detach().double() for side in (left, right))
        _assert_close(name, a, b, color * max(1.0, float(b.abs().max()) if b.numel() else 0.0), step=0.005)
    for name, value in left.gradients.items():
        a, b = value.double(), right.gradients[name].double()
        _assert_close(name, a, b, (gradient * float(b.abs().max()) if b.numel() else 0.0) + 1e-6, step=0.05)


def _assert_close(name: str, a: Tensor, b: Tensor, tolerance: float, step: float) -> None:
    assert a.shape == b.shape
    assert torch.isfinite(a).all(), name
    assert torch.isfinite(b).all(), name
    error = (a - b).abs()
    assert (error > tolerance).sum() <= a.numel() // 1000, (name, float(error.max()), tolerance)
    if a.numel():
        assert error.max() <= max(tolerance, step * float(b.abs().max())), (name, float(error.max()))
