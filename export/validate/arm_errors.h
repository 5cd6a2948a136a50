// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// One arm's errors of attention, collected over layers and returned as the METRICS object of
// report.json (export/report/schema.md). The host reads results from the device only once per
// layer. Rows are therefore identified by their order, which must be that of MeasuredRows::rows.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "calib/cache/row_comparison.h"
#include "capture/files/strict_json.h"
#include "export/measures/report.h"

namespace oscar {

// A query row that is measured in every layer.
struct MeasuredRow {
  int64_t sequence = 0;   // index among all sequences of the run
  int64_t position = 0;   // within the sequence
  int64_t length = 0;     // tokens of the sequence
  bool headline = false;  // whether it counts in headline numbers (FirstHeadlineRow)
};

struct MeasuredRows {
  std::vector<MeasuredRow> rows;  // sequence after sequence, with ascending positions
  CacheWindows windows;           // divides rows into inside and beyond, for every arm
  int64_t resamples = 1000;       // for the bootstrap
  uint64_t seed = 0;
};

// The squared norms of all keys and of all values of a sequence, [] float64. They are the same for
// all arms.
struct CacheEnergy {
  CacheEnergy(const at::Tensor& keys, const at::Tensor& values);

  at::Tensor k, v;
};

class ArmErrors {
 public:
  // `name` is used in messages. Keeps a reference to `rows`.
  ArmErrors(std::string name, const MeasuredRows& rows) : name_(std::move(name)), rows_(rows) {}

  void BeginLayer(const LayerSpec& layer);
  // Adds the next rows. `headline` [rows] is 1 for rows that count, in the measuring type.
  void AddRows(const RowErrors& errors, const ReferenceRows& reference, const at::Tensor& headline);
  // Adds the KL by distance of the same rows. Must be called for all rows of an arm or for none.
  void AddDistances(const DistanceErrors& errors, const at::Tensor& headline);
  // Adds the error of a whole sequence's cache. `k` and `v` are the reference's rows, and `energy`
  // is theirs; `k_stored` and `v_stored` are what the arm's cache returns. All are [tokens,
  // num_kv_heads, dim].
  void AddCache(const CacheEnergy& energy, const at::Tensor& k, const at::Tensor& k_stored,
                const at::Tensor& v, const at::Tensor& v_stored);
  void EndLayer();  // synchronizes; NumericalError for NaN or infinity

  Json Metrics() const;  // measures::AttentionErrors and kPieces (piece_sums.h)
  // Returns attention and KL of headline rows by distance, as means over heads and layers like the
  // mean of `kl`. Returns nothing if a layer was measured without distances.
  std::optional<measures::ByDistance> ByDistance() const;

  // Packed returns a layer's results as numbers. AddPacked adds them as the next layer when a
  // validation is resumed; it throws InputError if they do not match the rows.
  std::vector<double> Packed(size_t layer) const;
  void AddPacked(std::span<const double> packed);

 private:
  enum Sum { kOutputError, kOutput, kKTerm, kVTerm, kLogitError, kLogit, kPairs, kNumSums };
  enum CacheSum { kKError, kKEnergy, kVError, kVEnergy, kNumCacheSums };
  struct Layer {
    int layer_id = 0;
    int64_t num_kv_heads = 0, gqa_ratio = 0;
    std::vector<float> kl;               // [num_q_heads, rows]
    std::vector<double> sums;            // [kNumSums, num_kv_heads], over headline rows
    std::vector<double> cache_sums;      // [kNumCacheSums], over all tokens
    int64_t k_values = 0, v_values = 0;  // number of values in cache_sums
    std::vector<double> distances;       // [2, kDistanceBuckets + 1], headline rows; may be empty
  };

  std::vector<double> RowMeans() const;  // [rows] KL of a row: mean over heads, then over layers
  double HeadKl(const Layer& layer, int64_t kv_head) const;
  void AddHeads(measures::AttentionErrors& errors) const;
  void AddErrors(measures::AttentionErrors& errors) const;

  std::string name_;
  const MeasuredRows& rows_;
  std::vector<Layer> layers_;
  // Sums of the current layer, on the device.
  std::vector<at::Tensor> kl_;  // [num_q_heads, rows] float32, in pieces
  at::Tensor sums_;             // [kNumSums, num_kv_heads] float64
  at::Tensor cache_sums_;       // [kNumCacheSums] float64
  at::Tensor distances_;        // [2, kDistanceBuckets + 1] float64: mass and KL, or undefined
};

}  // namespace oscar
