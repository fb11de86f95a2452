"""CogVideoX, Wan and LTX, built tiny and random from diffusers' own classes: encoding, its gradient, formulas, guidance, words, sizes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
import torch

from bunraku.errors import BunrakuError
from bunraku.priors.cogvideox import CogVideoX
from bunraku.priors.ltx import Ltx
from bunraku.priors.noise_paths import Diffusion
from bunraku.priors.prior import VideoPrior
from bunraku.priors.wan import Wan
from bunraku.priors.words import Words
from tests.priors.tiny_models import cogvideox_parts, ltx_parts, save_folder, wan_parts

pytest.importorskip("diffusers")


def sigmas() -> Diffusion:
    from diffusers import CogVideoXDDIMScheduler

    scheduler = CogVideoXDDIMScheduler(prediction_type="v_prediction", rescale_betas_zero_snr=True, snr_shift_scale=1.0)
    return Diffusion.of_alpha_bar(scheduler.alphas_cumprod)


MAKERS: dict[str, Callable[[], VideoPrior]] = {
    "cogvideox": lambda: CogVideoX(**cogvideox_parts(), path=sigmas(), parts=None, name="cog", frames=17, size=(32, 16)),
    "cogvideox 2b": lambda: CogVideoX(**cogvideox_parts(rotary=False), path=sigmas(), parts=None, name="cog", frames=9, size=(64, 64)),
    "cogvideox 1.5": lambda: CogVideoX(**cogvideox_parts(patch_size_t=2), path=sigmas(), parts=None, name="cog", frames=13, size=(32, 16)),
    "wan": lambda: Wan(**wan_parts(), parts=None, name="wan", frames=9, size=(32, 16)),
    "wan 2.2": lambda: Wan(**wan_parts(patchify=True), parts=None, name="wan", frames=9, size=(64, 32), time_per_token=True),
    "ltx": lambda: Ltx(**ltx_parts(), parts=None, name="ltx", frames=9, size=(64, 32)),
}
KINDS = list(MAKERS)


@lru_cache
def prior(kind: str) -> VideoPrior:
    return MAKERS[kind]()


def video(of: VideoPrior, seed: int = 0) -> torch.Tensor:
    spec = of.spec
    return torch.rand(spec.frames, spec.height, spec.width, 3, generator=torch.Generator().manual_seed(seed))


def words(slots: int = 16) -> Words:
    torch.manual_seed(3)
    return Words(features=torch.randn(2, slots, 32), mask=torch.ones(2, slots, dtype=torch.bool))


def theirs(of: Any, frames: torch.Tensor) -> torch.Tensor:
    """The latent by diffusers' own encoder and the normalisation of its pipelines."""
    x = (2 * frames - 1).movedim(-1, 0)[None]
    mean, config = of.vae.encode(x).latent_dist.mode()[0], of.vae.config
    if isinstance(of, CogVideoX):
        return mean * config.scaling_factor
    rows = (config.latents_mean, config.latents_std) if isinstance(of, Wan) else (of.vae.latents_mean, of.vae.latents_std)
    low, spread = (torch.as_tensor(row).view(-1, 1, 1, 1) for row in rows)
    return (mean - low) * (1.0 if isinstance(of, Wan) else config.scaling_factor) / spread


@pytest.mark.parametrize("kind", KINDS)
def test_encoding_is_diffusers_own(kind: str) -> None:
    of = prior(kind)
    latent = of.encode(video(of))
    assert tuple(latent.shape) == of.spec.latent_shape
    with torch.no_grad():
        assert torch.allclose(latent, theirs(of, video(of)), atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_the_thrifty_gradient_is_that_of_plain_autograd(kind: str) -> None:
    of: Any = prior(kind)
    pull = torch.randn(of.spec.latent_shape, generator=torch.Generator().manual_seed(1))
    found = []
    for run in (of.encode, lambda frames: theirs(of, frames)):
        frames = video(of).requires_grad_()
        found.append(torch.autograd.grad((run(frames) * pull).sum(), frames)[0])
    assert float(found[1].abs().max()) > 0
    assert float((found[0] - found[1]).abs().max()) <= 1e-5 * float(found[1].abs().max())


@pytest.mark.parametrize("kind", KINDS)
def test_a_sample_of_the_latent_follows_its_seed(kind: str) -> None:
    of = prior(kind)
    draw = [of.encode(video(of), torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)]
    assert torch.equal(draw[0], draw[1])
    assert not torch.equal(draw[0], draw[2])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("time", [0.1, 0.6, 1.0])
def test_a_network_that_knows_gives_the_latent_back(kind: str, time: float) -> None:
    """The transformer replaced by one that says, in its own layout, what a perfect one would."""
    of: Any = prior(kind)
    sigma = of.path.sigma_at(time)
    latent, eps = torch.randn(2, *of.spec.latent_shape, generator=torch.Generator().manual_seed(2))
    signal, noise = of.path.shares(sigma)
    velocity = signal * eps - noise * latent if isinstance(of, CogVideoX) else eps - latent

    class Knows:
        config = of.transformer.config

        def __call__(self, *, hidden_states: torch.Tensor, timestep: torch.Tensor, **_: object) -> tuple[torch.Tensor]:
            assert bool((timestep == of.path.told(sigma)).all())
            laid = of._packed(velocity)[0] if isinstance(of, Ltx) else velocity.movedim(0, 1) if isinstance(of, CogVideoX) else velocity
            assert hidden_states[0].shape == laid.shape
            return (laid[None].expand(2, *laid.shape),)

    real, of.transformer = of.transformer, Knows()
    try:
        found = of.predict_clean(of.noise(latent, sigma, eps), sigma, words(), 7.0)
    finally:
        of.transformer = real
    assert torch.allclose(found, latent, atol=2e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_guidance_is_a_line_through_both_guesses(kind: str) -> None:
    of = prior(kind)
    noisy = torch.randn(of.spec.latent_shape, generator=torch.Generator().manual_seed(4))
    none, alone, strong = (of.predict_clean(noisy, of.path.sigma_at(0.5), words(), g) for g in (0.0, 1.0, 100.0))
    assert torch.allclose(strong, none + 100 * (alone - none), atol=1e-3)
    assert not torch.allclose(none, alone)
    swapped = Words(features=words().features.flip(0), mask=words().mask)
    assert torch.allclose(of.predict_clean(noisy, of.path.sigma_at(0.5), swapped, 1.0), none, atol=1e-5)
    assert not none.requires_grad


@pytest.mark.parametrize("kind", KINDS)
def test_a_video_of_another_size_is_refused(kind: str) -> None:
    of = prior(kind)
    with pytest.raises(BunrakuError, match=f"judges videos of {of.spec.frames} frames"):
        of.encode(video(of)[:-1])


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: Wan(**wan_parts(), parts=None, name="wan", frames=10, size=(32, 16)), "takes 1, 5, 9 … frames; 10 were asked for. The nearest is 9"),
        (lambda: Ltx(**ltx_parts(), parts=None, name="ltx", frames=10, size=(64, 32)), "takes 1, 9, 17"),
        (lambda: Wan(**wan_parts(), parts=None, name="wan", frames=9, size=(33, 16)), "steps of 16 pixels; 33 × 16 was asked for. Use 32 × 16"),
        (
            lambda: CogVideoX(**cogvideox_parts(patch_size_t=2), path=sigmas(), parts=None, name="cog", frames=9, size=(32, 16)),
            "takes 5, 13, 21 … frames; 9 were asked for. The nearest is",
        ),
    ],
)
def test_sizes_that_a_model_cannot_take_are_refused(made: Callable[[], object], said: str) -> None:
    with pytest.raises(BunrakuError, match=said):
        made()


# --- from disk -------------------------------------------------------------------------------------------------------

FROM_DISK: dict[str, tuple[Any, Callable[[], dict[str, Any]], int, tuple[int, int]]] = {
    "cogvideox": (CogVideoX, cogvideox_parts, 9, (32, 16)),
    "wan": (Wan, wan_parts, 9, (32, 16)),
    "ltx": (Ltx, ltx_parts, 9, (64, 32)),
}


@pytest.fixture(scope="module", params=list(FROM_DISK))
def saved(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    kind = request.param
    return kind, save_folder(tmp_path_factory.mktemp(kind), kind, FROM_DISK[kind][1]())


def opened(kind: str, folder: Path) -> VideoPrior:
    make, _, frames, size = FROM_DISK[kind]
    return make.open(folder, frames=frames, size=size, dtype=torch.float32)


def test_a_folder_is_the_model_that_was_saved(saved: tuple[str, Path]) -> None:
    of = opened(*saved)
    condition = of.embed("a fox runs")
    assert condition.features.shape[0] == 2
    assert not torch.equal(condition.features[0], condition.features[1])
    noisy = torch.randn(of.spec.latent_shape)
    assert torch.isfinite(of.predict_clean(noisy, of.path.sigma_at(0.7), condition, 5.0)).all()
    assert torch.equal(of.encode(video(of)), opened(*saved).encode(video(of)))


@pytest.mark.parametrize(("text", "said"), [("", "the text is empty"), ("   ", "the text is empty"), ("a fox runs. " * 200, "tokens, and this model reads")])
def test_words_that_cannot_be_read_are_refused(saved: tuple[str, Path], text: str, said: str) -> None:
    with pytest.raises(BunrakuError, match=said):
        opened(*saved).embed(text)


@pytest.mark.parametrize("part", ["vae", "transformer", "text_encoder", "model_index.json"])
def test_a_folder_with_a_part_missing_says_which(saved: tuple[str, Path], part: str, tmp_path: Path) -> None:
    kind, folder = saved
    copy = shutil.copytree(folder, tmp_path / "copy")
    if (copy / part).is_dir():
        shutil.rmtree(copy / part)
    else:
        (copy / part).unlink()
    with pytest.raises(BunrakuError, match=part):
        opened(kind, copy)


def test_weights_cut_short_say_which_part(saved: tuple[str, Path], tmp_path: Path) -> None:
    kind, folder = saved
    copy = shutil.copytree(folder, tmp_path / "copy")
    weights = next((copy / "vae").glob("*.safetensors"))
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(BunrakuError, match="the part 'vae'"):
        opened(kind, copy)
