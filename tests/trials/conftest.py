"""One small dataset for all tests of evaluation."""

from __future__ import annotations

import pytest
from small_trials import walks_in

from bunraku.datasets.store import Dataset


@pytest.fixture(scope="session")
def held_out_walks(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return walks_in(tmp_path_factory.mktemp("trials") / "walks")
