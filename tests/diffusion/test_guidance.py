from __future__ import annotations

import pytest

from bunraku.diffusion.guidance import Guidance, branches


def evaluate(guidance: Guidance, has_text: bool, has_constraints: bool, d: dict[tuple[bool, bool], float]) -> float:
    return sum(b.weight * d[b.text, b.constraints] for b in branches(guidance, has_text=has_text, has_constraints=has_constraints))


D = {(False, False): 1.0, (True, False): 10.0, (False, True): 100.0, (True, True): 1000.0}


def test_the_formulas() -> None:
    both = {"has_text": True, "has_constraints": True, "d": D}
    assert evaluate(Guidance(kind="none"), **both) == 1000.0
    assert evaluate(Guidance(kind="joint", text=3.0), **both) == 1.0 + 3.0 * (1000.0 - 1.0)
    assert evaluate(Guidance(text=2.0, constraint=1.5), **both) == 1.0 + 2.0 * 9.0 + 1.5 * 99.0


@pytest.mark.parametrize("kind", ["none", "joint", "separated"])
@pytest.mark.parametrize(("text", "constraints", "most"), [(True, True, 3), (True, False, 2), (False, True, 2), (False, False, 1)])
def test_no_branch_is_run_twice_and_weights_sum_to_one(kind: str, text: bool, constraints: bool, most: int) -> None:
    wanted = branches(Guidance(kind=kind), has_text=text, has_constraints=constraints)
    assert len(wanted) <= most
    assert len({(b.text, b.constraints) for b in wanted}) == len(wanted)
    assert sum(b.weight for b in wanted) == pytest.approx(1.0)


def test_a_branch_that_weighs_nothing_is_not_run() -> None:
    assert len(branches(Guidance(text=1.0, constraint=0.0), has_text=True, has_constraints=True)) == 1
