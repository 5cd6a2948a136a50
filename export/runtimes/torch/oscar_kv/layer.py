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
        self.format = core.format(layer.k, layer.v, 0 if heads is None else heads[0], device)
        self.k, self.v = (SideTensors(side, heads, device) for side in (layer.k, layer.v))
        self.pages, self.windows = ops.load().make_cache(self.format, self.count, 0, batch, device)
        self.tails: tuple[Tensor, Tensor] | None = None

    def move(self, number: int, before: Tensor, after: Tensor) -> None:
        pages = self.pages.new_zeros(number, self.pages.shape[1])
        device = self.pages.device
        pages[after.to(device)] = self.pages[before.to(device)]
        self.pages = pages

    def stored(self, shared: Device, table: Tensor) -> tuple:
        return self.pages, self.windows, shared.state, table, shared.window_of_text, self.format, self.heads

    @property
    def nbytes(self) -> int:
        return self.pages.nbytes + self.windows.nbytes


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
            raise ArtifactError(
                f"layer {stored.layer_id}: {found[0]} KV heads of {found[1]} and {found[2]} values, but "
                f"the artifact's has {expected[0]} of {expected[1]} and {expected[2]}: it belongs to "
                "another model"
            )
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
        moved = shared.moved[self.window]
        reads_here = self.core.implementation() == "oscar"
        before = None
        if not reads_here and step.tokens > 1 and self.length > 0:
            before = self._read(shared.state[[2, 3, 2, 3]].contiguous(), max(step.before))
        k, v = step.pack(key_states).contiguous(), step.pack(value_states).contiguous()
        rows = step.max_rows
        tails = []
        for view in self.views:
            if moved is not None:
                view.move(*moved)
            begin = (view.pages, view.windows, shared.bad_rows, *view.stored(shared, self.table)[2:])
            tails.append(
                ops.load().write(
                    *begin, k, v, step.row_begin, rows, 0 if step.tokens == 1 else rows,
                    *view.k.arguments(), *view.v.arguments(),
                )
            )
        self.length += step.tokens
        reading = Reading(self, step, tails)
        if not reads_here:
            return self._rows(reading, before, key_states.dtype)
        batch = key_states.shape[0]
        keys, values = (
            states.new_empty(1).expand(batch, states.shape[1], self.length, states.shape[3])
            for states in (key_states, value_states)
        )
        keys.oscar = reading
        return keys, values

    def _read(self, state: Tensor, length: int) -> list[Tensor]:
        """Rows [batch, heads, length, dim] in the cache's space as the last token of each text reads them."""
        sums = None
        for view in self.views:
            stored = list(view.stored(self.shared, self.table))
            stored[2] = state
            rows = ops.load().read(*stored, self.stored.num_kv_heads, length)
            sums = list(rows) if sums is None else [a + b for a, b in zip(sums, rows)]
        return sums

    def back(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Rows [..., heads, tokens, dim] of the cache's space in the model's."""
        k = k @ self.undo[0].mT
        if self.mean is not None:
            k = k + self.mean[:, None]
        return k, v @ self.undo_bf16[1].float().mT

    def chunk(self, reading: Reading, tokens: int) -> list[Tensor]:
        """The last `tokens` exact rows of a pass, [batch, heads, tokens, dim], in the cache's space."""
        batch, heads = reading.step.batch, self.stored.num_kv_heads
        rows = []
        for which, side in enumerate((self.stored.k, self.stored.v)):
            all_heads = torch.zeros(batch, heads, tokens, side.dim, device=self.device)
            for view, tails in zip(self.views, reading.tails):
                tail = tails[which].float()
                slots = self.core.recent_slots(self.device)
                for text in range(batch):
                    end = slots + reading.step.after[text] - reading.step.before[text]
                    count = min(tokens, end, reading.step.after[text])
                    heads_of = slice(None) if view.heads is None else view.heads
                    all_heads[text, heads_of, tokens - count :] = tail[text, :, end - count : end]
            rows.append(all_heads)
        return rows

    def _rows(self, reading: Reading, before: list[Tensor] | None, dtype) -> tuple[Tensor, Tensor]:
        """Keys and values of the model's space for another attention function: a token reads what the
        cache holds, a longer pass reads its own rows exactly."""
        step = reading.step
        if step.tokens == 1:
            parts, lengths = self._read(self.shared.state, max(step.after)), step.after
        else:
            parts, lengths = before, step.before
        held = self.length - (0 if step.tokens == 1 else step.tokens)
        rows = []
        for which, side in enumerate((self.stored.k, self.stored.v)):
            shape = (step.batch, self.stored.num_kv_heads, held, side.dim)
            aligned = torch.zeros(shape, device=self.device)
            if parts is not None:
                for text, length in enumerate(lengths):
                    aligned[text, :, held - length :] = parts[which][text, :, :length]
            rows.append(aligned)
        if step.tokens > 1:
            rows = [torch.cat(pair, 2) for pair in zip(rows, self.chunk(reading, step.tokens))]
        k, v = self.back(*rows)
        return k.to(dtype), v.to(dtype)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.length + query_length, 0

    def get_seq_length(self) -> int:
        return self.length

    def get_max_length(self) -> int:
        return -1

    @property
    def nbytes(self) -> int:
        return sum(view.nbytes for view in self.views)

    def reset(self) -> None:
        self.length, self.views, self.is_initialized = 0, [], False

    def select(self, texts: Tensor) -> None:
        """Keeps the texts of these indices, in this order."""
        for view in self.views:
            texts = texts.to(view.pages.device)
            view.windows = view.windows[texts].contiguous()
            if len(view.pages):
                pages = view.pages.view(-1, self.shared.pages[self.window].ring, view.pages.shape[1])
                view.pages = pages[texts].flatten(0, 1).contiguous()
