# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
"""Random runs of every ggml type that is read, and what PyPI's gguf dequantises them to: make.py OUT.safetensors COUNT.
blocks.safetensors is of 16. Exit code 77: a package is missing."""
import json
import struct
import sys

try:
    import gguf
    import numpy as np
except ImportError:
    sys.exit(77)

out, count = sys.argv[1], int(sys.argv[2])
np.seterr(all="ignore")
rng = np.random.default_rng(55)
header, blobs, at = {}, [], 0
for name in ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K",
             "IQ4_NL", "IQ4_XS", "MXFP4"):
    qtype = gguf.GGMLQuantizationType[name]
    raw = rng.integers(0, 256, (count, gguf.GGML_QUANT_SIZES[qtype][1]), dtype=np.uint8)
    values = np.ascontiguousarray(gguf.quants.dequantize(raw, qtype)).reshape(count, -1)
    for key, array, dtype in ((name + ".bytes", raw, "U8"), (name + ".values", values, "F32")):
        blob = array.tobytes()
        header[key] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [at, at + len(blob)]}
        blobs.append(blob)
        at += len(blob)
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
with open(out, "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))
