// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Collects an artifact's automatic choices while it is written. Plans each choice over all layers,
// stores equal choices once, and makes their records for manifest and report. Layers are passed
// twice, first to plan them and then to write them, so that plans hold no matrices.
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

  // Adds the next layer. A layer without a choice is skipped.
  void Add(const LayerResult& layer);
  bool empty() const { return plans_.empty(); }
  // Choices are indexed as in LayerResult; 0 is the headline choice, the one that is validated. The
  // next functions may be called until Finish. They return a choice's options, its layers as the
  // search left them (without matrices), and given layers after bits are allocated by `price`.
  size_t size() const { return plans_.size(); }
  const AutoOptions& options(size_t choice) const { return plans_.at(choice).options; }
  const std::vector<AutoChoice>& layers(size_t choice) const { return plans_.at(choice).layers; }
  std::vector<AutoChoice> PlannedAt(size_t choice, BitPrice price,
                                    std::vector<AutoChoice> layers) const;
  // Replaces the choice's layers with copies that also hold next-token KLs
  // (SideOption::next_token_kl), and sets the BitPrice by which bits are allocated. `why` becomes
  // the `bits_by` of this choice in report.json.
  void SetPriced(size_t choice, std::vector<AutoChoice> layers, BitPrice price, Json why);
  // Call once after the last layer. Makes the decisions that span layers
  // (calib/choose/layer_plan.h).
  void Finish();

  // Calls visit(name, shape, values) for the tensors of layer `index` in file order. `values` are
  // null if `layer` is.
  using Visit = std::function<void(std::string name, std::vector<int64_t> shape,
                                   const std::vector<double>* values)>;
  void ForEachTensor(size_t index, const LayerResult* layer, const Visit& visit) const;

  // Writes the headline's choice, as planned, and its measurements into a layer's report.
  void AddTo(size_t index, Json& layer_report) const;
  Json ServingChoice() const;  // report.json's serving.auto
  // Returns report.json's serving.runtimes, a list of {runtime, fold_checkpoint, choice, kl,
  // hadamard_kl, output_error}. Each runtime with a choice has a row, and a second one if folding
  // changes the choice. The numbers are means over layers, on held-out rows not used to choose.
  Json Runtimes() const;
  // Returns report.json's serving.budgets: a row for each bit budget if --bits was a list, else
  // empty.
  Json Budgets() const;
  Json ManifestAuto() const;     // manifest.json's auto
  Json ManifestChoices() const;  // manifest.json's choices, by name

 private:
  using Shapes = std::vector<std::pair<const SideTensor*, std::vector<int64_t>>>;
  // A side of a choice in one layer. Equal sides are stored once, under the first choice that has
  // them.
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
  std::vector<std::vector<AutoArm>> points_;  // per layer: measured arms of the headline
};

}  // namespace oscar
