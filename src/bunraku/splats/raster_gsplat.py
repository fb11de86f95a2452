"""gsplat, the rasteriser for NVIDIA cards (the extra `cuda`): our splats in its order, its pictures in ours.

Colours are worked out here, by our harmonics, so that every rasteriser sees the same ones, and gsplat gets one batch of scenes with
one camera each: a clip is one call. Its kernels are built when first used, which takes minutes once.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.splats.camera import Camera
from bunraku.splats.harmonics import color_toward
from bunraku.splats.splats import Splats


@lru_cache(maxsize=1)
def why_not() -> str | None:
    """What is missing for gsplat to draw on this machine's card, if anything is. Asking builds its kernels."""
    if find_spec("gsplat") is None:
        return "gsplat is not installed; pip install 'bunraku[cuda]'"
    try:
        from gsplat.cuda._backend import _C  # pyright: ignore[reportMissingImports]
    except (ImportError, OSError, RuntimeError) as error:
        return f"gsplat cannot build its kernels ({str(error).splitlines()[0] if str(error) else type(error).__name__}); mend that, or reinstall it"
    return "gsplat finds no CUDA toolkit (nvcc) to build its kernels with; install one, or a build of gsplat that has them" if _C is None else None


def rasterise_splats(
    splats: Splats, camera: Camera, near: float, blur: float
) -> tuple[Float[Tensor, "B H W 3"], Float[Tensor, "B H W"], Float[Tensor, "B H W"]]:
    """Colour and depth [m] times the splats' weights, and the sum of the weights (alpha)."""
    from gsplat import rasterization  # pyright: ignore[reportMissingImports]

    batch = torch.broadcast_shapes(splats.batch, camera.T_world_camera.shape[:-2])
    scenes, count = batch.numel(), len(splats)
    if scenes == 0 or count == 0:
        nothing = splats.means.new_zeros(scenes, camera.height, camera.width)
        return nothing[..., None].expand(-1, -1, -1, 3), nothing, nothing
    color = color_toward(splats.sh, splats.means, camera.p_world, splats.degree)
    pictures, alpha, _ = rasterization(
        means=splats.means.expand(*batch, -1, -1).reshape(scenes, count, 3),
        quats=None,
        scales=None,
        covars=splats.covariances.expand(*batch, -1, -1, -1).reshape(scenes, count, 3, 3),
        opacities=splats.opacities.expand(*batch, -1).reshape(scenes, count),
        colors=color.expand(*batch, -1, -1).reshape(scenes, count, 3),
        viewmats=camera.T_camera_world.expand(*batch, -1, -1).reshape(scenes, 1, 4, 4),
        Ks=camera.K.detach().expand(scenes, 1, 3, 3),
        width=camera.width,
        height=camera.height,
        near_plane=near,
        eps2d=blur,
        packed=False,
        render_mode="RGB+D",
    )
    return pictures[:, 0, :, :, :3], pictures[:, 0, :, :, 3], alpha[:, 0, :, :, 0]
