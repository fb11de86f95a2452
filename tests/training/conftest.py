"""What the tests of training share: one small dataset, and settings that train in a blink."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_data import small_dataset

from bunraku.datasets.store import Dataset


@pytest.fixture(scope="session")
def walks(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return small_dataset(Path(tmp_path_factory.mktemp("data")) / "walks")
