# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
"""What all layers of a cache share: lengths of the texts, the pass that is going on, where pages are."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from . import ops
from .artifact import Side

PAGE_TOKENS = 64
CROP_TOKENS = 20  # at least: what assisted decoding takes back
QUANTUM = 8  # tokens that are quantized at once
METADATA = {"f32": 0, "bf16": 1, "byte": 2}


@dataclass
class Step:
    """The new rows of one forward pass, the same for all layers."""

    number: int
    batch: int
    tokens: int  # of every text, padding included
    rows: Tensor | None  # indices of real rows among [batch * tokens]; None: all are
    row_begin: Tensor  # int32 [batch + 1]
    before: list[int]  # real tokens of each text before and after
    after: list[int]

    @property
    def max_rows(self) -> int:
        return max(after - before for before, after in zip(self.before, self.after))

    def pack(self, states: Tensor) -> Tensor:
        """[batch, heads, tokens, dim] -> [rows, heads, dim]."""
        rows = states.transpose(1, 2).reshape(-1, states.shape[1], states.shape[3])
        rows = rows if rows.dtype in (torch.bfloat16, torch.float32) else rows.float()
        return rows if self.rows is None else rows[self.rows.to(rows.device)]

    def unpack(self, rows: Tensor) -> Tensor:
        """[rows, heads, dim] -> [batch, tokens, heads, dim], zeros for padding."""
        if self.rows is not None:
            all_rows = rows.new_zeros(self.batch * self.tokens, *rows.shape[1:])
            all_rows[self.rows.to(rows.device)] = rows
            rows = all_rows
        return rows.view(self.batch, self.tokens, *rows.shape[1:])


class Pages:
    """Which page holds a token: a ring of `ring` pages for each text, long enough for what is seen."""

    def __init__(self, window: int, margin: int, sink: int, recent: int):
        self.window, self.margin, self.sink, self.recent = window, margin, sink, recent
        self.ring, self.table = 0, None

    def needed(self, lengths: list[int]) -> list[int]:
        return [-(-max(0, length - self.sink - self.recent) // PAGE_TOKENS) for length in lengths]

    def first(self, lengths: list[int]) -> list[int]:
        if self.window == 0:
            return [0] * len(lengths)
        seen = (length - self.window - self.margin - self.sink for length in lengths)
        return [max(0, tokens) // PAGE_TOKENS for tokens in seen]

    def reserve(self, step: Step, device: torch.device) -> tuple[int, Tensor, Tensor] | None:
        """Makes room; where pages move: the number of them, and indices [moved] before and after."""
        first, old, end = self.first(step.before), self.needed(step.before), self.needed(step.after)
        spans = max(b - a for a, b in zip(first, end))
        slack = 2 + spans // 16
        moved = None
        if not spans <= self.ring <= spans + 2 * slack:
            ring = spans + slack
            kept = [(r, j) for r in range(step.batch) for j in range(first[r], old[r])]
            places = [[r * size + j % size for r, j in kept] for size in (self.ring or 1, ring)]
            moved = (step.batch * ring, *(torch.tensor(p, dtype=torch.long, device=device) for p in places))
            self.ring = ring
        width = max(step.after) // PAGE_TOKENS + 1
        if moved is not None or self.table is None or self.table.shape[1] < width:
            text = torch.arange(step.batch, dtype=torch.int32)[:, None] * self.ring
            page = torch.arange(width + 64, dtype=torch.int32)[None] % max(1, self.ring)
            self.table = (text + page).contiguous().to(device)
        return moved


class Device:
    """What all layers of a device share: lengths, page tables, window numbers."""

    def __init__(self, batch: int, device: torch.device):
        self.device, self.step = device, 0
        self.state = torch.zeros(4, batch, dtype=torch.int32, device=device)
        self.window_of_text = torch.arange(batch, dtype=torch.int32, device=device)
        self.bad_rows = torch.zeros(1, dtype=torch.int32, device=device)
        self.pages: dict[int, Pages] = {}
        self.moved: dict[int, tuple | None] = {}


class Core:
    """Lengths of the texts, and the step that is going on. Layers hold it, and the cache does."""

    def __init__(self, windows: tuple[int, int], prefill: str, implementation):
        self.sink, self.recent = windows
        self.prefill, self.implementation = prefill, implementation
        self.reset()

    def reset(self) -> None:
        self.length, self.step = 0, None
        self.first: list[int] | None = None  # padding of each text, as the model's hook says
        self.real: list[int] = []  # tokens of each text
        self.devices: dict[torch.device, Device] = {}

    @property
    def recent_slots(self) -> int:
        return -(-(self.recent + QUANTUM + CROP_TOKENS) // 16) * 16

    def format(self, k: Side, v: Side, head: int) -> list[int]:
        sides = [value for side in (k, v) for value in (side.dim, side.bits[head], side.group)]
        window = [self.sink, self.recent_slots, self.recent, QUANTUM]
        return [*sides, METADATA[k.metadata], PAGE_TOKENS, *window]

    def see_mask(self, mask: Tensor | None) -> None:
        """Padding of the pass that begins, from its mask [batch, tokens]."""
        if mask is None or mask.dim() != 2:
            return
        tokens = mask.shape[1] - self.length
        if self.first is not None and tokens == 1:
            return  # a new token is never padding
        mask = mask.to(torch.bool)
        first = mask.int().argmax(-1)
        if self.length == 0:
            self.first = first.tolist()
        elif self.first is None:
            self.first = [0] * mask.shape[0]
        if self.length > 0 and first.tolist() != self.first:
            given = f"the attention mask begins at tokens {first.tolist()}"
            raise ValueError(f"{given}, but the cache was filled with texts that begin at {self.first}")
        if not (mask == (torch.arange(mask.shape[1], device=mask.device) >= first[:, None])).all():
            raise ValueError("the attention mask has padding behind a text's first token; pad on the left")

    def begin(self, states: Tensor, length: int) -> Step:
        """The step that new rows [batch, heads, tokens, dim] of a layer with `length` tokens belong to."""
        batch, _, tokens, _ = states.shape
        if self.step is not None and length < self.length:
            if length + tokens == self.length:
                return self.step
            raise RuntimeError(f"a layer has {length} tokens where the cache has {self.length}")
        first = self.first or [0] * batch
        if len(first) != batch:
            raise ValueError(f"rows of {batch} texts for a cache of {len(first)}")
        self.first, self.length = first, self.length + tokens
        before = self.real or [0] * batch
        self.real = [max(0, self.length - padding) for padding in first]
        counts = [after - held for held, after in zip(before, self.real)]
        begins = torch.tensor(np.concatenate([[0], np.cumsum(counts)]), dtype=torch.int32)
        rows = None
        if min(counts) < tokens:
            real = torch.arange(tokens)[None] >= tokens - torch.tensor(counts)[:, None]
            rows = real.flatten().nonzero().squeeze(1)
        number = self.step.number + 1 if self.step else 1
        self.step = Step(number, batch, tokens, rows, begins, before, self.real)
        return self.step

    def on(self, device: torch.device, format: list[int], window: int) -> Device:
        """The device's part of this step, advanced once, with pages for a layer's window."""
        step = self.step
        if device not in self.devices:
            self.devices[device] = Device(step.batch, device)
        shared = self.devices[device]
        if shared.step != step.number:
            shared.step, shared.moved = step.number, {}
            step.row_begin = step.row_begin.to(device)
            new_rows = (step.row_begin[1:] - step.row_begin[:-1]).contiguous()
            ops.load().advance(shared.state, new_rows, format)
        if window not in shared.moved:
            pages = shared.pages.setdefault(window, Pages(window, self.recent_slots, self.sink, self.recent))
            shared.moved[window] = pages.reserve(step, device)
        return shared
