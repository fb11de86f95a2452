"""Wan (2.1 1.3B and 14B, 2.2 5B) through diffusers: rectified flow, and a causal VAE that takes the first frame alone, then four at a time.

Latents are normalised channel by channel, as the transformer expects them. Of Wan 2.2's 14B pair only the expert for high noise is
used: where motion is decided, that is the one in charge.
"""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import Tensor

from bunraku.errors import BadValue
from bunraku.priors.causal_encoder import Cache, encode_chunks
from bunraku.priors.latents import posterior, require_size
from bunraku.priors.noise_paths import Latent, RectifiedFlow
from bunraku.priors.parts import PartsFolder, open_model
from bunraku.priors.prior import PriorSpec, Video, VideoPrior, guided, require_video
from bunraku.priors.words import Words, encode_words

MOST_TOKENS = 512
ALONG = 4  # video frames in a latent frame; the first has one of its own


class Wan(VideoPrior):
    """`Wan.open("Wan-AI/Wan2.1-T2V-1.3B-Diffusers", frames=33, size=(832, 480))`."""

    def __init__(
        self, *, transformer: Any, vae: Any, parts: PartsFolder | None, name: str, frames: int, size: tuple[int, int], time_per_token: bool = False
    ) -> None:
        self.transformer, self.vae, self.parts = transformer, vae, parts
        self.path = RectifiedFlow()
        self.low_memory = True
        self.time_per_token = time_per_token
        coder, patch = vae.config, transformer.config.patch_size
        across = int(coder.scale_factor_spatial)
        require_size(name, frames, size, multiple=across * patch[1], along=ALONG, together=patch[0])
        latent = (transformer.config.in_channels, (frames - 1) // ALONG + 1, size[1] // across, size[0] // across)
        fps = 24.0 if time_per_token else 16.0
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
    ) -> Wan:
        """A model by folder or Hugging Face name; without frames and size 81 frames of 832 × 480 pixels (Wan 2.2 5B: 121 of 1280 × 704)."""
        parts, transformer, vae = open_model(model, "WanTransformer3DModel", "AutoencoderKLWan", dtype=dtype, device=device)
        per_token = bool(parts.index.get("expand_timesteps", False))
        return cls(
            transformer=transformer,
            vae=vae,
            parts=parts,
            name=str(model),
            frames=frames or (121 if per_token else 81),
            size=size or ((1280, 704) if per_token else (832, 480)),
            time_per_token=per_token,
        )

    def encode(self, video: Video, generator: torch.Generator | None = None) -> Latent:
        require_video(self.spec, video)
        coder, weight = self.vae.config, self.vae.encoder.conv_in.weight
        frames = (2 * video - 1).movedim(-1, 0)[None].to(weight)  # (1 3 F H W), −1 to 1
        if coder.patch_size is not None:
            from diffusers.models.autoencoders.autoencoder_kl_wan import patchify

            frames = patchify(frames, patch_size=coder.patch_size)
        starts = [0, *range(1, video.shape[0], ALONG)]
        chunks = [range(a, b) for a, b in zip(starts, [*starts[1:], video.shape[0]], strict=True)]
        moments = encode_chunks(frames, chunks, self._encode_chunk, low_memory=self.low_memory)
        latent = posterior(self.vae.quant_conv(moments), generator)[0].float()
        mean, std = (torch.tensor(row, device=latent.device)[:, None, None, None] for row in (coder.latents_mean, coder.latents_std))
        return (latent - mean) / std

    def embed(self, text: str) -> Words:
        from transformers import UMT5EncoderModel

        if self.parts is None:
            raise BadValue(f"prior '{self.spec.name}' was made without a text encoder; pass it Words.")
        weight = self.transformer.patch_embedding.weight
        kind: Any = UMT5EncoderModel
        return encode_words(self.parts, text, most=MOST_TOKENS, padding="zeros", kind=kind, dtype=weight.dtype, device=weight.device)

    @torch.no_grad()
    def predict_clean(self, noisy: Latent, sigma: float, condition: Words, guidance: float) -> Latent:
        dtype = condition.features.dtype
        shown = noisy[None].to(dtype).expand(2, -1, -1, -1, -1)
        told = torch.full(self._times(noisy), self.path.told(sigma), device=noisy.device, dtype=torch.float32)
        said = self.transformer(hidden_states=shown, timestep=told, encoder_hidden_states=condition.features, return_dict=False)[0]
        without, with_text = said.float()
        return self.path.clean(noisy, sigma, guided(without, with_text, guidance))

    def _times(self, noisy: Latent) -> tuple[int, ...]:
        """How often the transformer is told the time: once a clip, or once a token where it was trained so."""
        if not self.time_per_token:
            return (2,)
        patch = self.transformer.config.patch_size
        return 2, (noisy.shape[1] // patch[0]) * (noisy.shape[2] // patch[1]) * (noisy.shape[3] // patch[2])

    def _encode_chunk(self, frames: Tensor, cache: Cache) -> tuple[Tensor, Cache]:
        """diffusers keeps the cache in a list that each layer reads and replaces as it goes; None, here an empty tensor, is nothing kept."""
        self.vae.clear_cache()  # counts the layers
        slots: list[Tensor | None] = [part if part.numel() else None for part in cache] or [None] * self.vae._enc_conv_num
        latent = self.vae.encoder(frames, feat_cache=slots, feat_idx=[0])
        return latent, tuple(frames.new_empty(0) if slot is None else slot for slot in slots)
