"""Tiny random video models from diffusers' own classes: the real code with weights of no meaning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

pipelines = {"cogvideox": "CogVideoXPipeline", "wan": "WanPipeline", "ltx": "LTXPipeline"}


def cogvideox_parts(*, patch_size_t: int | None = None, rotary: bool = True) -> dict[str, Any]:
    from diffusers import AutoencoderKLCogVideoX, CogVideoXTransformer3DModel

    torch.manual_seed(0)
    transformer = CogVideoXTransformer3DModel(
        num_attention_heads=2, attention_head_dim=16, in_channels=4, out_channels=4, time_embed_dim=8, text_embed_dim=32, num_layers=1,
        sample_width=8, sample_height=8, sample_frames=9, patch_size=2, patch_size_t=patch_size_t, temporal_compression_ratio=4,
        max_text_seq_length=16, use_rotary_positional_embeddings=rotary,
    )  # fmt: skip
    vae = AutoencoderKLCogVideoX(
        in_channels=3, out_channels=3, down_block_types=("CogVideoXDownBlock3D",) * 4, up_block_types=("CogVideoXUpBlock3D",) * 4,
        block_out_channels=(8, 8, 8, 8), latent_channels=4, layers_per_block=1, norm_num_groups=2, temporal_compression_ratio=4,
    )  # fmt: skip
    return {"transformer": transformer.eval(), "vae": vae.eval().requires_grad_(False)}


def wan_parts(*, patchify: bool = False) -> dict[str, Any]:
    from diffusers import AutoencoderKLWan, WanTransformer3DModel

    torch.manual_seed(0)
    channels = 8
    transformer = WanTransformer3DModel(
        patch_size=(1, 2, 2), num_attention_heads=2, attention_head_dim=12, in_channels=channels, out_channels=channels, text_dim=32, freq_dim=16,
        ffn_dim=32, num_layers=1, cross_attn_norm=True, qk_norm="rms_norm_across_heads", rope_max_seq_len=32,
    )  # fmt: skip
    more = {"is_residual": True, "patch_size": 2, "in_channels": 12, "out_channels": 12, "scale_factor_spatial": 16} if patchify else {}
    vae = AutoencoderKLWan(
        base_dim=4, z_dim=channels, dim_mult=[1, 1, 1, 1], num_res_blocks=1, temperal_downsample=[False, True, True],
        latents_mean=[0.1] * channels, latents_std=[1.5] * channels, **more,
    )  # fmt: skip
    return {"transformer": transformer.eval(), "vae": vae.eval().requires_grad_(False)}


def ltx_parts() -> dict[str, Any]:
    from diffusers import AutoencoderKLLTXVideo, LTXVideoTransformer3DModel

    torch.manual_seed(0)
    transformer = LTXVideoTransformer3DModel(
        in_channels=8, out_channels=8, patch_size=1, patch_size_t=1, num_attention_heads=2, attention_head_dim=16, cross_attention_dim=32,
        num_layers=1, caption_channels=32,
    )  # fmt: skip
    vae = AutoencoderKLLTXVideo(
        in_channels=3, out_channels=3, latent_channels=8, block_out_channels=(8, 8, 8, 8), decoder_block_out_channels=(8, 8, 8, 8),
        layers_per_block=(1, 1, 1, 1, 1), decoder_layers_per_block=(1, 1, 1, 1, 1), patch_size=4, patch_size_t=1,
    )  # fmt: skip
    return {"transformer": transformer.eval(), "vae": vae.eval().requires_grad_(False)}


def save_folder(folder: Path, kind: str, parts: dict[str, Any], *, alphabet: str = "abcdefghijklmnopqrstuvwxyz .", **index: object) -> Path:
    """The parts as a complete model in diffusers' layout, with a tiny T5 and a tokenizer that reads letters."""
    import json

    from diffusers import CogVideoXDDIMScheduler, FlowMatchEulerDiscreteScheduler
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Split
    from tokenizers.processors import TemplateProcessing
    from transformers import PreTrainedTokenizerFast, T5Config, T5EncoderModel, UMT5Config, UMT5EncoderModel

    vocabulary = {"<pad>": 0, "</s>": 1, "<unk>": 2, **{letter: i + 3 for i, letter in enumerate(alphabet)}}
    raw = Tokenizer(WordLevel(vocabulary, unk_token="<unk>"))
    raw.pre_tokenizer = Split("", "isolated")
    raw.post_processor = TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="<pad>", eos_token="</s>", unk_token="<unk>").save_pretrained(folder / "tokenizer")
    torch.manual_seed(1)
    config, encoder = (UMT5Config, UMT5EncoderModel) if kind == "wan" else (T5Config, T5EncoderModel)
    made: Any = config(vocab_size=len(vocabulary), d_model=32, d_kv=8, d_ff=32, num_layers=1, num_heads=2)
    encoder(made).save_pretrained(folder / "text_encoder")
    for name, part in parts.items():
        part.save_pretrained(folder / name)
    scheduler = (
        CogVideoXDDIMScheduler(prediction_type="v_prediction", rescale_betas_zero_snr=True, timestep_spacing="trailing", snr_shift_scale=1.0)
        if kind == "cogvideox"
        else FlowMatchEulerDiscreteScheduler()
    )
    scheduler.save_pretrained(folder / "scheduler")
    (folder / "model_index.json").write_text(json.dumps({"_class_name": pipelines[kind], **index}), encoding="utf-8")
    return folder
