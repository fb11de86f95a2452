"""One number for how much is wrong with a clip, to choose the best of several by."""

from __future__ import annotations

from bunraku.evaluate.report import DEFAULT_LIMITS, Report

WORST = 5.0  # a single fault counts no more than this: beyond it, worse is no longer worse
COUNTED_SHARE = 0.01  # of the frames: where a limit is 0, so many broken frames count 1


def faults(report: Report) -> float:
    """0 for a clip without faults; each metric with a default limit adds 1 when it is as bad as its limit allows (docs/metrics.md).

    What the clip was meant to show is not looked at: of two clips without faults neither is better.
    """
    frames = float(report["frames"] or 1)
    total = 0.0
    for limit in DEFAULT_LIMITS:
        value = report[limit.metric]
        if value is None:
            continue
        if limit.comparison.startswith("<"):  # a share that should be 1
            share = (1 - value) / (1 - limit.value)
        elif limit.value == 0:
            share = value / (COUNTED_SHARE * frames)
        else:
            share = value / limit.value
        total += min(max(share, 0.0), WORST)
    return total
