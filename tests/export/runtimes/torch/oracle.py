# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
"""A second implementation of the simulated cache in plain PyTorch, row by row and without a cache.

Follows calib/cache/affine_tensor.cc, side_tensors.cc and export/validate/mixed_attention.cc in
float32. It is slow because every query forms its own mixture of exact and quantized rows.
"""

import math

import torch

STEP = 8  # tokens that leave the recent window and are quantized at once
MAX_STEPS = 127  # linalg/affine_metadata.h


def bf16(x):
    return x.to(torch.bfloat16).float()


def matrices(values, heads):
    m = torch.tensor(values)
    return bf16(m.expand(heads, *m.shape[1:]))


def turned(side, rows):
    """Rotates the model's rows [batch, heads, tokens, dim] into the cache's space, rounded to bf16."""
    x = bf16(rows.float())
    if side.mean is not None:
        x = x - torch.tensor(side.mean)[:, None]
    return bf16(bf16(x) @ matrices(side.rotation, rows.shape[1]))


def turned_back(side, rows):
    return rows @ matrices(side.undo, rows.shape[1]).transpose(-1, -2)


def turned_queries(side, q, heads):
    ratio = q.shape[1] // heads
    return bf16(bf16(q.float()) @ matrices(side.undo, heads).repeat_interleave(ratio, 0))


def places(x, scale, zero):
    return x / scale + zero


def codes(x, scale, zero, top):
    return torch.trunc((places(x, scale, zero) + 0.5).clamp(0, top))


def refitted(x, scale, zero, bits, least_squares):
    top, steps = 2**bits - 1, 2 ** (7 - bits)
    p = places(x, scale, zero)
    c = torch.trunc((p + 0.5).clamp(0, top))
    q = torch.round(((p - top / 2) * steps).clamp(-MAX_STEPS, MAX_STEPS))
    n = x.shape[-1]

    def total(t):
        return t.sum(-1, keepdim=True).double()

    cov = n * total(c * q) - total(c) * total(q)

    def var(t):
        return (n * total(t * t) - total(t) ** 2).float()

    slope = (cov.float() / var(c) if least_squares else var(q) / cov.float()) / steps
    at_zero = total(q).float() / n / steps + top / 2 - total(c).float() / n * slope
    fits = cov > 0
    return torch.where(fits, scale * slope, scale), torch.where(fits, (zero - at_zero) / slope, zero)


def stored(scale, zero, metadata, bits):
    if metadata == "f32":
        return scale, zero
    if metadata == "bf16":
        return bf16(scale), bf16(zero)
    x = scale.clamp(2.0**-17, 61440)
    step = (x / torch.frexp(x)[0] / 16).clamp(min=2.0**-17)
    middle, steps = (2**bits - 1) / 2, 2 ** (7 - bits)
    zeros = torch.round(((zero - middle) * steps).clamp(-MAX_STEPS, MAX_STEPS))
    return torch.round(x / step) * step, zeros / steps + middle


def quantized_head(x, bits, clip, side, factor=None):
    """Returns rotated rows [..., dim] of one head as they are read from the cache."""
    top, group = 2**bits - 1, side.group
    clamped = x
    if clip > 0:
        at = side.dim - 1 if clip >= 1 else int(clip * side.dim)
        threshold = x.abs().sort(-1).values[..., at : at + 1]
        clamped = torch.minimum(torch.maximum(x, -threshold), threshold)
    x, clamped = x.unflatten(-1, (-1, group)), clamped.unflatten(-1, (-1, group))
    low, high = clamped.amin(-1, True), clamped.amax(-1, True)
    if side.metadata == "byte":
        low, high = low.clamp(max=0), high.clamp(min=0)
    scale = (high - low).clamp(min=1e-8) / torch.tensor(float(top))
    zero = -low / scale
    rounds = kept = (scale, zero)
    if side.scales != "range":
        squares = refitted(x, scale, zero, bits, True)
        kept = refitted(x, *squares, bits, False)
        rounds = squares if side.scales == "unbiased" else kept
    kept = stored(*kept, side.metadata, bits)
    if side.metadata == "byte":
        rounds = kept
    if factor is not None:
        return with_feedback(x.flatten(-2), *kept, bits, group, factor)
    c = codes(x if side.scales != "range" else clamped, *rounds, top)
    return ((c - kept[1]) * kept[0]).flatten(-2)


def with_feedback(x, scale, zero, bits, group, factor):
    top, share = 2**bits - 1, (2**20 // (2**bits - 1)) / 2**20
    quanta = float(16 << bits)
    scale, zero = scale.squeeze(-1), zero.squeeze(-1)
    widest = scale.amax(-1)
    fed, read = torch.zeros_like(x), torch.empty_like(x)
    for i in range(x.shape[-1]):
        s, z = scale[..., i // group], zero[..., i // group]
        y = x[..., i] * (torch.tensor(share) / s) + z * share
        wider = (widest / s).clamp(max=2.0**64) / quanta
        moved = (fed[..., i] * wider + y).clamp(0, 1).abs()
        code = torch.round(moved.double() * top).float()
        read[..., i] = (code - z) * s
        q = torch.round((y - code * share) * (s / widest * quanta)).clamp(-MAX_STEPS, MAX_STEPS)
        fed = fed + q[..., None] * factor[i]
    return read


def quantized(side, rows):
    """Returns rotated rows [batch, heads, tokens, dim] as they are read from the cache."""
    heads = []
    for h in range(rows.shape[1]):
        factor = None if side.feedback is None else torch.tensor(side.feedback[h])
        heads.append(quantized_head(rows[:, h], side.bits[h], side.clip[h], side, factor))
    return torch.stack(heads, 1)


def attention(layer, windows, q, k, v, first, scale, window=None, softcap=None, sinks=None):
    """Returns outputs [batch, num_q_heads, tokens, v_dim] of a whole sequence. first [batch]: first token after padding."""
    sink, recent = windows
    heads, tokens = k.shape[1], k.shape[2]
    ratio = q.shape[1] // heads
    queries = turned_queries(layer.k, q, heads)
    keys, values = turned(layer.k, k), turned(layer.v, v)

    def of_queries(rows):
        return rows.repeat_interleave(ratio, 1)

    keys_read, values_read = of_queries(quantized(layer.k, keys)), of_queries(quantized(layer.v, values))
    keys, values = of_queries(keys), of_queries(values)
    position = torch.arange(tokens)
    age = position[:, None] - position[None]
    real = position[None] >= first[:, None]  # [batch, tokens]
    seen = (age >= 0)[None] & real[:, None]
    if window is not None:
        seen = seen & (age < window)
    of_text = position[None] - first[:, None]  # [batch, tokens]
    end = sink + (of_text + 1 - sink - recent).clamp(min=0) // STEP * STEP  # end of the tokens that a query reads quantized
    exact = ((of_text < sink)[:, None] | (of_text[:, None] >= end[:, :, None]))[:, None]
    logits = torch.where(exact, queries @ keys.mT, queries @ keys_read.mT) * scale
    if softcap is not None:
        logits = softcap * torch.tanh(logits / softcap)
    logits = logits.masked_fill(~seen[:, None], -math.inf)
    if sinks is not None:
        extra = sinks.float().reshape(1, -1, 1, 1).expand(*logits.shape[:3], 1)
        weights = torch.cat([logits, extra], -1).softmax(-1)[..., :-1]
    else:
        weights = logits.softmax(-1)
    weights = weights.nan_to_num(0)  # padding sees nothing
    out = (weights * exact) @ values + (weights * ~exact) @ values_read
    undo = matrices(layer.v.undo, heads).repeat_interleave(ratio, 0)
    return out @ undo.mT


def register(artifact, name="oscar_oracle"):
    """Registers attention for passes without a cache, so that model(ids) gives the simulator's results."""
    from transformers import AttentionInterface, AttentionMaskInterface

    layers = {i: artifact.layer(i) for i in artifact.layer_ids}

    def forward(module, query, key, value, attention_mask, scaling=None, softcap=None, s_aux=None,
                sliding_window=None, **kwargs):
        first = torch.zeros(len(query), dtype=torch.long)
        if attention_mask is not None:
            first = attention_mask.int().argmax(-1)
        scale = query.shape[-1] ** -0.5 if scaling is None else scaling
        at, kinds = module.layer_idx, module.config.layer_types if hasattr(module.config, "layer_types") else None
        if at not in layers:  # a layer that reads the cache of the last layer of its kind
            at = max(i for i in layers if kinds[i] == kinds[at])
        out = attention(layers[at], artifact.windows, query, key, value, first, scale,
                        sliding_window, softcap, s_aux)
        return out.transpose(1, 2).to(query.dtype).contiguous(), None

    AttentionInterface.register(name, forward)
    AttentionMaskInterface.register(name, lambda *args, attention_mask=None, **kwargs: attention_mask)
