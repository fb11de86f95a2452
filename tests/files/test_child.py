"""A reader in a process of its own: what it answers, refuses, or dies of."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bunraku.errors import FormatProblem
from bunraku.files import child
from bunraku.files.child import read_in_child

HEAD = "import os, sys, numpy as np\nfrom bunraku.files.child import Refused, answer\ndef read(path, word):\n    print('chatter', file=sys.stderr)\n"


def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> dict[str, np.ndarray]:
    """What becomes of a child whose reader has this body."""
    real = subprocess.run

    def run(command: list[str], **options: object) -> object:
        assert command[:4] == [sys.executable, "-P", "-m", "some.module"]
        return real([sys.executable, "-P", "-c", f"{HEAD}    {body}\nanswer('XYZ', read)", *command[4:]], **options)

    monkeypatch.setattr(child.subprocess, "run", run)
    (tmp_path / "a b.xyz").write_text("content")
    return read_in_child("some.module", tmp_path / "a b.xyz", "wörd", advice="Do this.")


def test_arrays_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = read(tmp_path, monkeypatch, "return {'numbers': np.arange(3.0), 'word': np.array(word), 'size': np.array(os.path.getsize(path))}")
    assert arrays["numbers"].tolist() == [0, 1, 2]
    assert (str(arrays["word"]), int(arrays["size"])) == ("wörd", 7)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise Refused('has no\\n  bones')", "has no bones"),
        ("raise KeyError('x')", "cannot be read as XYZ"),
        ("raise ValueError('9.25, ' * 10_000)", "9.25, 9[.25, ]*…"),
        ("os.abort()", "made its reader fail"),
        ("return {'a': np.ones(10**11)}", "more memory to be read as XYZ"),
    ],
)
def test_whatever_happens_there_is_one_sentence_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], body: str, said: str
) -> None:
    with pytest.raises(FormatProblem, match=said) as raised:
        read(tmp_path, monkeypatch, body)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 400
    assert str(raised.value).endswith("Do this.")
    assert capfd.readouterr() == ("", "")
