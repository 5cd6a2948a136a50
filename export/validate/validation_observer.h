// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs every arm beside the reference. Stream 0 of the layer loop is the exact model; each other
// stream has the hidden states of one arm, whose attention reads that arm's cache. Measures local
// errors (every arm with the reference's queries, keys and values) and end-to-end errors (with its
// own). Trap: the streams of a sequence must come one after another, as LayerLoop::Run calls them;
// with local errors alone (a dump) there is one stream. Caches are made at a layer's first
// sequence, after calibration rows were collected.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "capture/model/run/layer_loop.h"
#include "export/validate/arm.h"
#include "export/validate/arm_errors.h"
#include "export/validate/mixed_attention.h"

namespace oscar {

class ValidationObserver : public LayerObserver {
 public:
  struct Options {
    at::ScalarType measure_dtype = at::kDouble;  // kDouble or kFloat
    bool end_to_end = true;                      // also runs streams 1, 2, ..., those of the arms
    size_t by_distance = 0;  // the arm whose local KL is split by distance; 0: none
  };
  // Keeps references. arms[0] is the reference, and stream i is arms[i].
  ValidationObserver(MethodContext& context, const std::vector<Arm>& arms, const MeasuredRows& rows,
                     const Options& options);

  size_t num_streams() const { return options_.end_to_end ? arms_.size() : 1; }
  // Whether a layer needs results of the previous layer that are stored here.
  bool ReadsLayerBefore() const;

  void OnLayerBegin(const LayerSpec& layer) override;
  bool Attend(const AttentionView& view) override;
  void OnAttention(const AttentionView& view) override;
  void OnLayerEnd(const LayerSpec& layer) override;

  // WriteLayer writes the results of a finished layer to a file. ReadLayer reads them instead of
  // running the layer, and throws InputError for a file of other arms or rows.
  void WriteLayer(const std::filesystem::path& path, size_t index) const;
  void ReadLayer(const std::filesystem::path& path);

  // Returns METRICS of an arm. Those of the reference are zero.
  Json LocalMetrics(size_t arm) const { return local_[arm].Metrics(); }
  Json EndToEndMetrics(size_t arm) const { return end_to_end_[arm].Metrics(); }
  // Returns the KL of Options::by_distance. Null if there is no such arm, or rows were compared
  // without scores.
  std::optional<measures::ByDistance> ByDistance() const {
    return local_[options_.by_distance].ByDistance();
  }
  // Seconds that this thread spent on an arm's caches (fitting and storing), without attention. On
  // a GPU this includes only launching the work.
  double Seconds(size_t arm) const { return seconds_[arm]; }

 private:
  // The rows of a measured sequence that one stream's attention read.
  struct Streams {
    // [measured rows, num_q_heads, dim]. With latent attention it includes q_pe, except for the
    // reference.
    at::Tensor q;
    at::Tensor k, v;                             // [tokens, num_kv_heads, dim]
    at::Tensor k_stored = {}, v_stored = {};     // the same shape
    at::Tensor q_pe = {}, k_pe = {}, w_uv = {};  // for latent attention: the reference's; every
                                                 // k_pe
  };
  // A cache to compare with the reference, and the arms that receive the results.
  struct Comparison {
    StoredCache stored;
    at::Tensor queries;  // own [measured rows, num_q_heads, dim]; undefined: the reference's
    std::vector<ExactSides> exact;
    std::vector<std::pair<ArmErrors*, size_t>> results;  // with the index in `exact`
    bool is_reference = false;                           // all of its errors are 0
  };

  const std::vector<LayerCache>& LayerCaches();  // for the current layer, by arm
  // Returns the rows that an arm's cache reads back, and stores them in `before`.
  static CachedRows StoreBehind(const LayerCache& cache, const CacheSides& rows,
                                CacheSides& before);
  Comparison CompareLocally(const std::vector<size_t>& arms, int64_t sequence,
                            const Streams& reference, const CacheSides& rows,
                            const CacheEnergy& energy);
  Comparison CompareEndToEnd(size_t arm, const Streams& own, const CacheSides& rows,
                             const CacheEnergy& energy);
  void Measure(const LayerSpec& layer, int64_t sequence);
  using Caches = std::vector<std::function<Comparison()>>;
  void MeasureRows(const AttentionSpec& spec, const Streams& reference, const CacheSides& rows,
                   const Caches& caches, const at::Tensor& positions, const at::Tensor& headline);
  // Works without score matrices. Returns the caches whose queries bf16 cannot hold.
  Caches MeasureAllRows(const AttentionSpec& spec, const Streams& reference, const Caches& caches,
                        const at::Tensor& headline);

  MethodContext& context_;
  const std::vector<Arm>& arms_;
  const MeasuredRows& rows_;
  Options options_;
  std::vector<std::vector<size_t>> groups_;            // arms that differ only in their windows
  std::map<int64_t, std::vector<int64_t>> positions_;  // positions of measured rows, by sequence
  std::vector<ArmErrors> local_, end_to_end_;          // by arm
  std::vector<double> seconds_;                        // by arm
  size_t layer_index_ = 0, layers_seen_ = 0;
  std::vector<LayerCache> caches_;  // see LayerCaches()
  std::vector<MixedMasks> masks_;   // by arm
  // For arms whose method reads the previous layer: the rows that its cache returned, for
  // calibration rows, and for sequences locally and end to end.
  std::map<size_t, std::vector<CacheSides>> rows_before_;
  std::map<std::pair<size_t, int64_t>, CacheSides> local_before_, own_before_;
  std::map<int64_t, std::vector<Streams>> pending_;  // by sequence
};

}  // namespace oscar
