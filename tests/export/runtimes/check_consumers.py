# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# Loads our files with the packages of those who load them, and says what they found: a line "NAME SHA-256" for each tensor, of its
# values as they lie in memory. Exit code 77 where the package is not there.
#
#   check_consumers.py onnx|gguf FILE
import hashlib
import sys

kind, path = sys.argv[1:]
try:
    if kind == "onnx":
        import onnx
    else:
        import gguf
except ImportError:
    sys.exit(77)


def onnx_tensors():
    model = onnx.load(path)
    onnx.checker.check_model(model)
    for tensor in model.graph.initializer:
        yield tensor.name, onnx.numpy_helper.to_array(tensor)


def gguf_tensors():
    for tensor in gguf.GGUFReader(path).tensors:
        yield tensor.name, tensor.data


for name, values in onnx_tensors() if kind == "onnx" else gguf_tensors():
    assert values.dtype == "float32", (name, values.dtype)
    print(name, hashlib.sha256(values.tobytes()).hexdigest())
