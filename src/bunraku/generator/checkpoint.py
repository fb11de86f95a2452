"""Models on disk: folders as released (config.yaml, model.safetensors, stats/) and our own (model.json, model.safetensors).

A released folder's `_target_` lines name classes of the release; they are read as words and mapped, never imported.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from bunraku.errors import FileProblem, FormatProblem
from bunraku.files.disk import read_text, write_bytes, write_text
from bunraku.generator.backbone import BackboneConfig
from bunraku.generator.denoiser import Denoiser, DenoiserConfig
from bunraku.generator.features import FeatureLayout
from bunraku.generator.stats import Spread, Stats, load_stats, stats_tensors
from bunraku.kinematics.library import skeleton

WEIGHTS = "model.safetensors"
OURS, RELEASED = "model.json", "config.yaml"
FORMAT = 1


@dataclass(frozen=True, kw_only=True, eq=False)
class Model:
    """A denoiser and what must be known to use it."""

    name: str
    denoiser: Denoiser
    text_encoder: str  # as `text.open.text_encoder` names it
    max_seconds: float = 10.0  # the longest clip it was trained on

    @property
    def layout(self) -> FeatureLayout:
        return self.denoiser.layout


def load_model(folder: Path) -> Model:
    """The model in a folder, in float32 on the CPU, ready to run."""
    if not folder.is_dir():
        raise FileProblem(f"'{folder}' is no folder; a model is a folder with {WEIGHTS} and {RELEASED} (as released) or {OURS} (ours).")
    if (folder / OURS).is_file():
        return _load_ours(folder)
    if (folder / RELEASED).is_file():
        return _load_released(folder)
    raise FileProblem(f"'{folder}' holds neither {RELEASED} (a released model) nor {OURS} (one of ours).")


def save_model(model: Model, folder: Path, dtype: torch.dtype = torch.float32) -> None:
    """Writes one of our own folders; weights in `dtype`, statistics in float32 beside them in one file."""
    from safetensors.torch import save

    layout = model.layout
    about = {
        "format": FORMAT,
        "name": model.name,
        "skeleton": layout.skeleton.name,
        "fps": layout.fps,
        "smooth_root": layout.smooth,
        "text_encoder": model.text_encoder,
        "max_seconds": model.max_seconds,
        "denoiser": asdict(model.denoiser.config),
    }
    weights = {name: value.to(dtype).contiguous().cpu() for name, value in model.denoiser.state_dict().items()}
    statistics = {f"stats.{name}": value.float().contiguous().cpu() for name, value in stats_tensors(model.denoiser.stats).items()}
    folder.mkdir(parents=True, exist_ok=True)
    write_bytes(folder / WEIGHTS, save({**weights, **statistics}))
    write_text(folder / OURS, json.dumps(about, indent=1) + "\n")


# --- our own folders -------------------------------------------------------------------------------------------------


def _load_ours(folder: Path) -> Model:
    about = read_json(folder / OURS)
    try:
        if about["format"] != FORMAT:
            raise FormatProblem(f"'{folder / OURS}' is of format {about['format']}; this version of bunraku reads {FORMAT}. Update bunraku.")
        layout = FeatureLayout(skeleton=skeleton(about["skeleton"]), fps=float(about["fps"]), smooth=bool(about["smooth_root"]))
        made = dict(about["denoiser"])
        config = DenoiserConfig(**{**made, "backbone": BackboneConfig(**made["backbone"])})
        name, text_encoder, max_seconds = str(about["name"]), str(about["text_encoder"]), float(about["max_seconds"])
    except (KeyError, TypeError, ValueError) as error:
        raise FormatProblem(f"'{folder / OURS}' does not describe a model: {type(error).__name__} {error}.") from error
    tensors = read_tensors(folder / WEIGHTS)
    rows = {key.removeprefix("stats."): tensors.pop(key) for key in list(tensors) if key.startswith("stats.")}
    stats = _stats(rows, layout, folder / WEIGHTS)
    with _NoInit():
        blank = Denoiser(config, layout, stats)
    denoiser = _filled(blank, tensors, folder / WEIGHTS)
    return Model(name=name, denoiser=denoiser, text_encoder=text_encoder, max_seconds=max_seconds)


def _stats(rows: Mapping[str, Tensor], layout: FeatureLayout, path: Path) -> Stats:
    widths = {"global_root": 5, "local_root": 4, "body": layout.body_width}
    for name, width in widths.items():
        for kind in ("mean", "std"):
            row = rows.get(f"{name}.{kind}")
            if row is None or row.shape != (width,):
                given = "nothing" if row is None else f"shape {list(row.shape)}"
                raise FormatProblem(f"'{path}': 'stats.{name}.{kind}' has {given}; {width} numbers are needed for '{layout.skeleton.name}'.")
    return Stats(**{name: Spread(mean=rows[f"{name}.mean"], std=rows[f"{name}.std"]) for name in widths})


# --- released folders ------------------------------------------------------------------------------------------------

_SKELETONS = {"SOMASkeleton30": "soma30", "SOMASkeleton77": "soma77", "G1Skeleton34": "g1", "SMPLXSkeleton22": "smplx22"}

# released name → ours, replaced in this order
_NAMES = {
    "denoiser.backbone.": "",
    "root_model.": "root_net.",
    "body_model.": "body_net.",
    "embed_text.": "text_in.",
    "embed_timestep.time_embed.0.": "level_in.",
    "embed_timestep.time_embed.2.": "level_out.",
    "linear_first_heading_angle.": "heading_in.",
    "input_linear.": "pose_in.",
    "output_linear.": "pose_out.",
    "seqTransEncoder.layers.": "layers.",
    "self_attn.in_proj_": "qkv.",
    "self_attn.out_proj.": "attention_out.",
    "linear1.": "feed_in.",
    "linear2.": "feed_out.",
    "norm1.": "attention_norm.",
    "norm2.": "feed_norm.",
}


def our_name(released: str) -> str:
    """The name in our modules of a tensor of a released checkpoint."""
    for theirs, ours in _NAMES.items():
        released = released.replace(theirs, ours)
    return released


def _load_released(folder: Path) -> Model:
    config = _yaml(folder / RELEASED)
    try:
        made = config["denoiser"]
        motion = made["motion_rep"]
        layout = FeatureLayout(skeleton=skeleton(_released_skeleton(motion["skeleton"]["_target_"], folder)), fps=float(motion["fps"]))
        backbone = BackboneConfig(
            width=int(made["latent_dim"]),
            feed_width=int(made["ff_size"]),
            layers=int(made["num_layers"]),
            heads=int(made["num_heads"]),
            text_width=int(made["llm_shape"][-1]),
            text_slots=int(made["num_text_tokens_override"]),
            norm="pre" if made.get("norm_first", False) else "post",
        )
        stats_folder = folder / str(motion.get("stats_path", "stats"))
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise FormatProblem(f"'{folder / RELEASED}' lacks what a released model says of itself: {type(error).__name__} {error}.") from error
    _refuse_other_makes(made, folder / RELEASED)
    stats = load_stats(stats_folder, layout)
    with _NoInit():
        denoiser = Denoiser(DenoiserConfig(backbone=backbone), layout, stats)
    tensors = {our_name(name): value for name, value in read_tensors(folder / WEIGHTS).items()}
    name = _released_name(folder)
    text_encoder = "llm2vec-float32" if name.endswith("v1.1") else "llm2vec"  # v1 saw its vectors in bfloat16
    return Model(name=name, denoiser=_filled(denoiser, tensors, folder / WEIGHTS), text_encoder=text_encoder)


def _released_name(folder: Path) -> str:
    """The folder's name; within Hugging Face's cache (`models--nvidia--NAME/snapshots/HASH`) the model's."""
    folder = folder.resolve()
    return folder.parent.parent.name.rsplit("--", 1)[-1] if folder.parent.name == "snapshots" else folder.name


def _released_skeleton(target: str, folder: Path) -> str:
    name = _SKELETONS.get(str(target).rsplit(".", 1)[-1])
    if name is None:
        raise FormatProblem(f"'{folder / RELEASED}' is for the skeleton '{target}'; known are {', '.join(_SKELETONS)}.")
    return name


def _refuse_other_makes(made: Mapping[str, Any], path: Path) -> None:
    """What the release can be configured to but never was would run and be wrong: better to say so."""
    expected = {"motion_mask_mode": "concat", "use_text_mask": False, "activation": "gelu", "input_first_heading_angle": True}
    for key, value in expected.items():
        if made.get(key, value) != value:
            raise FormatProblem(f"'{path}' has {key}: {made[key]}; only {value}, as in every released model, can be run.")


# --- files ------------------------------------------------------------------------------------------------------------


class _NoInit(TorchFunctionMode):
    """Leaves new layers as the memory is: random numbers for weights that are read from a file would take longer than reading them."""

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
        given = kwargs or {}
        if getattr(func, "__module__", None) == "torch.nn.init":
            return args[0] if args else given["tensor"]
        return func(*args, **given)


def _filled(denoiser: Denoiser, tensors: Mapping[str, Tensor], path: Path) -> Denoiser:
    """The denoiser with these weights, once names and shapes are seen to fit."""
    wanted = denoiser.state_dict()
    for name, value in wanted.items():
        if name not in tensors:
            raise FormatProblem(f"'{path}' lacks the weights '{name}'; it belongs to another model than its configuration says.")
        if tensors[name].shape != value.shape:
            body = f"'{denoiser.layout.skeleton.name}' has {denoiser.layout.joints} joints"
            raise FormatProblem(
                f"'{path}': the weights '{name}' have shape {list(tensors[name].shape)}, not {list(value.shape)} ({body}). Is it a model of another skeleton?"
            )
    unknown = next((name for name in tensors if name not in wanted), None)
    if unknown is not None:
        raise FormatProblem(f"'{path}' has weights '{unknown}' that this model has no place for.")
    denoiser.load_state_dict({name: value.float() for name, value in tensors.items()})  # half precision is slow or missing on CPUs
    return denoiser.eval().requires_grad_(False)


def read_tensors(path: Path) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    if not path.is_file():
        raise FileProblem(f"'{path}' is missing; a model folder holds its weights there.")
    try:
        return load_file(path)
    except (SafetensorError, ValueError, OSError) as error:
        raise FormatProblem(f"'{path}' is no complete safetensors file ({error}). Was it cut short? Fetch it again.") from error


def read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(read_text(path))
    except ValueError as error:
        raise FormatProblem(f"'{path}' is no JSON ({error}).") from error
    return _mapping(value, path)


def _yaml(path: Path) -> dict[str, Any]:
    import yaml

    try:
        value = yaml.safe_load(read_text(path))
    except (yaml.YAMLError) as error:
        raise FormatProblem(f"'{path}' is no YAML ({str(error).splitlines()[0]}).") from error
    return _mapping(value, path)


def _mapping(value: object, path: Path) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise FormatProblem(f"'{path}' holds a {type(value).__name__}; names with values are needed.")
    return value
