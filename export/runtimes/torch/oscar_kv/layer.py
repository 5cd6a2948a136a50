# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
"""A layer of the cache: quantized pages in the middle of a text, exact rows at its ends."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from transformers.cache_utils import CacheLayerMixin

from . import ops
from .artifact import MAX_FEEDBACK, ArtifactError, Layer, Side
from .steps import Core, Device, Step

FEEDBACK_BLOCK = 16  # linalg/feedback_codec.h
SCALES = {"range": 0, "unbiased": 1, "unbiased_rounded": 2}


def packed_feedback(factors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Columns [heads, dim, dim + 16] int8 and units [heads] of factors (linalg/error_feedback.h)."""
    heads, dim, _ = factors.shape
    columns = np.zeros((heads, dim, dim + FEEDBACK_BLOCK), np.int8)
    units = np.ones(heads, np.float32)
    row, column = np.triu_indices(dim, 1)
    own = row // FEEDBACK_BLOCK == column // FEEDBACK_BLOCK
    byte = np.where(own, dim + row % FEEDBACK_BLOCK, row)
    for head, factor in enumerate(factors):
        largest = np.abs(factor).max()
        if largest > 0:
            units[head] = 2.0 ** np.ceil(np.log2(largest / MAX_FEEDBACK))
        columns[head, column, byte] = np.rint(factor[row, column] / units[head])
    return columns, units


class SideTensors:
    """Matrices and write options of one side on a device, of some heads or all."""

    def __init__(self, side: Side, heads: list[int] | None, device: torch.device):
        def of_heads(values):
            return values if heads is None or len(values) == 1 else values[heads]

        def tensor(values, dtype=None):
            if values is None:
                return None
            return torch.tensor(of_heads(values)).to(device=device, dtype=dtype).contiguous()

        self.rotation = tensor(side.rotation, torch.bfloat16)
        self.mean = tensor(side.mean)
        clip = np.asarray(side.clip)
        self.clip = of_heads(clip).tolist() if (clip > 0).any() else []
        self.scales = SCALES[side.scales]
        packed = (None, None) if side.feedback is None else packed_feedback(side.feedback)
        self.feedback, self.units = (tensor(values) for values in packed)

    def arguments(self) -> tuple:
        return self.rotation, self.mean, self.clip, self.scales, self.feedback, self.units


class View:
    """Heads of a layer that have the same bits: their pages and windows."""

    def __init__(self, layer: Layer, heads: list[int] | None, core: Core, batch: int, device):
        self.heads = None if heads is None else torch.tensor(heads, device=device)
        self.count = layer.num_kv_heads if heads is None else len(heads)
        self.format = core.format(layer.k, layer.v, 0 if heads is None else heads[0])
        self.k, self.v = (SideTensors(side, heads, device) for side in (layer.k, layer.v))
        self.pages, self.windows = ops.load().make_cache(self.format, self.count, 0, batch, device)

    def move(self, number: int, before: Tensor, after: Tensor) -> None:
        pages = self.pages.new_zeros(number, self.pages.shape[1])
        pages[after] = self.pages[before]
        self.pages = pages

    def stored(self, shared: Device, table: Tensor) -> tuple:
        return self.pages, self.windows, shared.state, table, shared.window_of_text, self.format, self.heads


@dataclass
class Reading:
    """What the attention function gets of a layer: it rides on the key tensor of `update`."""

    layer: "OscarLayer"
    step: Step
    tails: list[tuple[Tensor, Tensor]]  # of every view: exact rows before and of this pass


class OscarLayer(CacheLayerMixin):
    """A layer of full or sliding attention."""

    is_compileable = False
    is_croppable = True
    supports_early_init = False

    def __init__(self, stored: Layer, core: Core, window: int = 0):
        super().__init__()
        self.stored, self.core, self.window = stored, core, window
        self.is_sliding = window > 0
        self.length, self.views = 0, []

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        stored, device = self.stored, key_states.device
        found = (key_states.shape[1], key_states.shape[3], value_states.shape[3])
        expected = (stored.num_kv_heads, stored.k.dim, stored.v.dim)
        if found != expected:
            is_of, wants = ("{} KV heads of {} and {} values".format(*shape) for shape in (found, expected))
            raise ArtifactError(f"layer {stored.layer_id}: {is_of}, the artifact's has {wants}: it is another model's")
        kinds: dict[tuple[int, int], list[int]] = {}
        for head, bits in enumerate(zip(stored.k.bits, stored.v.bits)):
            kinds.setdefault(bits, []).append(head)
        lists = [None] if len(kinds) == 1 else list(kinds.values())
        self.views = [View(stored, heads, self.core, key_states.shape[0], device) for heads in lists]
        self.undo = [torch.tensor(side.undo).to(device) for side in (stored.k, stored.v)]
        self.undo_bf16 = [matrix.to(torch.bfloat16).contiguous() for matrix in self.undo]
        self.mean = None if stored.k.mean is None else torch.tensor(stored.k.mean).to(device)
        self.device, self.dtype, self.is_initialized = device, key_states.dtype, True

    def update(self, key_states: Tensor, value_states: Tensor, *args, **kwargs):
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        step = self.core.begin(key_states, self.length)
        shared = self.core.on(self.device, self.views[0].format, self.window)
        self.shared, self.table = shared, shared.pages[self.window].table
        for view in self.views:
            if shared.moved[self.window] is not None:
                view.move(*shared.moved[self.window])
        ours, before = self.core.implementation() == "oscar", None
        if not ours and step.tokens > 1 and self.length > 0:
            before = self._read(shared.state[[2, 3, 2, 3]].contiguous(), step.before)
        k, v = step.pack(key_states).contiguous(), step.pack(value_states).contiguous()
        tail_rows, tails = step.max_rows if ours and step.tokens > 1 else 0, []
        for view in self.views:
            stored = (view.pages, view.windows, shared.bad_rows, *view.stored(shared, self.table)[2:])
            rows = (k, v, step.row_begin, step.max_rows, tail_rows)
            tails.append(ops.load().write(*stored, *rows, *view.k.arguments(), *view.v.arguments()))
        self.length += step.tokens
        if ours:
            keys, values = (x.new_empty(1).expand(*x.shape[:2], self.length, x.shape[3]) for x in (key_states, value_states))
            keys.oscar = Reading(self, step, tails)
            return keys, values
        # Another attention function: a token reads the cache, a longer pass its own exact rows.
        if step.tokens == 1:
            return tuple(rows.to(key_states.dtype) for rows in self._read(shared.state, step.after))
        if before is None:
            return key_states, value_states
        return tuple(torch.cat([x.to(y.dtype), y], 2) for x, y in zip(before, (key_states, value_states)))

    def _read(self, state: Tensor, lengths: list[int]) -> tuple[Tensor, Tensor]:
        """Rows [batch, heads, self.length, dim] of the model's space as the last token of each text reads them."""
        parts = []
        for view in self.views:
            pages, windows, _, *rest = view.stored(self.shared, self.table)
            parts.append(ops.load().read(pages, windows, state, *rest, self.stored.num_kv_heads, max(lengths)))
        k, v = (sum(part) for part in zip(*parts))
        k, v = k @ self.undo[0].mT, v @ self.undo_bf16[1].float().mT
        if self.mean is not None:
            k = k + self.mean[:, None]
        padded = tuple(rows.new_zeros(*rows.shape[:2], self.length, rows.shape[3]) for rows in (k, v))
        for text, length in enumerate(lengths):
            for rows, to in zip((k, v), padded):
                to[text, :, self.length - length :] = rows[text, :, :length]
        return padded

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.length + query_length, 0

    def get_seq_length(self) -> int:
        return self.length

    def get_max_length(self) -> int:
        return -1

    @property
    def nbytes(self) -> int:
        return sum(view.pages.nbytes + view.windows.nbytes for view in self.views)

    def reset(self) -> None:
        self.length, self.views, self.is_initialized = 0, [], False

    def reorder_cache(self, beam_idx: Tensor) -> None:
        for view in self.views:
            texts = beam_idx.to(view.pages.device)
            view.windows = view.windows[texts].contiguous()
            if len(view.pages):
                pages = view.pages.view(-1, self.shared.pages[self.window].ring, view.pages.shape[1])
                view.pages = pages[texts].flatten(0, 1).contiguous()
