"""The transformer against PyTorch's own encoder, and the other makes of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from bunraku.errors import BadValue
from bunraku.generator.backbone import Backbone, position_codes
from tests.generator.tiny import SMALL


def backbone(**changes: object) -> Backbone:
    torch.manual_seed(1)
    return Backbone(replace(SMALL, **changes), width_in=20, width_out=7).eval()


def whole(net: Backbone, poses: torch.Tensor, text: torch.Tensor, level: torch.Tensor, heading: torch.Tensor, valid: torch.Tensor | None) -> torch.Tensor:
    return net(poses, level, net.embed(text, heading), valid)


def inputs(frames: int = 9, clips: int = 3) -> tuple[torch.Tensor, ...]:
    torch.manual_seed(2)
    return torch.randn(clips, frames, 20), torch.randn(clips, 2, 24), torch.tensor([0, 500, 999])[:clips], torch.randn(clips, 2)


def pytorch_twin(net: Backbone, poses: torch.Tensor, text: torch.Tensor, level: torch.Tensor, heading: torch.Tensor, valid: torch.Tensor) -> torch.Tensor:
    """The same weights in `nn.TransformerEncoder`, as the released model is written."""
    c = net.config
    layer = nn.TransformerEncoderLayer(c.width, c.heads, c.feed_width, 0.0, "gelu", batch_first=True, norm_first=c.norm == "pre")
    encoder = nn.TransformerEncoder(layer, c.layers, enable_nested_tensor=False).eval()
    for theirs, ours in zip(encoder.layers, net.layers, strict=True):
        theirs.self_attn.in_proj_weight.data, theirs.self_attn.in_proj_bias.data = ours.qkv.weight.data, ours.qkv.bias.data
        theirs.self_attn.out_proj.load_state_dict(ours.attention_out.state_dict())
        for name, twin in (("linear1", "feed_in"), ("linear2", "feed_out"), ("norm1", "attention_norm"), ("norm2", "feed_norm")):
            getattr(theirs, name).load_state_dict(getattr(ours, twin).state_dict())
    frames = poses.shape[1]
    slots = torch.cat([net.text_in(text), net.text_in.bias.expand(len(text), c.text_slots - text.shape[1], -1)], dim=1)
    code = net.level_out(nn.functional.silu(net.level_in(position_codes(1000, c.width)[level])))
    tokens = torch.cat([slots, code[:, None], net.heading_in(heading)[:, None], net.pose_in(poses)], dim=1)
    tokens = tokens + position_codes(tokens.shape[1], c.width)
    ignored = torch.cat([torch.zeros(len(poses), tokens.shape[1] - frames, dtype=torch.bool), ~valid], dim=1)
    return net.pose_out(net.last_norm(encoder(tokens, src_key_padding_mask=ignored)[:, -frames:]))


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_value_and_gradient_equal_pytorchs_encoder(norm: str) -> None:
    net, (poses, text, level, heading) = backbone(norm=norm), inputs()
    valid = torch.arange(9) < torch.tensor([9, 5, 1])[:, None]
    results = []
    for run in (lambda p: whole(net, p, text, level, heading, valid), lambda p: pytorch_twin(net, p, text, level, heading, valid)):
        p = poses.clone().requires_grad_()
        out = run(p)[valid]
        results.append((out, torch.autograd.grad(out.square().sum(), p)[0]))
    assert torch.allclose(results[0][0], results[1][0], atol=1e-5)
    assert torch.allclose(results[0][1], results[1][1], atol=1e-4)


@pytest.mark.parametrize("together", [1, 2, 4])
def test_frames_past_the_end_change_nothing(together: int) -> None:
    net, (poses, text, level, heading) = backbone(frames_per_token=together), inputs()
    valid = torch.arange(9) < 5
    other = torch.where(valid[:, None], poses, torch.full_like(poses, 1e3))
    a, b = (whole(net, p, text, level, heading, valid.expand(3, -1))[:, :5] for p in (poses, other))
    assert torch.allclose(a, b, atol=1e-5)
    assert torch.allclose(a, whole(net, poses[:, :5], text, level, heading, None), atol=1e-5)


def test_text_slots_not_given_are_zeros_that_count() -> None:
    net, (poses, text, level, heading) = backbone(), inputs()
    padded = torch.cat([text, torch.zeros(3, 4, 24)], dim=1)
    assert torch.allclose(whole(net, poses, text, level, heading, None), whole(net, poses, padded, level, heading, None))


def test_a_token_of_several_frames_puts_each_back_where_it_came_from() -> None:
    """With attention and feed-forward nets silent, the weights that read and write a token's second frame move nothing but second frames."""
    net, (poses, text, level, heading) = backbone(frames_per_token=3), inputs(frames=8)
    for layer in net.layers:
        for part in (layer.attention_out, layer.feed_out):
            torch.nn.init.zeros_(part.weight)
            torch.nn.init.zeros_(part.bias)
    before = whole(net, poses, text, level, heading, None)
    net.pose_out.bias.data[7:14] += 1.0
    moved = (whole(net, poses, text, level, heading, None) - before).abs().amax(dim=(0, 2)) > 0.5
    assert before.shape == (3, 8, 7)
    assert moved.tolist() == [False, True, False, False, True, False, False, True]


def test_a_token_holds_at_least_one_frame() -> None:
    with pytest.raises(BadValue, match="frames_per_token is 0"):
        backbone(frames_per_token=0)


@pytest.mark.parametrize("changes", [{"qk_norm": True}, {"norm": "pre", "qk_norm": True, "dropout": 0.1}, {"frames_per_token": 3}])
def test_other_makes_run_and_carry_gradients_to_every_weight(changes: dict[str, object]) -> None:
    net = backbone(**changes).train()
    whole(net, *inputs(), None).square().sum().backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in net.parameters())


def test_remembered_levels_change_nothing() -> None:
    net, args = backbone(), inputs()
    before = whole(net, *args, None)
    net.remember_levels(1000)
    assert torch.allclose(whole(net, *args, None), before, atol=1e-6)
    assert "level_tokens" not in net.state_dict()
