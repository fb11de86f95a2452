"""What every test shares: one thread per worker (two fight over two cores), a fixed seed, and where optional data lies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings
from jaxtyping import config

torch.set_num_threads(1)
settings.register_profile("bunraku", deadline=None, derandomize=True, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("bunraku")

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(autouse=True)
def _fixed_seed() -> None:
    torch.manual_seed(0)


@pytest.fixture
def shared() -> Path:
    """The folder of real motion capture and characters, for tests that run on it when it is there."""
    if not SHARED.is_dir():
        pytest.skip("the shared data folder is not here")
    return SHARED


@pytest.fixture
def unchecked_shapes() -> Iterator[None]:
    """Shapes as users meet them: in an ordinary run nothing but our own sentences checks them."""
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)
