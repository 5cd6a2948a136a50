// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs every arm beside the reference. Stream 0 of the layer loop has the hidden states of the
// exact model. Each other stream has those of one arm, whose attention reads that arm's cache.
//
// All errors are differences from the reference's attention. For local errors, the arm's cache
// stores the reference's keys and values, and the reference's queries read it. For end-to-end
// errors, all of these are the arm's own. A dump has only stream 0 and local errors.
//
// Trap: the streams of a sequence must come one after another, as LayerLoop::Run calls them. Caches
// are made at a layer's first sequence, after its calibration rows were collected.
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
    bool end_to_end = true;                      // also runs the arms, as streams 1, 2, ...
    size_t by_distance = 0;  // the arm whose local KL is split by distance; 0: none
  };
  // Keeps references. arms[0] is the reference; stream i runs arms[i].
  ValidationObserver(MethodContext& context, const std::vector<Arm>& arms, const MeasuredRows& rows,
                     const Options& options);

  size_t num_streams() const { return options_.end_to_end ? arms_.size() : 1; }
  // Whether an arm's method needs the rows that its cache returned in the previous layer. They are
  // kept only in memory, so a run with such an arm cannot be resumed.
  bool ReadsLayerBefore() const;

  void OnLayerBegin(const LayerSpec& layer) override;
  bool Attend(const AttentionView& view) override;
  void OnAttention(const AttentionView& view) override;
  void OnLayerEnd(const LayerSpec& layer) override;

  // WriteLayer writes a finished layer's results to a file. ReadLayer reads them in place of
  // running the layer, and throws InputError for a file of other arms or rows.
  void WriteLayer(const std::filesystem::path& path, size_t index) const;
  void ReadLayer(const std::filesystem::path& path);

  // Return the METRICS of an arm. Local errors of the reference are zero.
  Json LocalMetrics(size_t arm) const { return local_[arm].Metrics(); }
  Json EndToEndMetrics(size_t arm) const { return end_to_end_[arm].Metrics(); }
  // Returns the local KL of the arm Options::by_distance, split by distance. Returns nothing if
  // there is no such arm, or if it was compared without score matrices.
  std::optional<measures::ByDistance> ByDistance() const {
    return local_[options_.by_distance].ByDistance();
  }
  // Returns the seconds that this thread spent on an arm's caches (fitting and storing), without
  // attention. On a GPU this is only the time for launching kernels.
  double Seconds(size_t arm) const { return seconds_[arm]; }

 private:
  // Rows of a measured sequence, as one stream's attention read them.
  struct Streams {
    // [measured rows, num_q_heads, dim]. For latent attention it includes q_pe, except in the
    // reference.
    at::Tensor q;
    at::Tensor k, v;                             // [tokens, num_kv_heads, dim]
    at::Tensor k_stored = {}, v_stored = {};     // the same shape
    at::Tensor q_pe = {}, k_pe = {}, w_uv = {};  // for latent attention: the reference's; every
                                                 // k_pe
  };
  // A cache to compare with the reference, and the arms whose errors it gives.
  struct Comparison {
    StoredCache stored;
    at::Tensor queries;  // own [measured rows, num_q_heads, dim]; undefined: the reference's
    std::vector<ExactSides> exact;
    std::vector<std::pair<ArmErrors*, size_t>> results;  // with the index in `exact`
    bool is_reference = false;                           // all of its errors are 0
  };

  const std::vector<LayerCache>& LayerCaches();  // of the current layer, by arm
  // Returns the rows that an arm's cache reads back. `before` holds those of the previous layer,
  // and receives these.
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
  // Compares without score matrices. Returns the caches that need them, because bf16 cannot hold
  // their queries.
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
  // For arms whose method reads the previous layer: the rows that its cache returned for
  // calibration rows, and for sequences with local and with end-to-end errors.
  std::map<size_t, std::vector<CacheSides>> rows_before_;
  std::map<std::pair<size_t, int64_t>, CacheSides> local_before_, own_before_;
  std::map<int64_t, std::vector<Streams>> pending_;  // by sequence
};

}  // namespace oscar
