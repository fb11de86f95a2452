"""CogVideoX (2B, 5B, 1.5-5B) through diffusers: v-prediction with zero terminal SNR, a causal VAE that works in chunks.

Latents are (16, 1 + (F − 1) / 4, H / 8, W / 8), scaled as the transformer expects them.
"""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import Tensor

from bunraku.errors import BadValue
from bunraku.priors.causal_encoder import Cache, encode_chunks
from bunraku.priors.latents import posterior, require_size
from bunraku.priors.noise_paths import Diffusion, Latent
from bunraku.priors.parts import PartsFolder, diffusers_class, open_model
from bunraku.priors.prior import PriorSpec, Video, VideoPrior, guided, require_video
from bunraku.priors.words import Words, encode_words

FPS = {None: 8.0, 1: 8.0, 2: 16.0}  # by the transformer's patch in time: the 1.5 model was trained at 16


class CogVideoX(VideoPrior):
    """`CogVideoX.open("zai-org/CogVideoX-5b", frames=49, size=(720, 480))`."""

    def __init__(self, *, transformer: Any, vae: Any, path: Diffusion, parts: PartsFolder | None, name: str, frames: int, size: tuple[int, int]) -> None:
        self.transformer, self.vae, self.path, self.parts = transformer, vae, path, parts
        self.low_memory = True
        self._shape: Any = None  # of the encoder's cache, known once it has run
        made, coder = transformer.config, vae.config
        across, along = 2 ** (len(coder.block_out_channels) - 1), int(coder.temporal_compression_ratio)
        together = made.patch_size_t or 1
        require_size(name, frames, size, multiple=across * made.patch_size, along=along, together=together)
        latent = (made.in_channels, (frames - 1) // along + 1, size[1] // across, size[0] // across)
        self.spec = PriorSpec(name=name, frames=frames, width=size[0], height=size[1], fps=FPS[made.patch_size_t], latent_shape=latent)
        self._rotary = self._positions()

    @classmethod
    def open(
        cls,
        model: str | os.PathLike[str],
        *,
        frames: int | None = None,
        size: tuple[int, int] | None = None,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.bfloat16,
    ) -> CogVideoX:
        """A model by folder or Hugging Face name; without frames and size the ones it was trained on."""
        parts, transformer, vae = open_model(model, "CogVideoXTransformer3DModel", "AutoencoderKLCogVideoX", dtype=dtype, device=device)
        scheduler = diffusers_class("CogVideoXDDIMScheduler").from_config(parts.config("scheduler"))
        made, across = transformer.config, 2 ** (len(vae.config.block_out_channels) - 1)
        kind = scheduler.config.prediction_type
        if kind != "v_prediction":
            raise BadValue(f"'{model}' predicts '{kind}'; CogVideoX models predict v.")
        return cls(
            transformer=transformer,
            vae=vae,
            path=Diffusion.of_alpha_bar(scheduler.alphas_cumprod),
            parts=parts,
            name=str(model),
            frames=frames or (made.sample_frames - 1) // 4 * 4 + 1,
            size=size or (made.sample_width * across, made.sample_height * across),
        )

    def encode(self, video: Video, generator: torch.Generator | None = None) -> Latent:
        require_video(self.spec, video)
        weight = self.vae.encoder.conv_in.conv.weight
        frames = (2 * video - 1).movedim(-1, 0)[None].to(weight)  # (1 3 F H W), −1 to 1
        moments = encode_chunks(frames, self._chunks(video.shape[0]), self._encode_chunk, low_memory=self.low_memory)
        return (posterior(moments, generator) * self.vae.config.scaling_factor)[0].float()

    def embed(self, text: str) -> Words:
        from transformers import T5EncoderModel

        if self.parts is None:
            raise BadValue(f"prior '{self.spec.name}' was made without a text encoder; pass it Words.")
        most, weight = int(self.transformer.config.max_text_seq_length), self.transformer.patch_embed.text_proj.weight
        return encode_words(self.parts, text, most=most, padding="words", kind=T5EncoderModel, dtype=weight.dtype, device=weight.device)

    @torch.no_grad()
    def predict_clean(self, noisy: Latent, sigma: float, condition: Words, guidance: float) -> Latent:
        dtype = condition.features.dtype
        shown = noisy.movedim(0, 1)[None].to(dtype).expand(2, -1, -1, -1, -1)  # (2 F C H W)
        told = torch.full((2,), self.path.told(sigma), device=noisy.device, dtype=torch.long)
        said = self.transformer(
            hidden_states=shown, encoder_hidden_states=condition.features, timestep=told, image_rotary_emb=self._rotary, return_dict=False
        )[0]
        without, with_text = said.float().movedim(2, 1)
        return self.path.clean(noisy, sigma, guided(without, with_text, guidance))

    def _chunks(self, frames: int) -> list[range]:
        """As diffusers cuts a video: eight frames each, the first with what is left over."""
        size = self.vae.num_sample_frames_batch_size
        count, left = max(frames // size, 1), frames % size if frames >= size else 0
        ends = [size * (i + 1) + left for i in range(count)]
        return [range(start, min(end, frames)) for start, end in zip([0, *ends], ends, strict=False)]

    def _encode_chunk(self, frames: Tensor, cache: Cache) -> tuple[Tensor, Cache]:
        latent, after = self.vae.encoder(frames, conv_cache=_unflatten(cache, self._shape) if cache else None)
        if self.vae.quant_conv is not None:
            latent = self.vae.quant_conv(latent)
        flat: list[Tensor] = []
        self._shape = _flatten(after, flat)
        return latent, tuple(flat)

    def _positions(self) -> tuple[Tensor, Tensor] | None:
        """The rotary positions of this size, as diffusers' pipeline works them out."""
        made = self.transformer.config
        if not made.use_rotary_positional_embeddings:
            return None
        from diffusers.models.embeddings import get_3d_rotary_pos_embed
        from diffusers.pipelines.cogvideo.pipeline_cogvideox import get_resize_crop_region_for_grid

        _, frames, rows, columns = self.spec.latent_shape
        grid = (rows // made.patch_size, columns // made.patch_size)
        base = (made.sample_height // made.patch_size, made.sample_width // made.patch_size)
        rotary: Any = get_3d_rotary_pos_embed
        asked = {"embed_dim": made.attention_head_dim, "grid_size": grid, "device": self.transformer.device}
        if made.patch_size_t is None:
            return rotary(crops_coords=get_resize_crop_region_for_grid(grid, base[1], base[0]), temporal_size=frames, **asked)
        return rotary(crops_coords=None, temporal_size=-(-frames // made.patch_size_t), grid_type="slice", max_size=base, **asked)


def _flatten(tree: Any, into: list[Tensor]) -> Any:
    """The tensors of nested dicts in one list; returns the dicts with their places in it."""
    if isinstance(tree, dict):
        return {name: _flatten(branch, into) for name, branch in tree.items()}
    if tree is None:
        return None
    into.append(tree)
    return len(into) - 1


def _unflatten(flat: Cache, shape: Any) -> Any:
    if isinstance(shape, dict):
        return {name: _unflatten(flat, branch) for name, branch in shape.items()}
    return None if shape is None else flat[shape]
