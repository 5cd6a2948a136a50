// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// See artifact_reader.h.
#include "export/artifact/artifact_reader.h"

#include <fmt/format.h>

#include <cstring>

#include "capture/files/digest_json.h"
#include "export/artifact/artifact_format.h"
#include "linalg/error.h"
#include "linalg/rotation.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

std::vector<float> Floats(const SafetensorsFile& file, const std::string& name,
                          const std::vector<int64_t>& shape) {
  const TensorView view = file.tensor(name);
  if (view.dtype != DType::kF32 || view.shape != shape) {
    throw InputError(fmt::format("{}: tensor {} is {} [{}], expected F32 [{}]",
                                 file.path().string(), name, DTypeName(view.dtype),
                                 fmt::join(view.shape, ", "), fmt::join(shape, ", ")));
  }
  std::vector<float> values(view.data.size() / sizeof(float));
  std::memcpy(values.data(), view.data.data(), view.data.size());
  return values;
}

void CheckOrthogonal(const StoredSide& side, const std::string& what) {
  using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  for (int64_t i = 0; i < side.num_rotations; ++i) {
    const Eigen::Map<const RowMajor> r(side.rotation.data() + i * side.dim * side.dim, side.dim,
                                       side.dim);
    const double residual = OrthogonalityResidual(r.cast<double>());
    if (!(residual <= kMaxFloat32Orthogonality)) {
      throw NumericalError(fmt::format(
          "{}, rotation {}: max|RᵀR - I| is {:.3g}, expected at most {:.0e}: not a rotation", what,
          i, residual, kMaxFloat32Orthogonality));
    }
  }
}

StoredSide ReadSide(const SafetensorsFile& file, int layer_id, char name, bool shared,
                    int64_t num_rotations, int64_t dim) {
  StoredSide side;
  const auto tensor = [&](const char* what) {
    return RotationTensorName(layer_id, name, shared, what);
  };
  if (shared && file.tensors().find(tensor("rotation")) == file.tensors().end()) return side;
  side.num_rotations = num_rotations;
  side.dim = dim;
  side.rotation = Floats(file, tensor("rotation"), {num_rotations, dim, dim});
  side.eigenvalues = Floats(file, tensor("eigenvalues"), {num_rotations, dim});
  side.clip_ratio = Floats(file, tensor("clip_ratio"), {1}).at(0);
  CheckOrthogonal(side, fmt::format("{}: {}", file.path().string(), tensor("rotation")));
  return side;
}

}  // namespace

bool Artifact::LooksLikeOne(const fs::path& path) {
  return fs::is_directory(path) && fs::exists(path / kManifestFile);
}

Artifact Artifact::Open(const fs::path& directory) {
  Artifact artifact;
  artifact.directory_ = directory;
  const std::string file = (directory / kManifestFile).string();
  if (!fs::exists(file)) {
    throw InputError(fmt::format("{}: no {}: not an artifact, or one whose writing was cut off",
                                 directory.string(), kManifestFile));
  }
  artifact.manifest_ = ReadJsonFile(file);
  artifact.identity_ = DigestFile(file).sha256;
  const Json& schema = JsonMember(artifact.manifest_, "$schema", file);
  const std::string name = JsonString(schema, "name", file);
  const int64_t version = JsonInt(schema, "version", file);
  if (name != kArtifactSchema || version != kArtifactVersion) {
    throw InputError(fmt::format("{}: schema {} {}, expected {} {}", file, name, version,
                                 kArtifactSchema, kArtifactVersion));
  }
  const Json& files = JsonMember(artifact.manifest_, "files", file);
  for (const char* needed :
       {kRotationsFile, kMomentsFile, kReportFile, kReportPageFile, kCardFile}) {
    const Json& entry = JsonMember(files, needed, file);
    const FileDigest expected = DigestFromJson(entry, file);
    const FileDigest found = DigestFile(directory / needed);
    if (found != expected) {
      throw InputError(fmt::format(
          "{}: {} bytes with SHA-256 {}, but the manifest says {} bytes with {}: the artifact is "
          "damaged or was changed",
          (directory / needed).string(), found.size, found.sha256, expected.size, expected.sha256));
    }
  }
  artifact.rotations_ = SafetensorsFile::Open(directory / kRotationsFile);
  return artifact;
}

Json Artifact::report() const { return ReadJsonFile((directory_ / kReportFile).string()); }

std::vector<int> Artifact::layer_ids() const {
  std::vector<int> ids;
  for (const Json& layer : JsonMember(manifest_, "geometry", kManifestFile)) {
    ids.push_back(static_cast<int>(JsonInt(layer, "layer_id", kManifestFile)));
  }
  return ids;
}

StoredLayer Artifact::ReadLayer(int layer_id) const {
  for (const Json& geometry : JsonMember(manifest_, "geometry", kManifestFile)) {
    if (JsonInt(geometry, "layer_id", kManifestFile) != layer_id) continue;
    const int64_t heads = JsonInt(geometry, "num_kv_heads", kManifestFile);
    const int64_t d = JsonInt(geometry, "head_dim", kManifestFile),
                  dv = JsonInt(geometry, "v_head_dim", kManifestFile);
    StoredLayer layer;
    layer.layer_id = layer_id;
    layer.k = ReadSide(rotations_, layer_id, 'k', false, heads, d);
    layer.v = ReadSide(rotations_, layer_id, 'v', false, heads, dv);
    layer.k_shared = ReadSide(rotations_, layer_id, 'k', true, 1, d);
    layer.v_shared = ReadSide(rotations_, layer_id, 'v', true, 1, dv);
    return layer;
  }
  throw InputError(fmt::format("{}: has no layer {}", directory_.string(), layer_id));
}

}  // namespace oscar
