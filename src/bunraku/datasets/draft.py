"""A dataset while it is being made: it survives being killed at any moment.

    DIR/building.json       what is being built from what; its presence says that the dataset is not finished
    DIR/journal.jsonl       one line per recording that is done: its clips, where their frames lie, what was left out
    DIR/shards/0000.frames  records of `rows.record_type`, one after the other

Frames are written and synced before the line that tells of them. Whoever goes on cuts off half a line at the end of the journal, and
frames that no line tells of. At the end the journal becomes `clips.jsonl`, and `dataset.json` is written last.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from bunraku.datasets.clip import clip_to_json
from bunraku.datasets.rows import record_type, to_records
from bunraku.errors import FileProblem, FormatProblem
from bunraku.files.disk import write_text

if TYPE_CHECKING:  # opening a dataset must not import what converts one
    from bunraku.datasets.uniform import Converted

SHARD_BYTES = 64 << 20  # a new shard is begun behind this
MANIFEST, CLIPS, BUILDING, JOURNAL, SHARDS = "dataset.json", "clips.jsonl", "building.json", "journal.jsonl", "shards"
VERSION = 1


def shard_path(folder: Path, shard: int) -> Path:
    return folder / SHARDS / f"{shard:04d}.frames"


@dataclass(kw_only=True)
class Draft:
    """An open draft. `add` takes recordings in any order."""

    folder: Path
    joints: int
    entries: dict[str, dict[str, Any]] = field(default_factory=dict)  # recording → its line of the journal
    _shard: int = 0
    _frames: int = 0  # in the shard that is being written

    def add(self, recording: str, converted: Converted) -> None:
        """One more recording. After this returns it is safe on disk."""
        itemsize = record_type(self.joints).itemsize
        clips = []
        try:
            for info, rows in converted.clips:
                if self._frames * itemsize >= SHARD_BYTES:
                    self._shard, self._frames = self._shard + 1, 0
                with shard_path(self.folder, self._shard).open("ab") as stream:
                    stream.write(to_records(rows).tobytes())
                    _sync(stream)
                clips.append(clip_to_json(info) | {"shard": self._shard, "first": self._frames})
                self._frames += len(rows)
            entry = {"recording": recording, "clips": clips, "left_out": [list(row) for row in converted.left_out]}
            with (self.folder / JOURNAL).open("ab") as stream:
                stream.write(json.dumps(entry, ensure_ascii=False).encode() + b"\n")
                _sync(stream)
        except OSError as error:
            raise FileProblem(
                f"the dataset '{self.folder}' cannot be written further: {error.strerror or error}. "
                f"What is done is kept: make room, and run the same command again."
            ) from error
        self.entries[recording] = entry

    def contents(self, order: list[str], manifest: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
        """What will be written at the end: the manifest, and the lines of the table of clips in the source's order."""
        rows = [clip for recording in order for clip in self.entries[recording]["clips"]]
        left_out = [row for recording in order for row in self.entries[recording]["left_out"]]
        itemsize = record_type(self.joints).itemsize
        shards = [shard_path(self.folder, shard).stat().st_size // itemsize for shard in range(max((row["shard"] for row in rows), default=-1) + 1)]
        plain = {"bunraku": "dataset", "version": VERSION, **manifest, "shards": shards, "left_out": [*manifest.get("left_out", []), *left_out]}
        return plain, [json.dumps(row, ensure_ascii=False) for row in rows]

    def finish(self, manifest: Mapping[str, Any], lines: list[str]) -> None:
        """The manifest last: from then on it is a dataset."""
        write_text(self.folder / CLIPS, "\n".join(lines) + "\n")
        write_text(self.folder / MANIFEST, json.dumps(manifest, ensure_ascii=False, indent=1) + "\n")
        (self.folder / BUILDING).unlink(missing_ok=True)
        (self.folder / JOURNAL).unlink(missing_ok=True)


def open_draft(folder: Path, joints: int, plan: Mapping[str, Any]) -> Draft:
    """A new draft, or the one that was left there, if it was made from the same thing in the same way."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / SHARDS).mkdir(exist_ok=True)
    except OSError as error:
        raise FileProblem(f"the folder '{folder}' cannot be made: {error.strerror}.") from error
    if (folder / MANIFEST).exists():
        raise FileProblem(f"'{folder}' already holds a finished dataset; name another folder, or remove it first.")
    building, draft = folder / BUILDING, Draft(folder=folder, joints=joints)
    if not building.exists():
        strange = [p.name for p in folder.iterdir() if p.name not in (SHARDS, JOURNAL)]
        if strange or any((folder / SHARDS).iterdir()):
            raise FileProblem(f"'{folder}' is not empty (it has '{(strange or [SHARDS])[0]}'); name a new folder for the dataset.")
        write_text(building, json.dumps(plan, indent=1) + "\n")
        return draft
    before = _json(building)
    differing = sorted(key for key in {*before, *plan} if before.get(key) != plan.get(key))
    if differing:
        pairs = "; ".join(f"{key}: {before.get(key)!r} there, {plan.get(key)!r} now" for key in differing)
        raise FileProblem(f"'{folder}' holds a half-built dataset of another kind ({pairs}); finish that one, or name a new folder.")
    _recover(draft)
    return draft


def _recover(draft: Draft) -> None:
    """Reads the journal and cuts off what it does not tell of."""
    journal = draft.folder / JOURNAL
    data = journal.read_bytes() if journal.exists() else b""
    whole = data[: data.rfind(b"\n") + 1]
    if len(whole) < len(data):
        os.truncate(journal, len(whole))
    ends: dict[int, int] = {}
    for number, line in enumerate(whole.splitlines(), start=1):
        try:
            entry = json.loads(line)
            for clip in entry["clips"]:
                ends[clip["shard"]] = max(ends.get(clip["shard"], 0), clip["first"] + clip["frames"])
            draft.entries[entry["recording"]] = entry
        except (ValueError, KeyError, TypeError) as error:
            raise FormatProblem(f"'{journal}', line {number}, is damaged ({error}); remove the folder and build again.") from error
    draft._shard, draft._frames = max(ends.items(), default=(0, 0))
    itemsize = record_type(draft.joints).itemsize
    for path in (draft.folder / SHARDS).iterdir():
        told = ends.get(int(path.stem), 0) * itemsize if path.stem.isdigit() else -1
        if told < 0 or path.stat().st_size < told:
            raise FormatProblem(f"'{path}' does not hold what '{journal}' says; remove the folder and build again.")
        if path.stat().st_size > told:
            os.truncate(path, told)


def _json(path: Path) -> dict[str, Any]:
    try:
        plain = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise FormatProblem(f"'{path}' is damaged ({error}); remove the folder and build again.") from error
    if not isinstance(plain, dict):
        raise FormatProblem(f"'{path}' holds no object; remove the folder and build again.")
    return plain


def _sync(stream: BinaryIO) -> None:
    stream.flush()
    os.fsync(stream.fileno())
