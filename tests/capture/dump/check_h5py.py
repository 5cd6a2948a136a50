# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# Reads the dump of sample_dump.h with h5py, as users do. Usage: check_h5py.py DUMP F32|BF16|F16. Exits 77 without h5py.
import sys

try:
    import h5py
    import numpy
except ImportError:
    sys.exit(77)

path, dtype = sys.argv[1:]


def expected(index, tensor, shape):
    bits = (0x3C00 + 37 * numpy.arange(numpy.prod(shape)) + 11 * tensor + 5 * index).astype(numpy.uint16)
    if dtype == "F32":
        return (bits.astype(numpy.uint32) << 16).view(numpy.float32).reshape(shape)
    return (bits.view(numpy.float16) if dtype == "F16" else bits).reshape(shape)


with h5py.File(path) as dump:
    assert dump.attrs["format"] == b"oscar-dump" and dump.attrs["format_version"] == 3 and dump.attrs["num_layers"] == 2, dict(dump.attrs)
    assert dump.attrs["model"] == b"org/model@abc"
    assert dump["input_ids"][:].tolist() == [5, 6, 7, 8, 9, 1, 2, 3]
    assert dump["sequence_offsets"][:].tolist() == [0, 4, 5, 8]
    assert sorted(dump["layer"]) == ["10", "3"]
    for index, layer in enumerate((dump["layer/3"], dump["layer/10"])):
        assert layer.attrs["kind"] == b"gqa" and layer.attrs["scale"] == 0.25
        assert layer.attrs["window"] == [0, 2][index]
        shapes = {"q": (8, 4, 3), "k": (8, 2, 3), "v": (8, 2, 2), "attn_out": (8, 4, 2)}
        for tensor, (name, shape) in enumerate(shapes.items()):
            values = layer[name]
            assert values.dtype == {"F32": "<f4", "F16": "<f2", "BF16": "<u2"}[dtype], values.dtype
            assert values.is_virtual or values.fletcher32 and values.chunks
            assert (values.attrs.get("dtype") == b"bf16") == (dtype == "BF16")
            assert numpy.array_equal(values[:], expected(index, tensor, shape)), name
        assert layer["score_rows"][:].tolist() == [2, 3, 4, 6, 7]
        scores = layer["scores"]
        assert scores.shape == (5, 4, 4) and (scores[:3] == 0.25).all()
        assert (scores[3:, :, :3] == 0.25).all() and (scores[3:, :, 3] == (0 if scores.is_virtual else 0.25)).all()
        assert layer["lse"].shape == (8, 4) and (layer["lse"][:] == 0.5).all()
