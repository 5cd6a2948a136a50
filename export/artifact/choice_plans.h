// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Collects the choices of an artifact while it is written: plans the choices of every consumer over
// all layers, stores equal ones once, and makes their records for manifest and report. Every layer
// is passed twice, first to be planned and then to be written, so plans hold no matrices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "calib/choose/layer_plan.h"
#include "calib/consumers.h"
#include "calib/job/layer_result.h"
#include "capture/files/strict_json.h"

namespace oscar {

struct SideTensor;  // a tensor in which a side is stored

class ChoicePlans {
 public:
  explicit ChoicePlans(const AutoOptions& headline) : headline_(headline) {}

  // Takes layers in order. Layers without a choice are skipped.
  void Add(const LayerResult& layer);
  bool empty() const { return plans_.empty(); }
  // A choice has the same index as in LayerResult; 0 is the headline's. The next functions return a
  // choice's options, its layers as searched (without matrices), and its layers after PlanLayers at
  // a price. Call them before Finish.
  size_t size() const { return plans_.size(); }
  const AutoOptions& options(size_t choice) const { return plans_.at(choice).options; }
  const std::vector<AutoChoice>& layers(size_t choice) const { return plans_.at(choice).layers; }
  std::vector<AutoChoice> PlannedAt(size_t choice, BitPrice price,
                                    std::vector<AutoChoice> layers) const;
  // Replaces the layers by the same layers with next-token prices, and sets the price by which bits
  // are shared out. `why`: report.json's serving.auto.bits_by.
  void SetPriced(size_t choice, std::vector<AutoChoice> layers, BitPrice price, Json why);
  // Call once after the last layer. Decides what layers share (calib/choose/layer_plan.h).
  void Finish();

  // Visits the tensors of layer `index` in file order: `visit(name, shape, values)`. `values` are
  // null if `layer` is.
  using Visit = std::function<void(std::string name, std::vector<int64_t> shape,
                                   const std::vector<double>* values)>;
  void ForEachTensor(size_t index, const LayerResult* layer, const Visit& visit) const;

  // Writes the headline's planned choice and arm into the report of a layer.
  void AddTo(size_t index, Json& layer_report) const;
  Json ServingChoice() const;  // report.json's serving.auto
  // Returns report.json's serving.runtimes: a row for each consumer, and a second one if folding
  // makes a difference: {runtime, fold_checkpoint, choice, kl, hadamard_kl, output_error}. Values
  // are means over layers on held-out rows that were not used to choose.
  Json Runtimes() const;
  // Returns report.json's serving.budgets: a row for each of the headline's budgets. Empty without
  // a list.
  Json Budgets() const;
  Json ManifestAuto() const;     // manifest.json's auto
  Json ManifestChoices() const;  // manifest.json's choices, by name

 private:
  using Shapes = std::vector<std::pair<const SideTensor*, std::vector<int64_t>>>;
  // A side of a choice in one layer: the choice under which it is stored, and its tensors' shapes.
  struct StoredAs {
    size_t choice = 0;
    Shapes shapes;  // without the clip ratio
  };
  struct Plan {
    std::string name;
    AutoOptions options;
    AutoPlan shared = {};
    std::vector<AutoChoice> layers = {};   // without their matrices
    std::vector<StoredAs> k = {}, v = {};  // one per layer
    size_t same_as = 0;                    // the first plan that equals this one in all layers
    std::vector<LayerElements> elements = {};
    Json bits_by = {};  // null if not measured
  };

  Json LayerRecord(const Plan& plan, size_t index) const;
  Json ManifestChoice(const Plan& plan) const;
  bool Same(const Plan& a, const Plan& b) const;

  AutoOptions headline_;
  bool latents_ = false;
  std::vector<int> layer_ids_;
  std::vector<Plan> plans_;                   // the headline's comes first
  std::vector<AutoChoice> searched_;          // the headline's layers before they were planned
  std::vector<std::vector<AutoArm>> points_;  // per layer of the headline
};

}  // namespace oscar
