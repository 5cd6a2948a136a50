// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/artifact/merged_choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "calib/choose/recipe_fit.h"
#include "capture/files/quote.h"
#include "export/artifact/artifact_format.h"
#include "export/artifact/layer_record.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

AutoOptions OptionsOf(const Json& calibration) {
  const Json& chosen = JsonMember(calibration, "auto", kManifestFile);
  AutoOptions options;
  options.enabled = true;
  const std::string name = JsonString(chosen, "for", kManifestFile);
  const auto& all = AllConsumers();
  const auto rules = std::ranges::find(all, name, &ConsumerRules::name);
  if (rules == all.end())
    throw InputError(fmt::format("{}: there is no runtime called {}", kManifestFile, Quoted(name)));
  options.consumer = rules->consumer;
  options.fold = JsonBool(chosen, "fold", false, kManifestFile);
  options.bits = JsonDouble(chosen, "bits", kManifestFile);
  options.context = JsonInt(chosen, "context", kManifestFile);
  options.windows = JsonString(chosen, "windows", kManifestFile) != "given";
  if (chosen.contains("budgets")) options.budgets = chosen.at("budgets").get<std::vector<double>>();
  return options;
}

// Returns a runtime's first row, or with `fold` its last. If it has two rows, the second is for the
// folded checkpoint.
const Json& RowOf(const Json& serving, std::string_view runtime, bool fold) {
  const Json* found = nullptr;
  for (const Json& row : JsonMember(serving, "runtimes", kManifestFile)) {
    if (JsonString(row, "runtime", kManifestFile) != runtime) continue;
    if (found == nullptr || fold) found = &row;
  }
  if (found == nullptr)
    throw InputError(fmt::format("{}: contains no choice for {}", kManifestFile, runtime));
  return *found;
}

// Finds the row of the choice that was made for the runtime `any` at a bit budget.
const Json& BudgetRow(const Json& serving, double bits) {
  for (const Json& row : JsonMember(serving, "budgets", kManifestFile))
    if (JsonDouble(row, "bits", kManifestFile) == bits) return row;
  throw InputError(fmt::format("{}: contains no choice at {:g} bits", kManifestFile, bits));
}

// Makes an option without alternatives, so that planning keeps it.
SideOption Only(const AffineQuantizer& codes, double check) {
  const std::vector<int>& bits = codes.bits;
  return {.bits = std::accumulate(bits.begin(), bits.end(), 0.0) / static_cast<double>(bits.size()),
          .clip = codes.clip,
          .score = check,
          .check = check,
          .head_bits = bits.size() == 1 ? std::vector<int>() : bits,
          .ratios = {codes.clip.at(0)},
          .curve = {check},
          .in_windows = {check}};
}

bool NeedsRope(const AutoChoice& choice) {
  return !choice.latent() &&
         (choice.keys.kind == KeyTransformKind::kPairScaled || choice.context > choice.text_length);
}

bool LosesTarget(const AutoChoice& choice, const LayerMoments& moments) {
  return choice.values.target == ValueTarget::kDiagonal && moments.diagonal.empty();
}

}  // namespace

MergedChoices::MergedChoices(const Artifact& from) {
  const Json report = from.report();
  const Json& serving = JsonMember(from.manifest(), "serving", kManifestFile);
  options_ = OptionsOf(JsonMember(from.manifest(), "calibration", kManifestFile));
  for (const int layer_id : from.layer_ids()) {
    const Json& layer =
        LayerRecordOf(JsonMember(report, "layers", kReportFile), layer_id, kReportFile);
    layers_.push_back({layer_id,
                       {ChoiceFromJson(JsonMember(layer, "auto", kReportFile),
                                       fmt::format("{}: layer {}", kReportFile, layer_id))}});
  }
  const bool latents = layers_.at(0).choices.at(0).latent();
  for (const AutoOptions& other : OtherChoices(options_, latents)) {
    const ConsumerRules& rules = RulesOf(other.consumer);
    const Json& row = other.budgets.empty() ? RowOf(serving, rules.name, other.fold)
                                            : BudgetRow(serving, other.bits);
    const std::string name = JsonString(row, "choice", kManifestFile);
    for (OfLayer& layer : layers_) {
      if (name == kHeadlineChoice) {
        layer.choices.push_back(layer.choices.front());
        continue;
      }
      const Json& record = LayerRecordOf(JsonMember(from.Choice(name), "layers", kManifestFile),
                                         layer.layer_id, kManifestFile);
      const StoredChoice stored = from.ReadChoice(layer.layer_id, name);
      AutoChoice choice = layer.choices.front();
      choice.keys = KeyRecipe::FromName(JsonString(record, "keys", kManifestFile));
      choice.values = ValueRecipe::FromName(JsonString(record, "values", kManifestFile));
      choice.quant_group_size = stored.k_codes.quant_group_size;
      choice.fitted_scales = FittedScalesOf(stored.k_codes);
      choice.windows.resize(1);
      choice.k_options = {Only(stored.k_codes, JsonDouble(row, "kl", kManifestFile))};
      choice.v_options = {Only(stored.v_codes, JsonDouble(row, "output_error", kManifestFile))};
      choice.k_bits = choice.k_options[0].bits;
      choice.v_bits = choice.v_options[0].bits;
      choice.k_hadamard = JsonDouble(row, "hadamard_kl", kManifestFile);
      choice.stability = {};
      choice.scores = {};
      choice.refined = false;
      layer.choices.push_back(std::move(choice));
    }
  }
}

const MergedChoices::OfLayer& MergedChoices::Layer(int layer_id) const {
  const auto found = std::ranges::find(layers_, layer_id, &OfLayer::layer_id);
  if (found == layers_.end())
    throw InputError(fmt::format("there is no choice for layer {}", layer_id));
  return *found;
}

std::vector<std::string> MergedChoices::NotMadeAgain(const LayerMoments& moments) const {
  const std::vector<AutoChoice>& choices = Layer(moments.layer_id).choices;
  if (!moments.rope && std::ranges::any_of(choices, NeedsRope)) {
    throw InputError(fmt::format("layer {}: these moments were written by an older version and "
                                 "lack the rotary embedding, which the automatic choices need",
                                 moments.layer_id),
                     Remedy::kWithoutChoice);
  }
  std::vector<std::string> said;
  const auto say = [&](const char* what) {
    said.push_back(fmt::format("layer {}: {}", moments.layer_id, what));
  };
  if (choices.front().refined)
    say("rotations are not refined again, because that needs rows of the model");
  if (std::ranges::any_of(choices, [&](const auto& c) { return LosesTarget(c, moments); })) {
    say("values are fitted to attention_output instead of the diagonal target, whose weights "
        "belong to one run's own tokens");
  }
  return said;
}

void MergedChoices::Fit(LayerResult& layer) const {
  std::vector<AutoChoice> choices = Layer(layer.moments.layer_id).choices;
  for (AutoChoice& choice : choices) {
    choice.refined = false;
    if (LosesTarget(choice, layer.moments)) choice.values.target = ValueTarget::kAttentionOutput;
  }
  FitChoices(layer.moments, choices);
  layer.automatic = std::move(choices.front());
  layer.other_choices = {std::make_move_iterator(choices.begin() + 1),
                         std::make_move_iterator(choices.end())};
}

}  // namespace oscar
