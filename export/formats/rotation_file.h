// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads rotation files of every known schema, from upstream OSCAR and from servers, into one
// struct. rotation_schemas.cc has a table row for each schema. Trap: in v3 and MLA files,
// `rotation` may be non-orthogonal by design. The file then also has the inverse transpose, which
// is checked.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capture/files/strict_json.h"
#include "export/formats/pt/pt_file.h"

namespace oscar {

enum class RotationKind {
  kV1,         // "layers" of shared rotations, format_version 1
  kV2,         // per KV head, format_version 2
  kV3,         // OSCAR-2: optional q_rotation, o_rotation, k_mean, format_version 3
  kIdentity,   // format_version "identity-v1"
  kLayers,     // vLLM: "layers" without a version
  kFlat,       // vLLM: layer id to tensor
  kStacked,    // vLLM: one tensor [num_layers, d, d]
  kMlaLayer,   // one layer of a latent cache: a matrix, or a dict that holds one
  kMlaFolder,  // a directory with layer_<id>.pt
  kMoments     // moments collected by an upstream server
};
std::string_view RotationKindName(RotationKind kind);  // like "v1", "mla-layer"

// Limits of max|R R^T - I| on reading, by dtype in the file. A q_rotation is rounded too, so the
// limit of max|R q_rotation^T - I| is the float32 limit times the largest element of
// |R| |q_rotation|^T, if that exceeds 1.
inline constexpr double kMaxFloat32FileOrthogonality = 1e-5;  // for float32 and float64
inline constexpr double kMaxFloat16FileOrthogonality = 2e-3;
inline constexpr double kMaxBFloat16FileOrthogonality = 2e-2;

// Absent tensors are null. Equal views of a storage become the same object.
struct RotationLayer {
  int64_t layer_id = 0;        // the checkpoint's own number
  FloatTensorPtr rotation;     // [d, d] or [num_kv_heads, d, d], used as x * R
  FloatTensorPtr eigenvalues;  // [d] or [num_kv_heads, d]
  FloatTensorPtr q_rotation;   // R^-T, in the shape of rotation; applied to queries
  FloatTensorPtr o_rotation;   // R^-T, in the shape of rotation; undoes R on the output
  FloatTensorPtr k_mean;       // [d] or [num_kv_heads, d], subtracted before rotating
  FloatTensorPtr mean;         // [d], the latent's mean (MLA only)
  FloatTensorPtr pair_scale;   // [d] or [num_kv_heads, d]: keys are multiplied by it before k_mean
                               // and R, queries divided; only given_rotations.h allows it
  double orthogonality = 0;    // max|R R^T - I| in float64, for the worst head
  std::optional<double> q_inverse_error, o_inverse_error;  // max|R q^T - I|, max|R o^T - I|
};

// One layer of an upstream moments file. All values are float64, per KV head.
struct MomentLayer {
  int64_t layer_id = 0;
  int64_t count = 0;     // number of tokens
  double q_scaling = 0;  // softmax scale; 0: unknown
  int64_t num_kv_heads = 0, head_dim = 0, v_head_dim = 0;
  std::vector<double> m_q;    // [num_kv_heads, d, d], mean of q^T q
  std::vector<double> k_sum;  // [num_kv_heads, d]
  std::vector<double> m_k;    // [num_kv_heads, d, d], sum of k^T k
  std::vector<double> s_v;    // [num_kv_heads, dv, dv]
  std::vector<double> rho;    // [num_kv_heads, group, group]; may be empty
};

struct RotationFile {
  RotationKind kind{};
  std::filesystem::path path;
  Json format_version;                // a number, "identity-v1", or null
  std::string objective;              // like "qqt_r_h_pbr"; may be empty
  std::string source_grouping;        // "layer", "per_kv_head", ...; may be empty
  Json calibration;                   // the calibration block, or null
  Json transform;                     // may be null
  std::vector<RotationLayer> layers;  // in file order; empty for moments
  std::vector<MomentLayer> moments;   // in file order; only for moments
};

// Throws InputError naming file, layer and tensor for an unknown schema or version, a repeated or
// wrong layer id, a wrong shape or dtype, or an optional field that only some layers have. Throws
// NumericalError for NaN, Inf, or a matrix that is neither orthogonal nor undone by its q_rotation
// or o_rotation.
RotationFile ReadRotationFile(const PtFile& file);
RotationFile OpenRotationFile(const std::filesystem::path& path);

// A directory of layer_<id>.pt files. They are read in the order of their ids.
bool IsMlaFolder(const std::filesystem::path& directory);
RotationFile OpenMlaFolder(const std::filesystem::path& directory);

// Parses a decimal from 0 to 2^31 - 1 without leading zeros or spaces ("7", not "07" or " 7").
// Returns nothing for other text.
std::optional<int64_t> ParseLayerId(std::string_view text);

}  // namespace oscar
