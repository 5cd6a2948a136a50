# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# Loads our .pt files with torch.load(weights_only=True), as their consumers do, and checks the fields on which these rely.
# Prints one line of JSON: for each file, the SHA-256 of each rotation by layer id. A failed check is an assertion.
import hashlib
import json
import pathlib
import sys

try:
    import torch
except ImportError:
    sys.exit(77)


def check_layer(layer_id, entry, version):
    assert type(entry) is dict, type(entry)
    if version == 3:
        return check_transform(layer_id, entry)
    assert type(layer_id) is int and type(entry["layer_id"]) is int and entry["layer_id"] == layer_id
    expected = ["layer_id", "rotation", "eigenvalues"] if version == 1 else ["layer_id", "rotation"]
    assert list(entry) == expected, list(entry)
    rotation = entry["rotation"]
    assert rotation.dtype == torch.float32 and rotation.is_contiguous() and not rotation.requires_grad
    dim = rotation.shape[-1]
    assert rotation.shape[-2] == dim and rotation.dim() == (2 if version == 1 else 3), rotation.shape
    wide = rotation.double()
    error = (wide @ wide.mT - torch.eye(dim, dtype=torch.float64)).abs().max().item()
    assert error <= 1e-6, error
    if version == 1:
        eigenvalues = entry["eigenvalues"]
        assert eigenvalues.dtype == torch.float32 and eigenvalues.shape == (dim,)
        assert bool((eigenvalues[1:] >= eigenvalues[:-1]).all())
    return hashlib.sha256(rotation.numpy().tobytes()).hexdigest()


def check_transform(layer_id, entry):
    """Checks a layer of version 3: q_rotation undoes rotation, k_mean is one row per head."""
    assert type(layer_id) is int and entry["layer_id"] == layer_id
    assert set(entry) <= {"layer_id", "rotation", "q_rotation", "k_mean"}, list(entry)
    assert all(t.dtype == torch.float32 and t.is_contiguous() for k, t in entry.items() if k != "layer_id")
    rotation, inverse = entry["rotation"], entry.get("q_rotation", entry["rotation"])
    assert rotation.shape == inverse.shape and rotation.dim() in (2, 3)
    error = (rotation.double() @ inverse.double().mT - torch.eye(rotation.shape[-1])).abs().max().item()
    assert error <= 1e-5, error
    if "k_mean" in entry:
        assert entry["k_mean"].shape == (rotation.shape[0], rotation.shape[-1])
    return hashlib.sha256(b"".join(t.numpy().tobytes() for k, t in entry.items() if k != "layer_id")).hexdigest()


def check_file(path):
    data = torch.load(path, map_location="cpu", weights_only=True)
    assert type(data) is dict and type(data["layers"]) is dict
    version = data["format_version"]
    assert type(version) is int and version in (1, 2, 3)
    assert data["source_grouping"] in {1: ["layer"], 2: ["per_kv_head"], 3: ["layer", "head"]}[version]
    if version == 3:
        fields = [set(entry) for entry in data["layers"].values()]
        assert all(f == fields[0] for f in fields), fields  # upstream refuses a field that only some layers have
        assert set(data["transform"]) == {"key", "centered", "orthogonal"}
    return {
        "objective": data["objective"],
        "calibration": data.get("calibration"),
        "rotations": {str(i): check_layer(i, entry, version) for i, entry in data["layers"].items()},
    }


def load_side(folder):
    """Loads a side as upstream's fitter does: chunks in numeric order, without chunk 0."""
    paths = sorted(folder.glob("*.pt"), key=lambda path: int(path.stem))
    tensors = [torch.load(path, map_location="cpu", weights_only=True) for path in paths]
    assert all(type(t) is torch.Tensor and t.is_contiguous() for t in tensors)
    return tensors, torch.cat([t for t, path in zip(tensors, paths) if int(path.stem) != 0])


def check_dump(directory):
    """Returns for each layer: id, shapes of q, k, v, their dtype, seq_lens of every chunk."""
    layers = []
    for layer in sorted(directory.glob("layer_*"), key=lambda path: int(path.name.split("_", 1)[1])):
        q, k, v = (load_side(layer / side)[1] for side in "qkv")
        assert q.dtype == k.dtype == v.dtype
        lengths, total = load_side(layer / "seq_lens")
        assert total.dtype == torch.int32 and total.sum() == len(q)
        number = int(layer.name.split("_", 1)[1])
        layers.append((number, list(q.shape), list(k.shape), list(v.shape), str(q.dtype), [t.tolist() for t in lengths]))
    return layers


def plain(value):
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value.tolist() if isinstance(value, torch.Tensor) else value


def main():
    if sys.argv[1] == "--dump":  # a dump directory of upstream's server
        print(check_dump(pathlib.Path(sys.argv[2])))
    elif sys.argv[1] == "--value":  # prints the repr of any value, with tensors as nested lists
        data = torch.load(sys.argv[2], weights_only=True)
        print(repr(plain(data)))
    else:
        print(json.dumps({path: check_file(path) for path in sys.argv[1:]}))


main()
