// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// moments.safetensors: the statistics of a run, which can be merged and refitted without the model.
// Not HDF5, because files from others are read too, and malicious files crash that library.
//
// clang-format off
//     metadata           format = "oscar-moments", format_version; layer.<id> = JSON of
//                        num_q_heads, num_kv_heads, head_dim, v_head_dim, tokens, latent;
//                        if not all queries count, also query_tokens, and version 3;
//                        if the model is known, also rope (rope_json.h), fold_rotary_dim,
//                        fold_interleaved, fold_shared_scales (FoldRules)
//     layer.<id>.<sum>   F64; a member of LayerMoments and its shape: query, key, key_sum, value,
//                        attention_output, diagonal, diagonal_weight, attended_key, attended_key_sum,
//                        attended_key_weight; unknown sums are absent;
//                        also the maxima key_abs_max and value_abs_max
// clang-format on
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "calib/moments/layer_moments.h"
#include "capture/checkpoint/safetensors.h"

namespace oscar {

inline constexpr const char* kMomentsFormat = "oscar-moments";
inline constexpr int64_t kMomentsVersion = 2, kMaskedMomentsVersion = 3;

// Writes one layer at a time, in any order. Sums are kept in an unnamed file until Commit(),
// because the header, which comes first, is only known then.
class MomentsWriter {
 public:
  explicit MomentsWriter(const std::filesystem::path& path);
  ~MomentsWriter();
  MomentsWriter(const MomentsWriter&) = delete;
  MomentsWriter& operator=(const MomentsWriter&) = delete;
  void Add(const LayerMoments& layer);
  void Commit();

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  uint64_t size_ = 0;  // bytes
  std::vector<SafetensorsWriter::Declaration> tensors_;
  std::map<std::string, std::string> metadata_;
};

class MomentsReader {
 public:
  // Throws InputError unless the file is a moments file of this version.
  explicit MomentsReader(const std::filesystem::path& path)
      : MomentsReader(MappedFile::Open(path)) {}
  explicit MomentsReader(MappedFile file);
  // Throws InputError naming the file and layer if shapes or counts are impossible, and
  // NumericalError if values are not finite.
  LayerMoments Read(int layer_id) const;

 private:
  SafetensorsFile file_;
};

// The part of a layer's moments that ReadMoments returns.
enum class MomentsPart {
  kAll,
  kMeans  // only geometry, key_sum and maxima
};
// These four functions store a layer in another safetensors file, such as a job's: the key and the
// text of its metadata, its tensors with names and shapes, and the reverse (like
// MomentsReader::Read).
std::string MomentsName(int layer_id);
std::string MomentsFacts(const LayerMoments& moments);
void ForEachSum(const LayerMoments& moments,
                const std::function<void(const std::string& name, const std::vector<int64_t>& shape,
                                         const std::vector<double>& sum)>& visit);
LayerMoments ReadMoments(const SafetensorsFile& file, int layer_id, MomentsPart part);

}  // namespace oscar
