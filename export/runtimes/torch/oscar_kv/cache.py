# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
"""The cache of a model in transformers.

Positions are those of a text's first real token on: padding on the left is never stored. Trap: a layer's
`update` does not see the attention mask, so a hook of the model tells the cache which tokens are padding.
"""

import inspect

import torch
from torch import Tensor
from transformers.cache_utils import Cache, DynamicCache, DynamicLayer, DynamicSlidingWindowLayer

from . import ops
from .artifact import Artifact, ArtifactError, Layer
from .layer import OscarLayer
from .steps import QUANTUM, Core


class OscarCache(Cache):
    """A cache in 2, 3 and 4 bits, as an artifact says: model.generate(..., past_key_values=cache)."""

    def __init__(self, layers: list, core: Core):
        super().__init__(layers=layers)
        self.core = core

    @classmethod
    def from_artifact(cls, directory, model, prefill: str = "quantized"):
        """An empty cache for `model`, whose attn_implementation is "oscar" or, slower, another.

        prefill: "quantized", where every token reads what it would read if it came alone, or "exact",
        where tokens of a pass read each other exactly, as servers do.
        """
        if prefill not in ("quantized", "exact"):
            raise ValueError(f'prefill is {prefill!r}, expected "quantized" or "exact"')
        ops.load()
        artifact = directory if isinstance(directory, Artifact) else Artifact(directory)
        config = model.config.get_text_config(decoder=True)
        core = Core(artifact.windows, prefill, lambda: config._attn_implementation)
        layers, known = DynamicCache(config=model.config).layers, set(artifact.layer_ids)
        for index, layer in enumerate(layers):
            if index in known:
                layers[index] = replaced(layer, artifact.layer(index), core, config, index)
                known.discard(index)
        if known:
            lacks = f"this model's cache of {len(layers)} layers lacks"
            raise ArtifactError(f"{artifact.directory}: has layers {sorted(known)}, which {lacks}: it is another model's")
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

    def reset(self) -> None:
        super().reset()
        self.core.reset()

    def crop(self, tokens_to_remove: int) -> None:
        core, count = self.core, abs(tokens_to_remove)
        if tokens_to_remove > 0:
            count = max(0, core.length - tokens_to_remove)
        if count == 0 or core.length == 0:
            return
        depth = core.recent_slots - core.recent - QUANTUM
        if count > depth and max(core.real) > core.sink + core.recent_slots:
            raise ValueError(f"crop by {count} tokens: at most {depth}, since older rows are no longer held exactly")
        core.length -= count
        core.real = [max(0, core.length - padding) for padding in core.first]
        for layer in self.layers:
            if isinstance(layer, OscarLayer):
                layer.length -= count
            else:
                layer.crop(-count)
        for shared in core.devices.values():
            shared.state[0] = torch.tensor(core.real, dtype=torch.int32)
            format = next(l for l in self.layers if getattr(l, "shared", None) is shared).views[0].format
            ops.load().advance(shared.state, torch.zeros_like(shared.state[0]), format)

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Keeps the texts of these indices, in this order; there may be more or fewer than before."""
        if self.core.length == 0:
            return
        for layer in self.layers:
            layer.reorder_cache(beam_idx)
        core, kept = self.core, beam_idx.tolist()
        core.first, core.real = [[values[i] for i in kept] for values in (core.first, core.real)]
        for shared in core.devices.values():
            shared.state = shared.state[:, beam_idx.to(shared.device)].contiguous()
            shared.window_of_text = torch.arange(len(kept), dtype=torch.int32, device=shared.device)
            for pages in shared.pages.values():
                pages.table = None

    def batch_repeat_interleave(self, repeats: int) -> None:
        self.reorder_cache(torch.arange(len(self.core.real)).repeat_interleave(repeats))

    def batch_select_indices(self, indices: Tensor) -> None:
        self.reorder_cache(indices)


def replaced(layer, stored: Layer, core: Core, config, index: int) -> OscarLayer:
    """Our layer in the place of a dynamic one; ArtifactError where it is of another kind."""
    kind = (getattr(config, "layer_types", None) or {index: ""})[index]
    if kind == "chunked_attention":
        raise ArtifactError(f"layer {index} has chunked attention, which oscar-kv does not store")
    if type(layer) is DynamicSlidingWindowLayer:
        return OscarLayer(stored, core, layer.sliding_window)
    if type(layer) is DynamicLayer:
        return OscarLayer(stored, core)
    found = f"layer {index} ({kind or 'attention'}) is kept in a {type(layer).__name__}"
    raise ArtifactError(f"{found}: oscar-kv stores full and sliding attention, not indexed or sparse attention")


def cache_bytes(layer) -> int:
    """Bytes of a layer of any cache."""
    if isinstance(layer, OscarLayer):
        return layer.nbytes
    states = [getattr(layer, "keys", None), getattr(layer, "values", None)]
    for of_linear_attention in ("conv_states", "recurrent_states"):
        states += getattr(layer, of_linear_attention, {}).values()
    return sum(state.nbytes for state in states if state is not None)


def argument(model) -> str:
    """What the model calls its cache: `past_key_values`, from transformers 5.24 on `cache`."""
    return "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"


def watch_masks(model) -> None:
    """Lets caches of ours see the attention mask before the layers' `update`, which is not given it."""

    def see(module, args, kwargs):
        for cache in (*args, *kwargs.values()):
            if isinstance(cache, OscarCache):
                cache.core.see_mask(kwargs.get("attention_mask"))

    for module in model.modules():
        if hasattr(module, "set_attn_implementation") and not hasattr(module, "_oscar_hook"):
            module._oscar_hook = module.register_forward_pre_hook(see, with_kwargs=True)
