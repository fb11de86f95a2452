"""From a source to a dataset: recordings are converted by worker processes, one thread each, and written as they come."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import asdict
from multiprocessing.connection import wait as wait_for
from pathlib import Path

from bunraku.datasets.clip import SPLITS
from bunraku.datasets.draft import Draft, open_draft
from bunraku.datasets.source import FPS, Recording, Source
from bunraku.datasets.store import Dataset, assemble, open_dataset
from bunraku.datasets.uniform import BODY, Converted, convert
from bunraku.errors import BunrakuError, FileProblem, FormatProblem
from bunraku.kinematics.library import skeleton

CONVERSION = 1  # counted up when conversion gives other numbers: a half-built dataset of another count is not gone on with
STATS_SHARE = 0.03  # of the progress bar


def build(
    source: Source, folder: str | os.PathLike[str], *, workers: int | None = None, on_progress: Callable[[float], None] | None = None
) -> Dataset:
    """Converts a whole source. Killed at any moment, it goes on where it was when called again with the same arguments."""
    folder, recordings = Path(folder), list(source.recordings())
    _require_names(recordings)
    draft = open_draft(folder, len(skeleton(BODY)), {"source": source.about.name, "recordings": len(recordings), "conversion": CONVERSION})
    share_of = {r.name: max(r.about_frames, 1) for r in recordings}
    total, done = sum(share_of.values()), sum(share_of[name] for name in draft.entries if name in share_of)
    left = sorted((r for r in recordings if r.name not in draft.entries), key=lambda r: -r.about_frames)
    with _one_thread():
        for recording, converted in _converted(source, left, workers):
            draft.add(recording.name, converted)
            done += share_of[recording.name]
            if on_progress is not None:
                on_progress((1 - STATS_SHARE) * done / max(total, 1))
        _finish(draft, source, recordings)
    if on_progress is not None:
        on_progress(1.0)
    return open_dataset(folder)


def _finish(draft: Draft, source: Source, recordings: list[Recording]) -> None:
    from bunraku.datasets.statistics import statistics_of
    from bunraku.generator.stats import save_stats

    clips = [clip for recording in recordings for clip in draft.entries[recording.name]["clips"]]
    if not clips:
        reasons = [f"{name}: {why}" for name, why in [*source.unusable(), *(row for r in recordings for row in draft.entries[r.name]["left_out"])]]
        raise FormatProblem(f"nothing of '{source.about.name}' could be converted; the first reason: {(reasons or ['it lists no recordings'])[0]}")
    manifest = {
        "about": asdict(source.about),
        "skeleton": BODY,
        "fps": FPS,
        "empty_splits": [split for split in SPLITS if all(clip["split"] != split for clip in clips)],
        "left_out": [list(row) for row in source.unusable()],
    }
    manifest, lines = draft.contents([recording.name for recording in recordings], manifest)
    try:
        save_stats(statistics_of(assemble(draft.folder, manifest, lines)), draft.folder / "stats")
    except OSError as error:
        raise FileProblem(f"the statistics of '{draft.folder}' cannot be written: {error.strerror}. Make room, and run the same command again.") from error
    draft.finish(manifest, lines)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Torch with one thread: the tensors are so small that more only wait for each other, and on a busy machine very long."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _require_names(recordings: Sequence[Recording]) -> None:
    seen: set[str] = set()
    for recording in recordings:
        if recording.name in seen:
            raise FormatProblem(f"two recordings are named '{recording.name}'; every recording of a dataset needs a name of its own.")
        seen.add(recording.name)


# --- worker processes ------------------------------------------------------------------------------------------------


def _converted(source: Source, recordings: Sequence[Recording], workers: int | None) -> Iterator[tuple[Recording, Converted]]:
    """Each recording with what became of it, as they get ready."""
    workers = min(workers or os.cpu_count() or 1, len(recordings))
    if workers <= 1:
        for recording in recordings:
            yield recording, _load_and_convert(source, recording)
        return
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"), initializer=_begin, initargs=(source,)) as pool:
        waiting, queue = dict[Future, Recording](), iter(recordings)
        try:
            while True:
                while len(waiting) < 2 * workers and (recording := next(queue, None)) is not None:
                    waiting[pool.submit(_work, recording)] = recording
                if not waiting:
                    return
                ready, _ = wait(waiting, return_when=FIRST_COMPLETED)
                for future in ready:
                    yield waiting.pop(future), future.result()
        except BrokenProcessPool as error:
            raise BunrakuError(
                "a worker process was ended from outside (out of memory?). What is done is kept: run the same command again, with fewer --workers."
            ) from error
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


_source: Source | None = None


def _begin(source: Source) -> None:
    """In a new worker: one thread, and an end when the parent ends, however that was."""
    import torch

    global _source
    _source = source
    torch.set_num_threads(1)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=lambda: (wait_for([parent.sentinel]), os._exit(1)), daemon=True).start()


def _work(recording: Recording) -> Converted:
    assert _source is not None
    return _load_and_convert(_source, recording)


def _load_and_convert(source: Source, recording: Recording) -> Converted:
    try:
        motion = source.load(recording)
    except BunrakuError as error:
        return Converted(clips=(), left_out=((recording.name, str(error)),))
    return convert(recording, motion, source.about.name)
