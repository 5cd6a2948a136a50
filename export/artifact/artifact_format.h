// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The file format of an artifact:
//
// clang-format off
//     manifest.json            canonical JSON (sorted keys; "$schema" sorts first), written last; digests of every
//                              file below except timings.json
//     rotations.safetensors    per layer and side, F32, row-major; a token is a row vector x, rotated x * R
//     moments.safetensors      float64 sums (calib/moments/moments_file.h): mergeable, refittable without the model
//     report.json, report.html the calibration's measurements and the validation of record
//     README.md                model card with front matter
//     timings.json             when, where and how long: the only file that differs between two equal runs
//
// rotations.safetensors, for layer id i and side s in {k, v}:
//     layer.<i>.<s>.rotation          [num_kv_heads, d, d]   fitted per KV head
//     layer.<i>.<s>.eigenvalues       [num_kv_heads, d]      ascending
//     layer.<i>.<s>.clip_ratio        [1]
//     layer.<i>.<s>.clip_threshold    [num_kv_heads]         static: that percentile of |x R|; absent if there
//                                                            were no tokens
//     layer.<i>.<s>.shared.rotation   [1, d, d]              one for all KV heads, with its own .eigenvalues,
//                                                            .clip_ratio, .clip_threshold
//     layer.<i>.k.mean                [num_kv_heads, d]      key mean
//     layer.<i>.<s>.abs_max           [num_kv_heads, d]      largest |x| of all calibration tokens, as they are cached
//                                                            (not rotated); absent from older artifacts
// An artifact imported from a shared (v1) file has one "KV head" and no .shared tensors.
//
// The tensors chosen for the layer, for every consumer (calib/choose/choice.h); <c> is "auto", the headline's choice, or
// the name of another choice ("sglang", "sglang+fold"):
//     layer.<i>.<s>.<c>.rotation        [num_kv_heads or 1, d, d]  M: stored is (k * pair_scale - mean) M; values: v M
//     layer.<i>.k.<c>.query_rotation    shape of rotation: queries take (q / pair_scale) M_q, M_q = M^-T; absent: M_q = M,
//                                       which is orthogonal
//     layer.<i>.k.<c>.pair_scale        [num_kv_heads, d]  folded into the checkpoint: keys leave it scaled and
//                                       queries divided; absent: ones, nothing to fold
//     layer.<i>.k.<c>.mean              [num_kv_heads, d]  mean of the scaled keys; absent: keys are not centred
//     layer.<i>.k.<c>.feedback          [num_kv_heads, d, d]  strictly upper triangular: the writer uses it to feed back
//                                       rounding errors (linalg/error_feedback.h); integers within +-127 times a power
//                                       of two. Absent: every value is rounded by itself. Readers do not need it.
//     layer.<i>.v.<c>.query_rotation, layer.<i>.v.<c>.mean: if the cache stores latents, which are keys and values at
//                                       once: the tensors of the keys
//     layer.<i>.<s>.<c>.clip_ratio      [1], or [num_kv_heads]
// A side that equals an earlier choice's side is stored only with the earlier choice. The manifest's "auto" and "choices"
// (choice_plans.h) name it, with bits and quantization groups; recipes and scores are in report.json.
// clang-format on
//
// Identity of an artifact = SHA-256 of manifest.json.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "export/report/report_schema.h"  // kReportSchema, kReportVersion

namespace oscar {

inline constexpr std::string_view kArtifactSchema = "oscar-artifact";
inline constexpr int kArtifactVersion = 2;

inline constexpr const char* kManifestFile = "manifest.json";
inline constexpr const char* kRotationsFile = "rotations.safetensors";
inline constexpr const char* kMomentsFile = "moments.safetensors";
inline constexpr const char* kReportFile = "report.json";
inline constexpr const char* kReportPageFile = "report.html";
inline constexpr const char* kCardFile = "README.md";
inline constexpr const char* kTimingsFile = "timings.json";

// The tensors of rotations.safetensors as above, for code that must know every possible name: the
// sides that may have layer.<i>.<s>.name, layer.<i>.<s>.shared.name and layer.<i>.<s>.<c>.name.
struct ArtifactTensor {
  std::string_view name, own, shared, of_choice;
};
inline constexpr ArtifactTensor kArtifactTensors[] = {
    {"rotation", "kv", "kv", "kv"},   {"eigenvalues", "kv", "kv", ""},
    {"clip_ratio", "kv", "kv", "kv"}, {"clip_threshold", "kv", "kv", ""},
    {"mean", "k", "", "kv"},          {"abs_max", "kv", "", ""},
    {"query_rotation", "", "", "kv"}, {"pair_scale", "", "", "k"},
    {"feedback", "", "", "k"}};

// Whether an artifact in a zoo may have a tensor of this name. `place`: &ArtifactTensor::own,
// shared or of_choice.
inline bool IsArtifactTensor(std::string_view ArtifactTensor::*place, char side,
                             std::string_view name) {
  return std::ranges::any_of(kArtifactTensors, [&](const ArtifactTensor& tensor) {
    return tensor.name == name && (tensor.*place).find(side) != std::string_view::npos;
  });
}

// Returns the name of a tensor in rotations.safetensors. `side`: 'k' or 'v'; `name`: "rotation",
// ...
inline std::string RotationTensorName(int layer_id, char side, bool shared, std::string_view name) {
  return "layer." + std::to_string(layer_id) + "." + side + (shared ? ".shared." : ".") +
         std::string(name);
}

inline std::string ChoiceTensorName(int layer_id, char side, std::string_view choice,
                                    std::string_view name) {
  return "layer." + std::to_string(layer_id) + "." + side + "." + std::string(choice) + "." +
         std::string(name);
}

}  // namespace oscar
