"""From words to takes with small random models: seeds, lengths, kept frames, what is written down, and every mistake in a sentence."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

import bunraku
from bunraku import Guidance, Prompt, Sampling, Timeline
from bunraku.errors import BadValue, BunrakuError, FileProblem
from bunraku.evaluate.report import Report
from bunraku.generator.checkpoint import Model, save_model
from bunraku.generator.generate import Job, Options, generate_jobs, generate_timeline, sampling_of
from bunraku.generator.models import ON_THE_HUB, find_model
from bunraku.generator.pieces import Stitching
from bunraku.generator.ready import Generator
from bunraku.generator.text.encoder import TextFeatures
from bunraku.generator.text_slots import slot_rows
from bunraku.kinematics.motion import Motion
from bunraku.timeline import EffectorTarget, Heading, PoseKey, RootPath
from tests.generator.tiny import denoiser_of, layout_of, walker, walking

FEW = Sampling(steps=2)


def model(name: str = "soma30", text_encoder: str = "none", max_seconds: float = 2.0, **changes: object) -> Model:
    return Model(name="tiny", denoiser=denoiser_of(name, **changes), text_encoder=text_encoder, max_seconds=max_seconds)


def generator(name: str = "soma30", **more: object) -> Generator:
    return Generator(model(name, **more))  # type: ignore[arg-type]


def walking_generator(max_seconds: float = 2.0) -> Generator:
    return Generator(Model(name="walker", denoiser=walker(), text_encoder="none", max_seconds=max_seconds))


def draft(prompt: object, by: Generator | None = None, **more: object) -> list[bunraku.Take]:
    return bunraku.generate(prompt, model=by or generator(), **{"sampling": FEW, "cleanup": False, **more})  # type: ignore[arg-type]


@cache
def a_walk(name: str = "soma77", seconds: float = 1.0) -> Motion:
    return bunraku.walk(bunraku.skeleton(name), seconds=seconds)


def apart(a: Motion, b: Motion) -> float:
    return max(float((a.root_position - b.root_position).abs().max()), float((a.quats - b.quats).abs().max()))


@cache
def a_report() -> Report:
    return bunraku.check(a_walk())


@pytest.fixture(autouse=True)
def _one_report_for_all(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Measuring takes longer than drawing here; tests that look at reports are marked."""
    if request.node.get_closest_marker("reports") is None:
        monkeypatch.setattr("bunraku.generator.generate.check", lambda _: a_report())


# --- what comes out --------------------------------------------------------------------------------------------------


@pytest.mark.reports
def test_a_sentence_becomes_a_take() -> None:
    (take,) = draft("A person walks.", seconds=1.5, seed=3)
    assert len(take.motion) == 45
    assert take.motion.skeleton.name == "soma77"
    assert take.report["frames"] == 45
    made = take.motion.provenance
    assert (made.prompt, made.seed, made.model, made.version) == ("A person walks.", 3, "tiny", bunraku.__version__)
    assert made.notes["sampling"] == "dpm, 2 steps, guidance separated (text 2, constraints 2)"
    assert take.provenance.prompts == (Prompt(text="A person walks.", seconds=1.5),)
    assert (take.provenance.sampling, take.provenance.constraints, take.provenance.text_encoder) == (FEW, 0, "none")


def test_lengths_add_up_to_the_frame() -> None:
    prompts = ["walks.@1.01", Prompt(text="waves.", seconds=2.49), "", "sits.@0.05"]
    (take,) = draft(prompts, seconds=3.3)
    assert len(take.motion) == round((1.01 + 2.49 + 3.3 + 0.05) * 30)
    assert '"waves."@2.49' in take.motion.provenance.notes["prompts"]
    assert torch.isfinite(take.motion.quats).all()


def test_a_sample_is_the_same_to_the_last_bit_whatever_the_batch() -> None:
    prompts = ["walks.@1", "waves.@0.5"]
    together = draft(prompts, samples=3, seed=5)
    assert [take.provenance.seed for take in together] == [5, 6, 7]
    (alone,) = draft(prompts, samples=1, seed=7)
    assert torch.equal(together[2].motion.quats, alone.motion.quats)
    assert torch.equal(together[2].motion.root_position, alone.motion.root_position)
    assert apart(together[0].motion, together[1].motion) > 1e-2


def test_many_prompts_at_once_are_what_they_are_alone() -> None:
    one = generator()
    many = bunraku.generate_many(["walks.@1", ["waves.@0.5", "sits.@0.7"]], model=one, sampling=FEW, cleanup=False, seed=2, samples=2)
    assert [len(takes) for takes in many] == [2, 2]
    for takes, prompt in zip(many, ("walks.@1", ["waves.@0.5", "sits.@0.7"]), strict=True):
        for take, alone in zip(takes, draft(prompt, one, seed=2, samples=2), strict=True):
            assert torch.equal(take.motion.quats, alone.motion.quats)
            assert torch.equal(take.motion.root_position, alone.motion.root_position)
    assert bunraku.generate_many([], model=one) == []


@pytest.mark.parametrize(("name", "body"), [("g1", "g1"), ("smplx22", "smplx22"), ("soma30", "soma77")])
def test_each_model_gives_its_own_body(name: str, body: str) -> None:
    (take,) = draft("", generator(name), seconds=0.5)
    assert take.motion.skeleton.name == body


def test_cleanup_meets_constraints_in_the_right_place() -> None:
    target = EffectorTarget(frames=torch.tensor([40]), effector="left_hand", position=torch.tensor([[0.35, 1.1, 1.4]]))
    (raw,) = draft(["walks.@1", "walks.@1"], walking_generator(), constraints=[target])
    hand = raw.motion.skeleton.role("left_hand")
    there = bunraku.forward_kinematics(raw.motion).p_world_joint[40, hand] + torch.tensor([0.05, 0.1, 0.05])
    target = replace(target, position=there[None])
    (take,) = draft(["walks.@1", "walks.@1"], walking_generator(), constraints=[target], cleanup=True)
    assert take.provenance.constraints == 1
    assert (bunraku.forward_kinematics(take.motion).p_world_joint[40, hand] - there).norm() < 1.5e-3


@pytest.mark.reports
def test_the_best_take_has_the_fewest_faults() -> None:
    walk, noise = draft("", walking_generator(), seconds=1.0)[0], draft("", seconds=1.0)[0]
    assert walk.faults < noise.faults
    assert bunraku.best([noise, walk]) is walk
    with pytest.raises(BadValue):
        bunraku.best([])


# --- around what is there --------------------------------------------------------------------------------------------


def test_continuing_keeps_what_was_there() -> None:
    old = a_walk()
    for cleanup in (False, True):
        (take,) = draft("walks on.", walking_generator(), seconds=1.0, continue_from=old, cleanup=cleanup)
        assert len(take.motion) == 60
        assert torch.equal(take.motion.quats[:30], old.quats)
        assert torch.equal(take.motion.root_position[:30], old.root_position)
        steps = torch.diff(bunraku.forward_kinematics(take.motion).p_world_joint, dim=0).norm(dim=-1).amax(dim=-1)
        assert steps[29] < 1.5 * steps[:29].max()


def test_continuing_another_body_at_another_rate_says_so() -> None:
    old = bunraku.resample(a_walk("smplx22"), 60)
    (take,) = draft("", seconds=0.5, continue_from=old)
    assert (take.motion.skeleton.name, take.motion.fps) == ("soma77", 30)
    assert len(take.motion) == 30 + 15
    assert {"frame rate", "skeleton"} <= set(take.provenance.notes)


@pytest.mark.parametrize("frames", [range(20, 40), range(15), range(45, 60)])
def test_a_range_is_drawn_anew_and_the_rest_kept(frames: range) -> None:
    old = a_walk(seconds=2.0)
    (take,) = bunraku.regenerate(old, frames, "hops.", model=walking_generator(), sampling=FEW, cleanup=frames.start == 20)
    kept = [f for f in range(60) if f not in frames]
    assert len(take.motion) == 60
    assert torch.equal(take.motion.quats[kept], old.quats[kept])
    assert torch.equal(take.motion.root_position[kept], old.root_position[kept])
    assert not torch.equal(take.motion.quats[list(frames)], old.quats[list(frames)])
    steps = torch.diff(bunraku.forward_kinematics(take.motion).p_world_joint, dim=0).norm(dim=-1).amax(dim=-1)
    assert steps.max() < 2 * torch.diff(bunraku.forward_kinematics(old).p_world_joint, dim=0).norm(dim=-1).max()


@pytest.mark.reports
def test_a_loop_closes_after_clean_up() -> None:
    (take,) = draft(Timeline(prompts=(Prompt(text="", seconds=1.4),), loop=True), walking_generator(), cleanup=True)
    assert take.report["loop_pose"] < 1
    assert take.report["loop_position"] < 1


def test_a_released_file_that_disagrees_with_itself_is_read_as_the_release_does(tmp_path: Path) -> None:
    entries = [{"type": "root2d", "frame_indices": [10], "smooth_root_2d": [[x, 0.3]]} for x in (0.0, 0.5)]
    (tmp_path / "c.json").write_text(json.dumps(entries))
    asked = bunraku.timeline.load_constraints(tmp_path / "c.json", layout_of().skeleton)
    (take,) = draft("", seconds=0.5, constraints=asked)
    assert "the first counts" in take.provenance.notes["constraints"]
    with pytest.raises(BunrakuError, match="remove one of them"):
        draft("", seconds=0.5, constraints=[*asked])
    (take,) = draft(Timeline(prompts=(Prompt(text="", seconds=0.5),), constraints=tuple(asked), first_wins=True))
    assert "the first counts" in take.provenance.notes["constraints"]


def test_notes_count_frames_and_constraints_as_the_user_does() -> None:
    far = EffectorTarget(frames=torch.tensor([10]), effector="left_hand", position=torch.tensor([[0.0, 9.0, 0.0]]))
    (take,) = draft("", walking_generator(), seconds=1.0, continue_from=a_walk(), constraints=[far], cleanup=True)
    assert "at frame 40:" in take.provenance.notes["constraint 0"]  # thirty frames were there before
    assert "constraint 1" not in take.provenance.notes
    (take,) = draft("", walking_generator(), seconds=1.0, constraints=[far], loop=True, cleanup=True)
    assert "at frame 10:" in take.provenance.notes["constraint 0"]
    assert "constraint 2" not in take.provenance.notes


def test_poses_of_a_take_can_be_asked_for_again() -> None:
    (take,) = draft("", walking_generator(), seconds=0.5)
    key = PoseKey(frames=torch.tensor([10]), poses=take.motion[5:6])
    (again,) = draft("", walking_generator(), seconds=0.5, constraints=[key], cleanup=True)
    assert (again.motion.root_position[10] - take.motion.root_position[5]).norm() < 1e-3


# --- text ------------------------------------------------------------------------------------------------------------


def features(counts: list[int], width: int = 24) -> TextFeatures:
    mask = torch.arange(max(counts)) < torch.tensor(counts)[:, None]
    return TextFeatures(tokens=torch.ones(len(counts), max(counts), width) * mask[..., None], mask=mask, pooled=torch.full((len(counts), width), 2.0))


def test_ours_read_tokens_and_the_released_one_vector() -> None:
    rows, notes = slot_rows(model(text_encoder="minilm"), features([2, 4]), ["a b", "a b c d"])
    assert [row.shape for row in rows] == [(2, 24), (4, 24)]
    assert notes == [None, None]
    rows, _ = slot_rows(model(text_encoder="llm2vec"), features([2, 40]), ["a b", "long"])
    assert [tuple(row.shape) for row in rows] == [(1, 24), (1, 24)]
    assert (rows[0] == 2).all()


def test_a_prompt_longer_than_the_slots_is_cut_with_one_warning_and_a_note() -> None:
    with pytest.warns(UserWarning, match="9 tokens and the model 6 text slots") as caught:
        rows, notes = slot_rows(model(text_encoder="minilm"), features([9, 1, 9]), ["long", "a", "long"])
    assert len(caught) == 1
    assert [len(row) for row in rows] == [6, 1, 6]
    assert [note is None for note in notes] == [False, True, False]


def embeddings(path: Path, texts: list[str], width: int) -> Path:
    numbers = np.random.default_rng(0).normal(size=(len(texts), width)).astype(np.float32)
    np.savez(path, texts=np.array(texts), pooled=numbers)
    return path


def test_text_changes_the_motion_and_empty_text_needs_no_encoder(tmp_path: Path) -> None:
    path = embeddings(tmp_path / "e.npz", ["walks.", "waves."], 24)
    one = Generator(model(), text_encoder=str(path))
    walks, waves = (draft(text, one, seconds=0.5)[0].motion for text in ("walks.", "waves."))
    assert apart(walks, waves) > 1e-3
    assert len(draft("", Generator(model(), text_encoder="nothing at all"), seconds=0.5)) == 1
    other = Generator(model(), text_encoder=str(embeddings(tmp_path / "wide.npz", ["walks."], 32)))
    with pytest.raises(BadValue, match=r"32 numbers a token, but the model 'tiny' reads 24"):
        draft("walks.", other)
    with pytest.raises(BadValue, match="there is no text encoder"):
        draft("walks.", Generator(model(), text_encoder="nothing at all"))


# --- how it is drawn -------------------------------------------------------------------------------------------------


def test_a_timeline_says_how_and_arguments_outweigh_it() -> None:
    timeline = Timeline(prompts=(Prompt(text=""),), steps=7, guidance_text=3.0)
    assert sampling_of(timeline) == Sampling(solver="dpm", steps=7, guidance=Guidance(text=3.0))
    assert sampling_of(timeline, "ddim", steps=9, constraint=1).guidance == Guidance(text=3.0, constraint=1.0)
    assert sampling_of(Timeline(), "ddim").steps == 100
    assert sampling_of(replace(timeline, guided=False)).guidance.kind == "none"
    assert sampling_of(replace(timeline, guided=False), text=1.0).guidance.kind == "separated"


def test_solver_steps_guidance_heading_and_overlap_each_matter() -> None:
    one, prompts = generator(), ["a@0.4", "b@0.4"]
    variants = [
        draft(prompts, one),
        draft(prompts, one, sampling=Sampling(solver="ddim", steps=3)),
        draft(prompts, one, sampling=Sampling(steps=3)),
        draft(prompts, one, sampling=replace(FEW, guidance=Guidance(constraint=1.0))),
        draft(prompts, one, heading=1.0),
        draft(prompts, one, stitching=Stitching(overlap=5)),
        draft(prompts, one, constraints=[Heading(frames=torch.tensor([0]), heading=torch.tensor([2.0]))]),
        draft(prompts, one, loop=True),
    ]
    for number, (a,) in enumerate(variants):
        for (b,) in variants[:number]:
            assert apart(a.motion, b.motion) > 1e-4


def test_progress_reaches_the_end() -> None:
    for cleanup in (False, True):
        shares: list[float] = []
        draft("a@0.3", on_progress=shares.append, cleanup=cleanup, samples=2)
        assert shares == sorted(shares)
        assert shares[-1] == pytest.approx(1)


# --- mistakes --------------------------------------------------------------------------------------------------------

HERE = torch.tensor([0])
MISTAKES: dict[str, tuple[Callable[[], object], str]] = {
    "no prompt": (lambda: draft([]), "no prompt"),
    "timeline without prompts": (lambda: draft(Timeline()), "without prompts"),
    "too many prompts": (lambda: draft(["a"] * 1001), "at most 1,000"),
    "no time": (lambda: draft("a@0"), "cannot last 0"),
    "backwards": (lambda: draft("a", seconds=-1.0), "cannot last -1"),
    "not a time": (lambda: draft("a@nan"), "cannot last nan"),
    "a day": (lambda: draft(["a@600"] * 7), "at most 3600"),
    "no samples": (lambda: draft("a", samples=0), "samples is 0"),
    "a million samples": (lambda: draft("a", samples=50_000), "at most 1000"),
    "too much": (lambda: draft(["a@600"] * 6, samples=1000), "5,000,000 frames"),
    "seed": (lambda: draft("a", seed=-1), "seed is -1"),
    "no steps": (lambda: draft("a", sampling=Sampling(steps=0)), "0 steps"),
    "too many steps": (lambda: draft("a", sampling=Sampling(steps=1001)), "1 to 1000"),
    "guidance": (lambda: draft("a", sampling=Sampling(guidance=Guidance(text=math.inf))), "guidance weight of the text is inf"),
    "heading": (lambda: draft("a", heading=math.nan), "heading is nan"),
    "two headings": (lambda: draft("a", heading=1.0, constraints=[Heading(frames=HERE, heading=torch.tensor([0.0]))]), "face 0°"),
    "heading of what goes on": (lambda: draft("a", heading=1.0, continue_from=walking(layout_of())), "Leave the heading out"),
    "outside": (lambda: draft("a", constraints=[RootPath(frames=torch.tensor([500]), xz=torch.zeros(1, 2))]), "outside the clip"),
    "conflict": (lambda: draft("a", constraints=[RootPath(frames=HERE, xz=torch.full((1, 2), x)) for x in (0.0, 1.0)]), "remove one of them"),
    "range": (lambda: bunraku.regenerate(walking(layout_of()), range(50, 90), model=generator()), "cannot be drawn anew"),
    "loop inside": (lambda: bunraku.regenerate(walking(layout_of()), range(10, 20), model=generator(), loop=True), "cannot be a loop"),
    "seconds twice": (lambda: draft(Timeline(prompts=(Prompt(text=""),)), seconds=2.0), "leave seconds out"),
    "different ways": (
        lambda: bunraku.generate_many([Timeline(prompts=(Prompt(text=""),), steps=n) for n in (2, 3)], model=generator()),
        "different steps",
    ),
    "one string": (lambda: bunraku.generate_many("walks.", model=generator()), "list of prompts"),
    "precision": (lambda: bunraku.load_model(model_folder(), precision="int3"), "no precision 'int3'"),
    "device": (lambda: bunraku.load_model(model_folder(), device="abacus"), "'abacus' is no device"),
}
_folder: list[Path] = []


@pytest.fixture(scope="module", autouse=True)
def _saved(tmp_path_factory: pytest.TempPathFactory) -> None:
    _folder[:] = [tmp_path_factory.mktemp("model")]
    save_model(model(), _folder[0])


def model_folder() -> Path:
    return _folder[0]


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_get_one_sentence(case: str, unchecked_shapes: None) -> None:
    act, said = MISTAKES[case]
    with pytest.raises(BunrakuError) as problem:
        act()
    assert said in str(problem.value)
    assert "\n" not in str(problem.value)


# --- models ----------------------------------------------------------------------------------------------------------


def test_models_are_found_by_folder_and_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_model(model_folder()) == model_folder()
    with pytest.raises(FileProblem, match=r"no trained model comes with this version.*--model"):
        find_model()
    with pytest.raises(FileProblem, match=r"no model 'walker-9000'. There is .*Kimodo-SOMA-RP-v1\.1.*Kimodo-SMPLX-RP-v1"):
        find_model("walker-9000")
    monkeypatch.setattr("bunraku.generator.models.SHIPPED", tmp_path)
    save_model(model(), tmp_path / "small")
    assert find_model("small") == tmp_path / "small"
    save_model(model(), tmp_path / "default")
    assert find_model() == tmp_path / "default"
    with pytest.raises(FileProblem, match="small"):
        find_model("large")


@pytest.mark.parametrize(
    ("name", "full"),
    [(name, name) for name in ON_THE_HUB]
    + [("soma-rp", "nvidia/Kimodo-SOMA-RP-v1.1"), ("Kimodo-SOMA-SEED", "nvidia/Kimodo-SOMA-SEED-v1.1"), ("kimodo-soma-rp-v1", "nvidia/Kimodo-SOMA-RP-v1")],
)
def test_released_names_lead_to_the_hub(name: str, full: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr("bunraku.files.hub.model_folder", lambda found, *_, **__: asked.append(found) or Path("there"))
    assert find_model(name) == Path("there")
    assert asked == [full]


def test_without_network_the_sentence_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub.errors import LocalEntryNotFoundError

    def unreachable(*_: object, local_files_only: bool = False, **__: object) -> None:
        raise LocalEntryNotFoundError("not here") if local_files_only else OSError("no route to host")

    monkeypatch.setattr("huggingface_hub.snapshot_download", unreachable)
    with pytest.raises(FileProblem, match=r"could not be fetched.*--model FOLDER"):
        find_model("g1-rp")


def test_a_model_named_again_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    (first,) = bunraku.generate("", model=model_folder(), seconds=0.2, sampling=FEW, cleanup=False)
    monkeypatch.setattr("bunraku.generator.ready.load_model", lambda _: pytest.fail("read twice"))
    (second,) = bunraku.generate("", model=model_folder(), seconds=0.2, sampling=FEW, cleanup=False)
    assert apart(first.motion, second.motion) == 0


def test_jobs_of_different_kinds_run_together() -> None:
    one, old = generator(), a_walk()
    timeline = Timeline(prompts=(Prompt(text="", seconds=0.5),))
    jobs = [Job(timeline=timeline), Job(timeline=timeline, existing=old), Job(timeline=timeline, existing=old, replaced=range(10, 25))]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        takes = generate_jobs(one, jobs, sampling=FEW, options=Options(cleanup=False))
    assert [len(row[0].motion) for row in takes] == [15, 45, 30]
    (alone,) = generate_timeline(one, timeline, existing=old, sampling=FEW, options=Options(cleanup=False))
    assert apart(alone.motion, takes[1][0].motion) < 1e-4
