# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
"""Writes folders of random matrices in the format of oscar-export --to oscar-torch."""

import hashlib
import json

import numpy as np
import safetensors.numpy

SINK, RECENT = 16, 32


def orthogonal(generator, *shape):
    return np.linalg.qr(generator.standard_normal(shape))[0]


def write(directory, layers=4, heads=2, q_heads=4, dim=64, k_bits=2, v_bits=2, group=0, scales="bf16",
          clip=(0.9,), feedback=True, windows=(SINK, RECENT), seed=0):
    """Writes balanced, centred keys per head and shared value rotations. scales=None: float32 scales of the range."""
    generator, tensors, records = np.random.default_rng(seed), {}, []
    for i in range(layers):
        turn = orthogonal(generator, heads, dim, dim)
        scale = np.exp(generator.uniform(-0.5, 0.5, (heads, dim, 1)))
        of_layer = {
            "k.auto.rotation": scale * turn,
            "k.auto.query_rotation": turn / scale,
            "k.auto.mean": generator.standard_normal((heads, dim)) * 0.1,
            "k.auto.clip_ratio": np.array(clip),
            "v.auto.rotation": orthogonal(generator, 1, dim, dim),
            "v.auto.clip_ratio": np.array([0.95]),
        }
        if feedback:
            factor = np.rint(generator.uniform(-4, 4, (heads, dim, dim))) / 64
            of_layer["k.auto.feedback"] = np.triu(factor, 1)
        tensors |= {f"layer.{i}.{name}": values.astype(np.float32) for name, values in of_layer.items()}
        record = {"layer_id": i, "k_bits": k_bits, "v_bits": v_bits, "quant_group_size": group}
        records.append(record | ({"fitted_scales": scales} if scales else {}))
    directory.mkdir()
    path = directory / "rotations.safetensors"
    safetensors.numpy.save_file(tensors, path)
    shape = {"num_kv_heads": heads, "num_q_heads": q_heads, "head_dim": dim, "v_head_dim": dim}
    manifest = {
        "$schema": {"name": "oscar-torch", "version": 1},
        "auto": {"layers": records},
        "files": {path.name: {"size": path.stat().st_size, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}},
        "geometry": [{"layer_id": i} | shape for i in range(layers)],
        "serving": {"sink_tokens": windows[0], "recent_tokens": windows[1],
                    "runtimes": [{"runtime": "any", "choice": "auto"}]},
    }
    (directory / "manifest.json").write_text(json.dumps(manifest))
    return directory
