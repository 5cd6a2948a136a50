# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
"""attn_implementation="oscar": attention over an OscarCache, and as usual where there is none."""

import math

import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import causal_mask_function, sdpa_mask

from . import ops
from .layer import Reading

NAME = "oscar"


def mask(batch_size, q_length, kv_length, mask_function=causal_mask_function, attention_mask=None,
         local_size=None, use_vmap=False, allow_is_causal_skip=True, config=None, **kwargs):
    """None or the mask of tokens [batch, tokens] where attention is causal; else what each query sees,
    [batch, 1, queries, keys] bool: attention in chunks, between tokens of an image, packed texts.
    """
    chunks = getattr(config, "attention_chunk_size", None)
    unusual = use_vmap or (not allow_is_causal_skip and q_length > 1)
    if unusual or (local_size is not None and local_size == chunks):
        return sdpa_mask(
            batch_size, q_length, kv_length, mask_function=mask_function, attention_mask=attention_mask,
            use_vmap=use_vmap, allow_is_causal_skip=False, **kwargs,
        )
    return attention_mask


def forward(module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, scaling=None,
            dropout=0.0, softcap=None, s_aux=None, sliding_window=None, position_bias=None, **kwargs):
    """Outputs [batch, queries, num_q_heads, v_dim] of query [batch, num_q_heads, queries, head_dim]."""
    if position_bias is not None:
        raise NotImplementedError('attn_implementation="oscar" takes no position bias')
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    reading: Reading | None = getattr(key, "oscar", None)
    if reading is None:
        return plain(module, query, key, value, attention_mask, scale, softcap, s_aux, sliding_window), None
    layer, step, core = reading.layer, reading.step, reading.layer.core
    given = attention_mask is not None and attention_mask.dim() == 4
    if (given and step.tokens > 1) or core.holes is not None:
        seen = attention_mask if given else visible(core, layer, step, query.device)
        return mixed(reading, query, seen, scale, softcap, s_aux).to(query.dtype), None
    library, shared = ops.load(), layer.shared
    q = library.rotate_queries(step.pack(query).contiguous(), layer.undo_bf16[0])
    dtype = torch.float32 if query.dtype != torch.bfloat16 else torch.bfloat16
    out = torch.empty(*q.shape[:2], layer.stored.v.dim, dtype=dtype, device=q.device)
    sinks = None if s_aux is None else s_aux.detach().float().contiguous()
    ratio = query.shape[1] // layer.stored.num_kv_heads
    for view, tails in zip(layer.views, reading.tails):
        library.attend(
            out, q, *view.stored(shared, layer.table), step.row_begin, step.max_rows, max(step.after), ratio,
            float(scale), float(softcap or 0), layer.window, sinks, core.prefill == "exact" and step.tokens > 1,
            *(tails if step.tokens > 1 else (None, None)),
        )
    out = library.rotate_outputs(out, layer.undo_bf16[1])
    return step.unpack(out).to(query.dtype), None


def plain(module, query, key, value, attention_mask, scale, softcap, sinks, window) -> Tensor:
    """Attention to keys and values as they are: of a pass without a cache, of an encoder."""
    seen, queries, keys = None, query.shape[2], key.shape[2]
    if attention_mask is not None and attention_mask.dim() == 4:
        seen = attention_mask
    elif getattr(module, "is_causal", True):
        age = torch.arange(keys - queries, keys)[:, None] - torch.arange(keys)[None]
        seen = (age >= 0) if window is None else (age >= 0) & (age < window)
        seen = seen.to(query.device)[None, None]
        if attention_mask is not None:
            seen = seen & attention_mask[:, None, None, -keys:].bool()
    elif attention_mask is not None:
        seen = attention_mask[:, None, None, -keys:].bool()
    ratio = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(ratio, 1), value.repeat_interleave(ratio, 1)
    weights = softmax((query @ key.mT).float() * scale, seen, softcap, sinks)
    return (weights.to(value.dtype) @ value).transpose(1, 2).contiguous()


def softmax(logits: Tensor, seen: Tensor | None, softcap, sinks) -> Tensor:
    if softcap:
        logits = softcap * torch.tanh(logits / softcap)
    if seen is not None and seen.dtype == torch.bool:
        logits = logits.masked_fill(~seen, -math.inf)
    elif seen is not None:
        logits = logits + seen
    if sinks is None:
        return logits.softmax(-1).nan_to_num(0)  # padding sees nothing
    extra = sinks.float().view(1, -1, 1, 1).expand(*logits.shape[:3], 1)
    return torch.cat([logits, extra], -1).softmax(-1)[..., :-1]


def visible(core, layer, step, device) -> Tensor:
    """What queries of the step see, [batch, 1, queries, keys], of texts with padding inside them."""
    keys = torch.arange(layer.length, device=device)
    age = keys[layer.length - step.tokens :, None] - keys[None]
    seen = (age >= 0) if layer.window == 0 else (age >= 0) & (age < layer.window)
    real = torch.nn.functional.pad(core.holes, (0, layer.length - core.holes.shape[1]), value=True)
    return seen[None, None] & real[:, None, None].to(device)


def mixed(reading: Reading, query: Tensor, seen: Tensor, scale: float, softcap, sinks) -> Tensor:
    """The same with a mask: slower, since the rows of the cache are read for it."""
    layer, step, core = reading.layer, reading.step, reading.layer.core
    device, heads, length = query.device, layer.stored.num_kv_heads, layer.length
    ratio = query.shape[1] // heads
    held = min(core.recent_slots(device) + step.tokens, length)  # tokens of which exact rows are at hand
    read = layer._read(shared_state(reading), max(step.after))
    exact = layer.chunk(reading, held) if step.tokens > 1 else None
    rows = []
    for which, part in enumerate(read):
        aligned = part.new_zeros(step.batch, heads, length, part.shape[-1])
        for text, real in enumerate(step.after):
            aligned[text, :, length - real :] = part[text, :, :real]
        recent = aligned.clone()
        if exact is not None:
            recent[:, :, length - held :] = exact[which]
        rows.append([r.repeat_interleave(ratio, 1) for r in (aligned, recent)])
    first = torch.tensor(core.first, device=device)[:, None, None, None]
    position = torch.arange(length, device=device)
    queries = position[length - step.tokens :]
    begins = queries if core.prefill == "quantized" else torch.full_like(queries, length - step.tokens - 1)
    end = (begins[:, None] + 1 - first - core.sink - core.recent).clamp(min=0)
    quantum = core.quantum(device)
    end = first + core.sink + end // quantum * quantum
    is_exact = (position < first + core.sink) | (position >= end)  # [batch, 1, queries, keys]
    undo = [m.float().expand(heads, -1, -1).repeat_interleave(ratio, 0) for m in layer.undo_bf16]
    q = (query.to(torch.bfloat16).float() @ undo[0]).to(torch.bfloat16).float()
    (k_read, k_exact), (v_read, v_exact) = rows
    logits = torch.where(is_exact, q @ k_exact.mT, q @ k_read.mT) * scale
    weights = softmax(logits, seen[..., :length], softcap, sinks)
    out = (weights * is_exact) @ v_exact + (weights * ~is_exact) @ v_read
    return (out @ undo[1].mT).transpose(1, 2).contiguous()


def shared_state(reading: Reading) -> Tensor:
    return reading.layer.shared.state


AttentionInterface.register(NAME, forward)
AttentionMaskInterface.register(NAME, mask)
