"""The text that NPZ files carry beside their arrays, so that a motion's origin survives: one JSON object under the name `bunraku`."""

from __future__ import annotations

import json
from typing import Any

from bunraku.errors import FormatProblem
from bunraku.files.archive import Archive
from bunraku.kinematics.motion import Provenance

KEY = "bunraku"


def provenance_to_json(provenance: Provenance) -> dict[str, Any]:
    """What travels with a file. The path it was read from does not: it says nothing on another machine."""
    fields = {key: getattr(provenance, key) for key in ("prompt", "seed", "model", "version")}
    return {key: value for key, value in fields.items() if value is not None} | {"notes": dict(provenance.notes)}


def provenance_from_json(data: object, source: str) -> Provenance:
    """The reverse; whatever is not of the right type is left out, for an origin is never needed to use a motion."""
    data = data if isinstance(data, dict) else {}
    texts = {key: data[key] for key in ("prompt", "model", "version") if isinstance(data.get(key), str)}
    seed, notes = data.get("seed"), data.get("notes")
    return Provenance(
        **texts,
        seed=seed if isinstance(seed, int) and not isinstance(seed, bool) else None,
        source=source,
        notes={str(key): str(value) for key, value in notes.items()} if isinstance(notes, dict) else {},
    )


def read_metadata(archive: Archive) -> dict[str, Any]:
    """The archive's metadata; empty where it has none."""
    if KEY not in archive:
        return {}
    try:
        meta = json.loads(archive.text(KEY))
    except (ValueError, RecursionError) as error:
        raise FormatProblem(f"'{archive.path}': the text '{KEY}' is no JSON ({error}); save the motion again.") from error
    if not isinstance(meta, dict):
        raise FormatProblem(f"'{archive.path}': the text '{KEY}' is no JSON object; save the motion again.")
    return meta
