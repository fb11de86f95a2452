"""LTX-Video through diffusers: rectified flow on strongly compressed latents, the lightest of the big models.

Its VAE (32 × 32 pixels and 8 frames in a latent) needs a tenth of the others' memory and works on the whole video at once. The
transformer takes latents as a row of tokens, patch by patch.
"""

from __future__ import annotations

import os
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.errors import BadValue
from bunraku.priors.latents import posterior, require_size
from bunraku.priors.noise_paths import Latent, RectifiedFlow
from bunraku.priors.parts import PartsFolder, open_model
from bunraku.priors.prior import PriorSpec, Video, VideoPrior, guided, require_video
from bunraku.priors.words import Words, encode_words

MOST_TOKENS = 128
FPS = 25.0


class Ltx(VideoPrior):
    """`Ltx.open("Lightricks/LTX-Video", frames=49, size=(704, 480))`."""

    def __init__(self, *, transformer: Any, vae: Any, parts: PartsFolder | None, name: str, frames: int, size: tuple[int, int], fps: float = FPS) -> None:
        self.transformer, self.vae, self.parts = transformer, vae, parts
        self.path = RectifiedFlow()
        made = transformer.config
        self.across, self.along = int(vae.spatial_compression_ratio), int(vae.temporal_compression_ratio)
        require_size(name, frames, size, multiple=self.across * made.patch_size, along=self.along, together=made.patch_size_t)
        latent = (made.in_channels // made.patch_size**2 // made.patch_size_t, (frames - 1) // self.along + 1, size[1] // self.across, size[0] // self.across)
        self.spec = PriorSpec(name=name, frames=frames, width=size[0], height=size[1], fps=fps, latent_shape=latent)

    @classmethod
    def open(
        cls,
        model: str | os.PathLike[str],
        *,
        frames: int | None = None,
        size: tuple[int, int] | None = None,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.bfloat16,
    ) -> Ltx:
        """A model by folder or Hugging Face name; without frames and size 97 frames of 704 × 480 pixels."""
        parts, transformer, vae = open_model(model, "LTXVideoTransformer3DModel", "AutoencoderKLLTXVideo", dtype=dtype, device=device)
        vae.enable_gradient_checkpointing()  # exact, and a twentieth of the memory
        return cls(transformer=transformer, vae=vae, parts=parts, name=str(model), frames=frames or 97, size=size or (704, 480))

    def encode(self, video: Video, generator: torch.Generator | None = None) -> Latent:
        require_video(self.spec, video)
        frames = (2 * video - 1).movedim(-1, 0)[None].to(next(self.vae.encoder.parameters()))  # (1 3 F H W), −1 to 1
        latent = posterior(self.vae.encoder(frames), generator)[0].float()
        mean, std = (row.float()[:, None, None, None].to(latent.device) for row in (self.vae.latents_mean, self.vae.latents_std))
        return (latent - mean) * self.vae.config.scaling_factor / std

    def embed(self, text: str) -> Words:
        from transformers import T5EncoderModel

        if self.parts is None:
            raise BadValue(f"prior '{self.spec.name}' was made without a text encoder; pass it Words.")
        weight = self.transformer.proj_in.weight
        return encode_words(self.parts, text, most=MOST_TOKENS, padding="mask", kind=T5EncoderModel, dtype=weight.dtype, device=weight.device)

    @torch.no_grad()
    def predict_clean(self, noisy: Latent, sigma: float, condition: Words, guidance: float) -> Latent:
        _, frames, rows, columns = noisy.shape
        shown = self._packed(noisy).to(condition.features.dtype).expand(2, -1, -1)
        said = self.transformer(
            hidden_states=shown,
            encoder_hidden_states=condition.features,
            timestep=torch.full((2,), self.path.told(sigma), device=noisy.device, dtype=torch.float32),
            encoder_attention_mask=condition.mask,
            num_frames=frames,
            height=rows,
            width=columns,
            rope_interpolation_scale=(self.along / self.spec.fps, self.across, self.across),
            return_dict=False,
        )[0]
        without, with_text = (self._unpacked(row, noisy) for row in said.float())
        return self.path.clean(noisy, sigma, guided(without, with_text, guidance))

    def _packed(self, latent: Latent) -> Float[Tensor, "1 S D"]:
        p, t = self.transformer.config.patch_size, self.transformer.config.patch_size_t
        c, f, h, w = latent.shape
        cut = latent.reshape(c, f // t, t, h // p, p, w // p, p)
        return cut.permute(1, 3, 5, 0, 2, 4, 6).flatten(3).flatten(0, 2)[None]

    def _unpacked(self, tokens: Float[Tensor, "S D"], like: Latent) -> Latent:
        p, t = self.transformer.config.patch_size, self.transformer.config.patch_size_t
        c, f, h, w = like.shape
        cut = tokens.reshape(f // t, h // p, w // p, c, t, p, p)
        return cut.permute(3, 0, 4, 1, 5, 2, 6).reshape(c, f, h, w)
