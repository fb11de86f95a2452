"""What knows how things move: video diffusion models behind one interface, which lend their taste to motion."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bunraku.priors.prior import PriorSpec, VideoPrior

__all__ = ["PriorSpec", "VideoPrior"]


def __getattr__(name: str) -> object:
    """Looked up when first used: naming one does not wait for torch."""
    if name in __all__:
        from bunraku.priors import prior

        return getattr(prior, name)
    raise AttributeError(f"module 'bunraku.priors' has no attribute '{name}'")
