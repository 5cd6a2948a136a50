# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
"""The cache of a model in transformers: quantized pages in the middle of a text, exact rows at its ends.

Positions are those of a text's first real token on: padding on the left is never stored. Trap: a layer's
`update` does not see the attention mask, so a hook of the model tells the cache which tokens are padding.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from transformers.cache_utils import (
    Cache,
    CacheLayerMixin,
    DynamicCache,
    DynamicLayer,
    DynamicSlidingWindowLayer,
    LinearAttentionCacheLayerMixin,
)

from . import ops
from .artifact import Artifact, ArtifactError, Layer, Side

PAGE_TOKENS = 64
CROP_TOKENS = 20  # at least: what assisted decoding takes back
FEEDBACK_BLOCK = 16  # linalg/feedback_codec.h
METADATA = {"f32": 0, "bf16": 1, "byte": 2}
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
            units[head] = 2.0 ** np.ceil(np.log2(largest / 127))
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
            moved = (step.batch * ring, *(torch.tensor(p, dtype=torch.long) for p in places))
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
        self.holes: Tensor | None = None  # mask [batch, tokens] of texts with padding inside
        self.devices: dict[torch.device, Device] = {}

    def quantum(self, device: torch.device) -> int:
        """Tokens that are quantized at once."""
        return 8 if device.type == "cuda" else 1

    def recent_slots(self, device: torch.device) -> int:
        return -(-(self.recent + self.quantum(device) + CROP_TOKENS) // 16) * 16

    def format(self, k: Side, v: Side, head: int, device: torch.device) -> list[int]:
        sides = [value for side in (k, v) for value in (side.dim, side.bits[head], side.group)]
        window = [self.sink, self.recent_slots(device), self.recent, self.quantum(device)]
        return [*sides, METADATA[k.metadata], PAGE_TOKENS, *window]

    def see_mask(self, mask: Tensor | None) -> None:
        """Padding of the pass that begins, from its mask [batch, tokens]."""
        if mask is None or mask.dim() != 2:
            return
        tokens = mask.shape[1] - self.length
        if self.first is not None and tokens == 1 and self.holes is None:
            return  # a new token is never padding
        mask = mask.to(torch.bool)
        first = mask.int().argmax(-1)
        if self.length == 0:
            self.first = first.tolist()
        elif self.first is None:
            self.first = [0] * mask.shape[0]
        if self.length > 0 and first.tolist() != self.first:
            raise ValueError(
                f"the attention mask begins at tokens {first.tolist()}, but the cache was filled "
                f"with texts that begin at {self.first}"
            )
        real = torch.arange(mask.shape[1], device=mask.device) >= first[:, None]
        self.holes = None if bool((mask == real).all()) else mask

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
            margin = self.recent_slots(device)
            pages = shared.pages.setdefault(window, Pages(window, margin, self.sink, self.recent))
            shared.moved[window] = pages.reserve(step, device)
        return shared


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
                    part = tail[text, :, max(0, end - tokens) : end]
                    heads_of = slice(None) if view.heads is None else view.heads
                    all_heads[text, heads_of, tokens - part.shape[1] :] = part
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


class OscarCache(Cache):
    """A cache in 2, 3 and 4 bits, as an artifact says: model.generate(..., past_key_values=cache)."""

    def __init__(self, layers: list, core: Core):
        super().__init__(layers=layers)
        self.core = core

    @classmethod
    def from_artifact(cls, directory, model, prefill: str = "quantized", feedback: bool | None = None):
        """An empty cache for `model`, whose attn_implementation is "oscar" or, slower, another.

        prefill: "quantized", where every token reads what it would read if it came alone, or "exact",
        where tokens of a pass read each other exactly, as servers do. feedback: whether keys are
        written with error feedback; None: where the artifact knows it.
        """
        if prefill not in ("quantized", "exact"):
            raise ValueError(f'prefill is {prefill!r}, expected "quantized" or "exact"')
        ops.load()
        artifact = directory if isinstance(directory, Artifact) else Artifact(directory)
        feedback = artifact.has_feedback if feedback is None else feedback
        config = model.config.get_text_config(decoder=True)
        core = Core(artifact.windows, prefill, lambda: config._attn_implementation)
        layers, known = DynamicCache(config=model.config).layers, set(artifact.layer_ids)
        for index, layer in enumerate(layers):
            if index in known:
                layers[index] = replaced(layer, artifact.layer(index, feedback), core, config, index)
                known.discard(index)
        if known:
            raise ArtifactError(
                f"{artifact.directory}: has layers {sorted(known)}, which this model's cache of "
                f"{len(layers)} layers has not: it belongs to another model"
            )
        watch_masks(model)
        return cls(layers, core)

    @property
    def nbytes(self) -> int:
        """Bytes that the cache has allocated."""
        return sum(cache_bytes(layer) for layer in self.layers)

    @property
    def bad_rows(self) -> int:
        """Rows that could not be stored, which read back as NaN."""
        return sum(int(shared.bad_rows) for shared in self.core.devices.values())

    def _oscar_layers(self) -> list[OscarLayer]:
        return [layer for layer in self.layers if isinstance(layer, OscarLayer)]

    def reset(self) -> None:
        super().reset()
        self.core.reset()

    def crop(self, tokens_to_remove: int) -> None:
        core, count = self.core, abs(tokens_to_remove)
        if tokens_to_remove > 0:
            count = max(0, core.length - tokens_to_remove)
        if count == 0 or core.length == 0:
            return
        for device in core.devices:
            slots, quantum = core.recent_slots(device), core.quantum(device)
            depth = slots - core.recent - quantum
            if count > depth and max(core.real) > core.sink + slots:
                raise ValueError(
                    f"crop by {count} tokens: at most {depth} can be taken back, since older rows "
                    "are no longer held exactly; keep a copy of the cache, or fill it again"
                )
        core.length -= count
        core.real = [max(0, core.length - padding) for padding in core.first]
        for layer in self.layers:
            if isinstance(layer, OscarLayer):
                layer.length -= count
            else:
                layer.crop(-count)
        for shared in core.devices.values():
            shared.state[0] = torch.tensor(core.real, dtype=torch.int32)
            format = next(l for l in self._oscar_layers() if l.shared is shared).views[0].format
            ops.load().advance(shared.state, torch.zeros_like(shared.state[0]), format)

    def _select(self, texts: Tensor, by_layer) -> None:
        if self.core.length == 0:
            return
        for layer in self.layers:
            if isinstance(layer, OscarLayer):
                layer.select(texts)
            else:
                by_layer(layer)
        core, kept = self.core, texts.tolist()
        core.first, core.real = [[values[i] for i in kept] for values in (core.first, core.real)]
        core.holes = None if core.holes is None else core.holes[texts.to(core.holes.device)]
        for shared in core.devices.values():
            shared.state = shared.state[:, texts.to(shared.device)].contiguous()
            shared.window_of_text = torch.arange(len(kept), dtype=torch.int32, device=shared.device)
            for pages in shared.pages.values():
                pages.table = None

    def reorder_cache(self, beam_idx: Tensor) -> None:
        self._select(beam_idx, lambda layer: layer.reorder_cache(beam_idx))

    def batch_select_indices(self, indices: Tensor) -> None:
        self._select(indices, lambda layer: layer.batch_select_indices(indices))

    def batch_repeat_interleave(self, repeats: int) -> None:
        texts = torch.arange(len(self.core.real)).repeat_interleave(repeats)
        self._select(texts, lambda layer: layer.batch_repeat_interleave(repeats))


def replaced(layer, stored: Layer, core: Core, config, index: int) -> OscarLayer:
    """Our layer in the place of a dynamic one; ArtifactError where it is of another kind."""
    kind = (getattr(config, "layer_types", None) or {index: ""})[index]
    if kind == "chunked_attention":
        raise ArtifactError(f"layer {index} has chunked attention, which oscar-kv does not store")
    if type(layer) is DynamicSlidingWindowLayer:
        return OscarLayer(stored, core, layer.sliding_window)
    if type(layer) is DynamicLayer:
        return OscarLayer(stored, core)
    raise ArtifactError(
        f"layer {index} ({kind or 'attention'}) is kept in a {type(layer).__name__}, which oscar-kv "
        "does not replace: it stores full and sliding attention, not indexed or sparse attention"
    )


def cache_bytes(layer) -> int:
    """Bytes of a layer of any cache."""
    if isinstance(layer, OscarLayer):
        return layer.nbytes
    states = [getattr(layer, "keys", None), getattr(layer, "values", None)]
    if isinstance(layer, LinearAttentionCacheLayerMixin):
        states += [*layer.conv_states.values(), *layer.recurrent_states.values()]
    return sum(state.nbytes for state in states if state is not None)


def watch_masks(model) -> None:
    """Lets caches of ours see the attention mask before the layers' `update`, which is not given it."""

    def see(module, args, kwargs):
        cache = kwargs.get("past_key_values")
        if isinstance(cache, OscarCache):
            cache.core.see_mask(kwargs.get("attention_mask"))

    for module in model.modules():
        if hasattr(module, "set_attn_implementation") and not hasattr(module, "_oscar_hook"):
            module._oscar_hook = module.register_forward_pre_hook(see, with_kwargs=True)
