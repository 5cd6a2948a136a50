# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
"""attn_implementation="oscar": attention over an OscarCache, and as usual where there is none."""

import math

import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import sdpa_mask

from . import ops
from .layer import Reading

NAME = "oscar"


def mask(q_length, attention_mask=None, use_vmap=False, allow_is_causal_skip=True, **kwargs):
    """None or the mask of tokens [batch, tokens] where attention is causal; else what each query sees,
    [batch, 1, queries, keys] bool: between tokens of an image, in packed texts.
    """
    if not use_vmap and (allow_is_causal_skip or q_length == 1):
        return attention_mask
    kwargs |= {"q_length": q_length, "attention_mask": attention_mask, "use_vmap": use_vmap}
    return sdpa_mask(**kwargs, allow_is_causal_skip=False)


def forward(module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, scaling=None,
            softcap=None, s_aux=None, sliding_window=None, position_bias=None, **kwargs):
    """Outputs [batch, queries, num_q_heads, v_dim] of query [batch, num_q_heads, queries, head_dim]."""
    if position_bias is not None:
        raise NotImplementedError('attn_implementation="oscar" takes no position bias')
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    reading: Reading | None = getattr(key, "oscar", None)
    if reading is None:
        return plain(module, query, key, value, attention_mask, scale, softcap, s_aux, sliding_window), None
    layer, step, core = reading.layer, reading.step, reading.layer.core
    if attention_mask is not None and attention_mask.dim() == 4 and step.tokens > 1:
        raise NotImplementedError('attn_implementation="oscar" takes no masks but of padding: none between tokens of an '
                                  "image, none of packed texts; another implementation does, on the same cache")
    library, shared = ops.load(), layer.shared
    q = library.rotate_queries(step.pack(query).contiguous(), layer.undo_bf16[0])
    dtype = torch.float32 if query.dtype != torch.bfloat16 else torch.bfloat16
    out = torch.empty(*q.shape[:2], layer.stored.v.dim, dtype=dtype, device=q.device)
    sinks = None if s_aux is None else s_aux.detach().float().contiguous()
    ratio = query.shape[1] // layer.stored.num_kv_heads
    for view, tails in zip(layer.views, reading.tails):
        rows = (step.row_begin, step.max_rows, max(step.after), ratio)
        rule = (float(scale), float(softcap or 0), layer.window, sinks, core.prefill == "exact" and step.tokens > 1)
        tails = tails if step.tokens > 1 else (None, None)
        library.attend(out, q, *view.stored(shared, layer.table), *rows, *rule, *tails)
    out = library.rotate_outputs(out, layer.undo_bf16[1])
    return step.unpack(out).to(query.dtype), None


def plain(module, query, key, value, attention_mask, scale, softcap, sinks, window) -> Tensor:
    """Attention to keys and values as they are: of a pass without a cache, of an encoder."""
    seen, queries, keys = attention_mask, query.shape[2], key.shape[2]
    if seen is not None and seen.dim() == 2:
        seen = seen[:, None, None, -keys:].bool()
    if getattr(module, "is_causal", True) and (attention_mask is None or attention_mask.dim() == 2):
        age = torch.arange(keys - queries, keys, device=query.device)[:, None] - torch.arange(keys, device=query.device)
        causal = (age >= 0) & (age < (window or keys))
        seen = causal if seen is None else causal & seen
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


AttentionInterface.register(NAME, forward)
AttentionMaskInterface.register(NAME, mask)
