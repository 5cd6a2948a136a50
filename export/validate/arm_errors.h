// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The effect of one arm on attention, collected over layers and returned as the METRICS object of
// report.json (export/report/schema.md). Results are read from the device only once per layer, so
// rows must come in the announced order.
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
  bool headline = false;  // whether it counts in the headline numbers: see FirstHeadlineRow
};

struct MeasuredRows {
  std::vector<MeasuredRow> rows;  // sequence after sequence, with ascending positions
  CacheWindows windows;           // sorts rows into inside and beyond, for every arm
  int64_t resamples = 1000;       // for the bootstrap
  uint64_t seed = 0;
};

// |x|^2 of a whole sequence's keys and values, [] float64. It is the same for all arms.
struct CacheEnergy {
  CacheEnergy(const at::Tensor& keys, const at::Tensor& values);

  at::Tensor k, v;
};

class ArmErrors {
 public:
  // `name` is for messages. Keeps a reference to `rows`.
  ArmErrors(std::string name, const MeasuredRows& rows) : name_(std::move(name)), rows_(rows) {}

  void BeginLayer(const LayerSpec& layer);
  // Adds the next rows. `headline` [rows] is 1 if a row counts; it has the measuring type.
  void AddRows(const RowErrors& errors, const ReferenceRows& reference, const at::Tensor& headline);
  // Adds KL by distance of the same rows. Called for all rows of an arm or for none.
  void AddDistances(const DistanceErrors& errors, const at::Tensor& headline);
  // Adds the raw error of a whole sequence: k, v of the reference, whose energy is given, and what
  // the arm's cache returns, [tokens, num_kv_heads, dim] each.
  void AddCache(const CacheEnergy& energy, const at::Tensor& k, const at::Tensor& k_stored,
                const at::Tensor& v, const at::Tensor& v_stored);
  void EndLayer();  // synchronizes once per layer; NumericalError for values that are not finite

  Json Metrics() const;  // measures::AttentionErrors and kPieces (piece_sums.h)
  // Returns the headline rows' attention and KL by distance, as means over heads and layers like
  // `kl`'s mean. Returns nothing if a layer has none.
  std::optional<measures::ByDistance> ByDistance() const;

  // Packed() returns a layer's results as numbers. A resumed validation adds the next layer from
  // them with AddPacked(), which throws InputError for another number of rows.
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

  std::vector<double> RowMeans() const;  // [rows] KL of each row: mean over heads, then layers
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
