# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
"""Reads artifacts of oscar-calibrate and folders of oscar-export --to oscar-torch; needs numpy alone.

Digests and the invariants of every matrix are checked, as oscar's own reader does
(export/artifact/artifact_reader.h): nothing in a file is trusted.
"""

import hashlib
import json
import math
import os
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

ARTIFACT_SCHEMA, ARTIFACT_VERSION = "oscar-artifact", 2
EXPORT_SCHEMA, EXPORT_VERSION = "oscar-torch", 1
MANIFEST, ROTATIONS, MOMENTS = "manifest.json", "rotations.safetensors", "moments.safetensors"
ARTIFACT_FILES = (ROTATIONS, MOMENTS, "report.json", "report.html", "README.md")
MAX_ORTHOGONALITY, MAX_INVERSE = 1e-6, 1e-3  # max|R^T R - I|, max|M_q^T M - I|
MAX_FEEDBACK = 127  # linalg/feedback_codec.h
BITS = (2, 3, 4)
VERSION = "0.1.0"  # of the package


class ArtifactError(ValueError):
    """A file that is not what it should be, or a choice that this runtime cannot store."""


@dataclass
class Side:
    """How keys or values of a layer are stored: quantized (x - mean) rotation, by head."""

    dim: int
    rotation: np.ndarray  # [1 or num_kv_heads, dim, dim] float32; a token is a row vector
    query_rotation: np.ndarray | None  # the same; None: `rotation`, which is orthogonal
    mean: np.ndarray | None  # [num_kv_heads, dim] float32
    bits: list[int]  # [num_kv_heads]
    clip: list[float]  # [num_kv_heads], percentiles of a row; <= 0: not clipped
    group: int  # values per scale and zero
    scales: str = "range"  # of clipped rows; "unbiased" or "unbiased_rounded": fitted to codes
    metadata: str = "f32"  # type of scales and zeros: "f32", "bf16", "byte"
    feedback: np.ndarray | None = None  # [num_kv_heads, dim, dim] float32, strictly upper

    @property
    def undo(self) -> np.ndarray:
        return self.rotation if self.query_rotation is None else self.query_rotation


@dataclass
class Layer:
    layer_id: int
    num_kv_heads: int
    k: Side = field(repr=False)
    v: Side = field(repr=False)


class Safetensors:
    """Tensors of a .safetensors file as numpy arrays, mapped."""

    DTYPES = {"F32": np.float32, "F64": np.float64}

    def __init__(self, path: Path):
        self.path = path
        try:
            data = np.memmap(path, np.uint8, "r")
        except (OSError, ValueError) as error:
            raise ArtifactError(f"{path}: cannot be read: {error}") from error
        size = int.from_bytes(data[:8].tobytes(), "little")
        if data.size < 8 or size > data.size - 8:
            raise ArtifactError(f"{path}: the header needs {size} bytes, but the file has {data.size}")
        self.entries = parse_json(data[8 : 8 + size].tobytes(), path)
        self.data = data[8 + size :]

    def __contains__(self, name: str) -> bool:
        return name in self.entries

    def get(self, name: str, shape: tuple[int, ...] | None = None, dtype="F32") -> np.ndarray:
        entry = self.entries.get(name)
        if entry is None:
            raise ArtifactError(f"{self.path}: contains no tensor {name}")
        if entry["dtype"] != dtype or (shape is not None and tuple(entry["shape"]) != shape):
            wanted = dtype if shape is None else f"{dtype} {list(shape)}"
            raise ArtifactError(f"{self.path}: tensor {name} is {entry['dtype']} {entry['shape']}, expected {wanted}")
        begin, end = entry["data_offsets"]
        kind = np.dtype(self.DTYPES[dtype])
        if not 0 <= begin <= end <= self.data.size or end - begin != kind.itemsize * math.prod(entry["shape"]):
            raise ArtifactError(f"{self.path}: tensor {name} lies outside the file or its shape")
        values = np.frombuffer(self.data[begin:end], kind).reshape(entry["shape"])
        if not np.isfinite(values).all():
            raise ArtifactError(f"{self.path}: tensor {name} contains NaN or Inf")
        return values


def parse_json(text: bytes, path: Path) -> dict:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ArtifactError(f"{path}: is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ArtifactError(f"{path}: expected a JSON object")
    return value


def member(value, key: str, path: Path, kind=None):
    if not isinstance(value, dict) or key not in value:
        raise ArtifactError(f'{path}: contains no "{key}"')
    if kind is not None and (not isinstance(value[key], kind) or isinstance(value[key], bool)):
        raise ArtifactError(f'{path}: "{key}" is {value[key]!r}')
    return value[key]


class Artifact:
    """What a cache is made of; also the report of the validation of record, as a dictionary."""

    def __init__(self, directory: str | os.PathLike):
        self.directory = Path(directory)
        path = self.directory / MANIFEST
        if not path.is_file():
            raise ArtifactError(f"{self.directory}: contains no {MANIFEST}, so it is not an artifact, or it is incomplete")
        text = path.read_bytes()
        self.path, self.identity = path, hashlib.sha256(text).hexdigest()
        self.manifest = parse_json(text, path)
        schema = member(self.manifest, "$schema", path, dict)
        found = (member(schema, "name", path), member(schema, "version", path))
        known = ((ARTIFACT_SCHEMA, ARTIFACT_VERSION), (EXPORT_SCHEMA, EXPORT_VERSION))
        if found not in known:
            expected = " or ".join(f"{name} {version}" for name, version in known)
            raise ArtifactError(f"{path}: schema {found[0]} {found[1]}, expected {expected}")
        self.exported = found[0] == EXPORT_SCHEMA
        if "imported" in self.manifest:
            raise ArtifactError(f"{self.directory}: imported from published files, which do not specify bits or windows; calibrate the model")
        files = member(self.manifest, "files", path, dict)
        for name in (ROTATIONS,) if self.exported else ARTIFACT_FILES:
            self._check(name, member(files, name, path, dict))
        self.rotations = Safetensors(self.directory / ROTATIONS)
        self.geometry = member(self.manifest, "geometry", path, list)
        self.choice_name, self.choice = self._choice()

    def _check(self, name: str, entry: dict) -> None:
        path = self.directory / name
        size, digest = member(entry, "size", self.path, int), member(entry, "sha256", self.path, str)
        try:
            with open(path, "rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise ArtifactError(f"{path}: cannot be read: {error}") from error
        if (path.stat().st_size, found) != (size, digest):
            is_of = f"{path}: {path.stat().st_size} bytes with SHA-256 {found}"
            says = f"but the manifest says {size} bytes with {digest}"
            raise ArtifactError(f"{is_of}, {says}; the artifact is damaged or was changed")

    def _choice(self) -> tuple[str, dict]:
        if "auto" not in self.manifest:
            raise ArtifactError(f"{self.directory}: contains no automatic choice; make one with oscar-calibrate")
        rows = member(member(self.manifest, "serving", self.path, dict), "runtimes", self.path, list)
        for row in rows:
            if row.get("runtime") == "any" and not row.get("fold_checkpoint", False):
                name = member(row, "choice", self.path, str)
                if name == "auto":
                    return name, self.manifest["auto"]
                return name, member(member(self.manifest, "choices", self.path), name, self.path)
        raise ArtifactError(f"{self.directory}: the choice only fits a folded checkpoint; calibrate with --for any")

    def report(self) -> dict:
        path = self.directory / "report.json"
        if not path.is_file():
            raise ArtifactError(f"{self.directory}: has no report.json")
        return parse_json(path.read_bytes(), path)

    @property
    def windows(self) -> tuple[int, int]:
        """Tokens that stay exact: the first ones, and the most recent ones."""
        serving = self.manifest["serving"]
        return tuple(member(serving, k, self.path, int) for k in ("sink_tokens", "recent_tokens"))

    @property
    def layer_ids(self) -> list[int]:
        return [member(layer, "layer_id", self.path, int) for layer in self.geometry]

    def layer(self, layer_id: int) -> Layer:
        shape = self._record(self.geometry, layer_id)
        if layer_id in self.manifest.get("calibration", {}).get("latent_layers", []):
            raise ArtifactError(f"{self.directory}: layer {layer_id} has latent attention (MLA), which only sglang-oct loads")
        heads = member(shape, "num_kv_heads", self.path, int)
        record = self._record(member(self.choice, "layers", self.path, list), layer_id)
        dims = [member(shape, k, self.path, int) for k in ("head_dim", "v_head_dim")]
        return Layer(layer_id, heads, *(self._side(layer_id, side, dim, heads, record) for side, dim in zip("kv", dims)))

    def _record(self, records: list, layer_id: int) -> dict:
        for record in records:
            if record.get("layer_id") == layer_id:
                return record
        raise ArtifactError(f"{self.path}: contains no layer {layer_id}")

    def _side(self, layer_id: int, side: str, dim: int, heads: int, record: dict) -> Side:
        owner = record.get(f"{side}_of", self.choice_name)

        def tensor(what, choice=owner):
            name = f"layer.{layer_id}.{side}.{choice}.{what}"
            return self.rotations.get(name) if name in self.rotations else None

        def by_head(values, what):
            values = values if isinstance(values, list) else [values]
            if len(values) not in (1, heads):
                raise ArtifactError(f"{self.path}: layer {layer_id} has {len(values)} {what} for {heads} KV heads")
            return values * heads if len(values) == 1 else values

        clip = tensor("clip_ratio", self.choice_name)
        group = member(record, "quant_group_size", self.path, int) or dim
        fitted = record.get("fitted_scales")
        stored = Side(
            dim=dim,
            rotation=tensor("rotation"),
            query_rotation=tensor("query_rotation"),
            mean=tensor("mean"),
            feedback=tensor("feedback"),
            bits=by_head(member(record, f"{side}_bits", self.path), "bits"),
            clip=by_head([0.0] if clip is None else clip.tolist(), "clip ratios"),
            group=group,
            metadata=fitted or "f32",
        )
        if fitted:
            stored.scales = "unbiased_rounded" if side == "k" else "unbiased"
        what = f"{self.rotations.path}: layer {layer_id}, side {side}"
        if tensor("pair_scale") is not None:
            raise ArtifactError(f"{what}: has scales for a folded checkpoint")
        if stored.metadata not in ("f32", "bf16", "byte") or group < 0 or dim % group:
            raise ArtifactError(f"{what}: groups of {group} values with {stored.metadata} scales")
        if any(bits not in BITS for bits in stored.bits):
            raise ArtifactError(f"{what}: codes of {stored.bits} bits, expected 2, 3 or 4")
        if stored.rotation is None:
            raise ArtifactError(f"{what}: has no rotation")
        for matrices in (stored.rotation, stored.undo):
            if matrices.shape[1:] != (dim, dim) or matrices.shape[0] not in (1, heads):
                raise ArtifactError(f"{what}: matrices {list(matrices.shape)} for heads of {dim}")
        if stored.mean is not None and stored.mean.shape != (heads, dim):
            raise ArtifactError(f"{what}: means {list(stored.mean.shape)}")
        if stored.feedback is not None:
            strict = stored.feedback.shape == (heads, dim, dim) and not np.tril(stored.feedback).any()
            if not (strict and np.isfinite(stored.feedback).all()):
                raise ArtifactError(f"{what}: factors of error feedback {list(stored.feedback.shape)} must be strictly upper triangular")
        product = np.swapaxes(stored.undo.astype(np.float64), 1, 2) @ stored.rotation
        residual = np.abs(product - np.eye(dim)).max()
        limit = MAX_ORTHOGONALITY if stored.query_rotation is None else MAX_INVERSE
        if not residual <= limit:
            raise ArtifactError(f"{what}: max|R^T R - I| is {residual:.3g}, expected at most {limit:.0e}")
        return stored
