// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// moments.h5: the statistics of a run, mergeable and refittable without the model.
//
// clang-format off
//     /                  attributes: format = "oscar-moments", format_version
//     /layer/<id>        attributes: num_q_heads, num_kv_heads, head_dim, v_head_dim, tokens;
//                        where the model is known also rope (rope_json.h), fold_rotary_dim,
//                        fold_interleaved, fold_shared_scales (FoldRules)
//     /layer/<id>/<sum>  float64; a member of LayerMoments and its shape: query, key, key_sum, value,
//                        attention_output, diagonal, diagonal_weight; one that is not known is absent;
//                        beside them the maxima key_abs_max and value_abs_max
// clang-format on
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "calib/moments/layer_moments.h"
#include "capture/dump/hdf5_file.h"

namespace oscar {

inline constexpr const char* kMomentsFormat = "oscar-moments";
inline constexpr int64_t kMomentsVersion = 1;

// One layer at a time, in any order.
class MomentsWriter {
 public:
  explicit MomentsWriter(const std::filesystem::path& path);
  void Add(const LayerMoments& layer);
  void Commit();

 private:
  Hdf5Writer file_;
};

class MomentsReader {
 public:
  // Throws InputError for anything but a moments file of this version.
  explicit MomentsReader(const std::filesystem::path& path);
  // Throws InputError naming the file and layer where shapes or counts make no sense;
  // NumericalError for values that are not finite.
  LayerMoments Read(int layer_id) const;

 private:
  Hdf5Reader file_;
};

// The same layout below any group; shared with layer files.
enum class MomentsPart {
  kAll,
  kMeans  // geometry, key_sum and maxima: what is left to say once the moments are written
};
void WriteMoments(Hdf5Writer& file, const std::string& group, const LayerMoments& moments);
LayerMoments ReadMoments(const Hdf5Reader& file, const std::string& group, int layer_id,
                         MomentsPart part = MomentsPart::kAll);

}  // namespace oscar
