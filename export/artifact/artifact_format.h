// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The file format of an artifact:
//
// clang-format off
//     manifest.json            canonical JSON (sorted keys, so "$schema" is first), written last; contains the digest
//                              of every file below except timings.json
//     rotations.safetensors    row-major float32 tensors of each layer and side; x * R rotates a token x, a row vector
//     moments.safetensors      float64 sums (calib/moments/moments_file.h), to merge and refit without the model
//     report.json, report.html the calibration's measurements and the validation of record
//     README.md                model card with front matter
//     timings.json             date, host and durations: the only file that differs between two equal runs
//
// rotations.safetensors, for layer id i and side s in {k, v}:
//     layer.<i>.<s>.rotation          [num_kv_heads, d, d]   fitted per KV head
//     layer.<i>.<s>.eigenvalues       [num_kv_heads, d]      ascending
//     layer.<i>.<s>.clip_ratio        [1]
//     layer.<i>.<s>.clip_threshold    [num_kv_heads]         fixed threshold: the clip_ratio quantile of |x R|;
//                                                            absent if there were no tokens
//     layer.<i>.<s>.shared.rotation   [1, d, d]              one for all KV heads, with its own .eigenvalues,
//                                                            .clip_ratio, .clip_threshold
//     layer.<i>.k.mean                [num_kv_heads, d]      key mean
//     layer.<i>.<s>.abs_max           [num_kv_heads, d]      largest |x| in calibration, unrotated; older
//                                                            artifacts lack it
// An artifact imported from a shared (v1) file has one "KV head" and no .shared tensors.
//
// Each automatic choice (calib/choose/choice.h) is made for one runtime and has its own tensors. <c> is the choice's
// name: "auto" for the headline choice, which is validated; else, for example, "sglang" or "sglang+fold".
//     layer.<i>.<s>.<c>.rotation        [num_kv_heads or 1, d, d]  M: the cache stores (k * pair_scale - mean) M for
//                                       keys, v M for values
//     layer.<i>.k.<c>.query_rotation    M^-T in the shape of rotation: queries become (q / pair_scale) M^-T. Absent: M
//                                       is orthogonal, so M^-T = M
//     layer.<i>.k.<c>.pair_scale        [num_kv_heads, d]  folded into the checkpoint, which then computes scaled keys
//                                       and divided queries. Absent: all ones
//     layer.<i>.k.<c>.mean              [num_kv_heads, d]  mean of the scaled keys. Absent: keys are not centred
//     layer.<i>.k.<c>.feedback          [num_kv_heads, d, d]  strictly upper triangular; the cache's writer uses it to
//                                       feed back rounding errors (linalg/error_feedback.h). Elements are integers
//                                       within +-127 times a power of two. Absent: no feedback. Readers do not need it
//     layer.<i>.v.<c>.query_rotation, layer.<i>.v.<c>.mean: only for caches of latents, which are both keys and values;
//                                       they equal the tensors of the keys
//     layer.<i>.<s>.<c>.clip_ratio      [1] or [num_kv_heads]
// A side that equals an earlier choice's side is stored only with that choice, which the manifest names in "auto" and
// "choices" (choice_plans.h), beside recipes, bits and quantization groups. Scores are in report.json.
// clang-format on
//
// The identity of an artifact is the SHA-256 of manifest.json.
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

// The tensors of rotations.safetensors as above. `own`, `shared` and `of_choice` hold the sides
// that can have the tensor as layer.<i>.<s>.name, layer.<i>.<s>.shared.name and
// layer.<i>.<s>.<c>.name.
struct ArtifactTensor {
  std::string_view name, own, shared, of_choice;
};
inline constexpr ArtifactTensor kArtifactTensors[] = {
    {"rotation", "kv", "kv", "kv"},   {"eigenvalues", "kv", "kv", ""},
    {"clip_ratio", "kv", "kv", "kv"}, {"clip_threshold", "kv", "kv", ""},
    {"mean", "k", "", "kv"},          {"abs_max", "kv", "", ""},
    {"query_rotation", "", "", "kv"}, {"pair_scale", "", "", "k"},
    {"feedback", "", "", "k"}};

// Whether an artifact with a report may have a tensor of this name; imported artifacts, which have
// none, may have more. `place`: &ArtifactTensor::own, shared or of_choice.
inline bool IsArtifactTensor(std::string_view ArtifactTensor::*place, char side,
                             std::string_view name) {
  return std::ranges::any_of(kArtifactTensors, [&](const ArtifactTensor& tensor) {
    return tensor.name == name && (tensor.*place).find(side) != std::string_view::npos;
  });
}

// Returns a tensor's name in rotations.safetensors. `side`: 'k' or 'v'; `name`: "rotation", ...
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
