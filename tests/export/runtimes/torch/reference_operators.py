# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
"""The operators torch.ops.oscar.* in plain PyTorch on what oracle.py says of rows: pages hold rows as they are read."""

from types import SimpleNamespace

import oracle
import torch

SCALES = ("range", "unbiased", "unbiased_rounded")
METADATA = ("f32", "bf16", "byte")
library = torch.library.Library("oscar", "DEF")


def op(schema):
    def define(function):
        library.define(f"{function.__name__}{schema}")
        library.impl(function.__name__, function, "CompositeExplicitAutograd")
        return function

    return define


def parts(format):
    names = "k_dim k_bits k_group v_dim v_bits v_group metadata page sink slots recent step"
    return SimpleNamespace(**dict(zip(names.split(), format)))


def quantized(f, length):
    return max(0, length - f.sink - f.recent) // f.step * f.step


def slot(f, position):
    return position if position < f.sink else f.sink + (position - f.sink) % f.slots


@op("(int[] format, int num_kv_heads, int num_pages, int num_windows, Device device) -> (Tensor, Tensor)")
def make_cache(format, num_kv_heads, num_pages, num_windows, device):
    f = parts(format)
    dims = f.k_dim + f.v_dim
    pages = torch.zeros(num_pages, num_kv_heads * f.page * dims * 4, dtype=torch.uint8)
    return pages, torch.zeros(num_windows, num_kv_heads, (f.sink + f.slots) * dims, dtype=torch.bfloat16)


@op("(Tensor(a!) state, Tensor new_rows, int[] format) -> ()")
def advance(state, new_rows, format):
    f = parts(format)
    state[2:] = state[:2].clone()
    state[0] += new_rows
    state[1] = torch.tensor([quantized(f, n) for n in state[0].tolist()])


def split(f, windows, heads):
    rows = windows.view(windows.shape[0], heads, f.sink + f.slots, f.k_dim + f.v_dim)
    return rows


def page_rows(f, pages, heads):
    return pages.view(torch.float32).view(pages.shape[0], heads, f.page, f.k_dim + f.v_dim)


@op("(Tensor(a!) pages, Tensor(b!) windows, Tensor(c!) bad_rows, Tensor state, Tensor page_table, Tensor window_of_request, int[] format, Tensor? heads, Tensor k, Tensor v, Tensor row_begin, int max_rows, int tail_rows, Tensor? k_rotation, Tensor? k_mean, float[] k_clip, int k_scales, Tensor? k_feedback, Tensor? k_feedback_units, Tensor? v_rotation, Tensor? v_mean, float[] v_clip, int v_scales, Tensor? v_feedback, Tensor? v_feedback_units) -> (Tensor, Tensor)")
def write(pages, windows, bad_rows, state, page_table, window_of_request, format, heads, k, v, row_begin, max_rows,
          tail_rows, k_rotation, k_mean, k_clip, k_scales, k_feedback, k_feedback_units,
          v_rotation, v_mean, v_clip, v_scales, v_feedback, v_feedback_units):
    f = parts(format)
    count = windows.shape[1]
    held, stored = split(f, windows, count), page_rows(f, pages, count)

    def factors(packed, units):
        if packed is None:
            return None
        dim = packed.shape[1]
        full = torch.zeros(count, dim, dim)
        for j in range(dim):
            for i in range(j):
                own = i // 16 == j // 16
                full[:, i, j] = packed[:, j, dim + i % 16 if own else i].float() * units
        return full.numpy()

    sides = []
    for dim, bits, group, rotation, mean, clip, scales, packed, units in (
        (f.k_dim, f.k_bits, f.k_group, k_rotation, k_mean, k_clip, k_scales, k_feedback, k_feedback_units),
        (f.v_dim, f.v_bits, f.v_group, v_rotation, v_mean, v_clip, v_scales, v_feedback, v_feedback_units),
    ):
        clip = list(clip) or [0.0]
        sides.append(SimpleNamespace(
            dim=dim, bits=[bits] * count, clip=clip if len(clip) == count else clip * count, group=group,
            rotation=rotation.float().numpy(), undo=None, mean=None if mean is None else mean.numpy(),
            scales=SCALES[scales], metadata=METADATA[f.metadata], feedback=factors(packed, units)))
    tails = [torch.zeros(len(state[0]), count, f.slots + tail_rows if tail_rows else 0, s.dim, dtype=torch.bfloat16)
             for s in sides]
    for r, (length, done, before, done_before) in enumerate(state.T.tolist()):
        begin, end = row_begin[r].item(), row_begin[r + 1].item()
        assert end - begin == length - before, (begin, end, length, before)
        w = window_of_request[r].item()
        new = []
        for side, rows in zip(sides, (k, v)):
            rows = rows[begin:end] if heads is None else rows[begin:end, heads]
            new.append(oracle.turned(side, rows.transpose(0, 1)[None])[0] if end > begin else rows.transpose(0, 1).float())
        new = torch.cat(new, -1)

        def exact(position):
            if position >= before:
                return new[:, position - before]
            return held[w, :, slot(f, position)].float()

        if tail_rows:
            for p in range(max(0, before - f.slots), length):
                row = exact(p)
                at = p - before + f.slots
                tails[0][r, :, at], tails[1][r, :, at] = row[:, : f.k_dim].bfloat16(), row[:, f.k_dim :].bfloat16()
        flushed = range(f.sink + done_before, f.sink + done)
        if len(flushed):
            rows = torch.stack([exact(p) for p in flushed], 1)[None]
            read = torch.cat([oracle.quantized(sides[0], rows[..., : f.k_dim]),
                              oracle.quantized(sides[1], rows[..., f.k_dim :])], -1)[0]
            for i, p in enumerate(flushed):
                page = page_table[r, (p - f.sink) // f.page].item()
                stored[page, :, (p - f.sink) % f.page] = read[:, i]
        for p in range(before, length):
            if p < f.sink or p >= length - f.slots:
                held[w, :, slot(f, p)] = new[:, p - before].bfloat16()
    return tails[0], tails[1]


def rows_of(f, r, count, pages, windows, state, page_table, window_of_request, length, done, tails=None):
    """What a query with `done` quantized tokens reads: [heads, length, dims]."""
    held, stored = split(f, windows, count), page_rows(f, pages, count)
    before = state[2, r].item()
    rows = []
    for p in range(length):
        if f.sink <= p < f.sink + done:
            rows.append(stored[page_table[r, (p - f.sink) // f.page].item(), :, (p - f.sink) % f.page])
        elif tails is not None and p >= before - f.slots and p >= f.sink:
            rows.append(torch.cat([t[r, :, p - before + f.slots] for t in tails], -1).float())
        else:
            rows.append(held[window_of_request[r].item(), :, slot(f, p)].float())
    return torch.stack(rows, 1)


@op("(Tensor(a!) out, Tensor q, Tensor pages, Tensor windows, Tensor state, Tensor page_table, Tensor window_of_request, int[] format, Tensor? heads, Tensor row_begin, int max_rows, int max_length, int gqa_ratio, float scale, float softcap, int window, Tensor? sinks, bool exact_chunk, Tensor? tail_k, Tensor? tail_v) -> ()")
def attend(out, q, pages, windows, state, page_table, window_of_request, format, heads, row_begin, max_rows,
           max_length, gqa_ratio, scale, softcap, window, sinks, exact_chunk, tail_k, tail_v):
    f = parts(format)
    count = windows.shape[1]
    assert max_length >= state[0].max()
    own = range(count) if heads is None else heads.tolist()
    tails = None if tail_k is None or not tail_k.shape[2] else (tail_k, tail_v)
    for r, (length, _, before, done_before) in enumerate(state.T.tolist()):
        for j in range(length - before):
            position = before + j
            done = done_before if exact_chunk else quantized(f, position + 1)
            rows = rows_of(f, r, count, pages, windows, state, page_table, window_of_request, position + 1, done, tails)
            if window:
                rows = rows[:, max(0, position + 1 - window) :]
            for i, h in enumerate(own):
                at = slice(h * gqa_ratio, (h + 1) * gqa_ratio)
                logits = q[row_begin[r] + j, at].float() @ rows[i, :, : f.k_dim].T * scale
                if softcap:
                    logits = softcap * torch.tanh(logits / softcap)
                if sinks is not None:
                    logits = torch.cat([logits, sinks[at, None]], -1)
                weights = logits.softmax(-1)[:, : rows.shape[1]]
                out[row_begin[r] + j, at] = (weights @ rows[i, :, f.k_dim :]).to(out.dtype)


@op("(Tensor pages, Tensor windows, Tensor state, Tensor page_table, Tensor window_of_request, int[] format, Tensor? heads, int num_kv_heads, int max_length) -> (Tensor, Tensor)")
def read(pages, windows, state, page_table, window_of_request, format, heads, num_kv_heads, max_length):
    f = parts(format)
    count = windows.shape[1]
    own = slice(None) if heads is None else heads
    read_rows = torch.zeros(state.shape[1], num_kv_heads, max_length, f.k_dim + f.v_dim)
    for r, (length, done) in enumerate(state[:2].T.tolist()):
        if length:
            read_rows[r, own, :length] = rows_of(f, r, count, pages, windows, state, page_table, window_of_request, length, done)
    return read_rows[..., : f.k_dim].contiguous(), read_rows[..., f.k_dim :].contiguous()


@op("(Tensor x, Tensor rotation) -> Tensor")
def rotate_queries(x, rotation):
    m = rotation.float().repeat_interleave(x.shape[1] // rotation.shape[0], 0)
    return (oracle.bf16(x.float()).transpose(0, 1) @ m).transpose(0, 1).bfloat16()


@op("(Tensor x, Tensor rotation) -> Tensor")
def rotate_outputs(x, rotation):
    m = rotation.float().repeat_interleave(x.shape[1] // rotation.shape[0], 0)
    return (x.float().transpose(0, 1) @ m.mT).transpose(0, 1).to(x.dtype).contiguous()
