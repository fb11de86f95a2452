"""Fixtures of the laws of bodies and motion."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from jaxtyping import config


@pytest.fixture
def unchecked_shapes() -> Iterator[None]:
    """Shapes as users meet them: in an ordinary run nothing but our own sentences checks them."""
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)
