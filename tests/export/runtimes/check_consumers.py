# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# Loads our files with their consumers' packages. Prints a line "NAME SHA-256" for each tensor, with the digest of its values as
# they are in memory. Exits with 77 if the package is not installed.
#
#   check_consumers.py onnx|gguf|safetensors|torch FILE
import hashlib
import sys

kind, path = sys.argv[1:]
try:
    if kind == "onnx":
        import onnx
    elif kind == "gguf":
        import gguf
    elif kind == "safetensors":
        from safetensors.numpy import load_file
    else:
        import torch
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


def safetensors_tensors():
    yield from load_file(path).items()


def torch_tensors():
    for layer_id, layer in torch.load(path, weights_only=True)["layers"].items():
        assert type(layer_id) is int, layer_id
        for name, value in layer.items():
            if isinstance(value, torch.Tensor):
                yield f"{layer_id}.{name}", value.contiguous().numpy()


tensors = {"onnx": onnx_tensors, "gguf": gguf_tensors, "safetensors": safetensors_tensors, "torch": torch_tensors}
for name, values in tensors[kind]():
    assert values.dtype == ("float64" if name.endswith(("M_q", "k_sum", "M_k", "S_v")) else "float32"), (name, values.dtype)
    print(name, hashlib.sha256(values.tobytes()).hexdigest())
