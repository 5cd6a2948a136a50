// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/artifact/choice_plans.h"

#include <algorithm>
#include <utility>

#include "calib/choose/choice_points.h"
#include "export/artifact/artifact_format.h"
#include "export/artifact/report.h"
#include "linalg/base/check.h"

namespace oscar {

struct SideTensor {
  const char* name;
  std::vector<double> CacheSide::*values;  // empty if not stored
  enum { kRotations, kHeadMatrices, kHeadVectors } shape;
};

namespace {

constexpr SideTensor kSideTensors[] = {
    {"rotation", &CacheSide::rotation, SideTensor::kRotations},
    {"query_rotation", &CacheSide::query_rotation, SideTensor::kRotations},
    {"pair_scale", &CacheSide::pair_scale, SideTensor::kHeadVectors},
    {"mean", &CacheSide::mean, SideTensor::kHeadVectors},
    {"feedback", &CacheSide::feedback, SideTensor::kHeadMatrices}};

// Returns one number, or a list with one for each KV head.
Json BitsOf(const SideOption& option) {
  const std::vector<int> bits = option.Bits();
  if (bits.size() == 1) return bits[0];
  return bits;
}

bool Folds(const AutoChoice& choice) {
  return choice.keys.kind == KeyTransformKind::kPairScaled && choice.keys.folded;
}

double MeanOf(const std::vector<AutoChoice>& layers, const auto& number) {
  double sum = 0;
  for (const AutoChoice& layer : layers) sum += number(layer);
  return sum / static_cast<double>(layers.size());
}

// Returns means over layers, measured on held-out rows that were not used to choose.
Json ErrorsOf(const std::vector<AutoChoice>& layers) {
  return {{"kl", MeanOf(layers, [](const AutoChoice& c) { return c.k_option().check; })},
          {"hadamard_kl", MeanOf(layers, [](const AutoChoice& c) { return c.k_hadamard; })},
          {"output_error", MeanOf(layers, [](const AutoChoice& c) { return c.v_option().check; })}};
}

}  // namespace

void ChoicePlans::Add(const LayerResult& layer) {
  if (!layer.automatic.made) return;
  std::vector<const AutoChoice*> choices = {&layer.automatic};
  for (const AutoChoice& other : layer.other_choices) choices.push_back(&other);
  if (plans_.empty()) {
    latents_ = layer.automatic.latent();
    plans_.push_back({.name = std::string(kHeadlineChoice), .options = headline_});
    const std::vector<AutoOptions> others = OtherChoices(headline_, latents_);
    for (size_t i = 0; i < layer.other_choices.size(); ++i) {
      plans_.push_back({.name = ChoiceName(others.at(i)), .options = others.at(i)});
    }
  }
  OSCAR_CHECK_EQ(plans_.size(), choices.size());
  const LayerMoments& m = layer.moments;
  layer_ids_.push_back(m.layer_id);
  points_.push_back(layer.auto_arms);
  std::vector<const CacheSide*> keys, values;
  for (const AutoChoice* choice : choices) {
    keys.push_back(&choice->k);
    values.push_back(&choice->v);
  }
  const auto stored = [&](const std::vector<const CacheSide*>& sides, size_t i) {
    const CacheSide& side = *sides[i];
    StoredAs as{FirstEqual(sides, i), {}};
    if (as.choice != i) return as;
    const std::vector<int64_t> shapes[] = {{side.num_rotations, side.dim, side.dim},
                                           {m.num_kv_heads, side.dim, side.dim},
                                           {m.num_kv_heads, side.dim}};
    for (const SideTensor& tensor : kSideTensors) {
      if (!(side.*tensor.values).empty()) as.shapes.emplace_back(&tensor, shapes[tensor.shape]);
    }
    return as;
  };
  for (size_t i = 0; i < plans_.size(); ++i) {
    plans_[i].k.push_back(stored(keys, i));
    plans_[i].v.push_back(stored(values, i));
    plans_[i].layers.push_back(*choices[i]);
    plans_[i].layers.back().k = plans_[i].layers.back().v = {};
    const GroupFormat group = choices[i]->Groups();
    plans_[i].elements.push_back(latents_
                                     ? LatentElementsOf(m.head_dim, choices[i]->position_dim, group)
                                     : ElementsOf(m.num_kv_heads, m.head_dim, m.v_head_dim, group));
  }
}

bool ChoicePlans::Same(const Plan& a, const Plan& b) const {
  for (size_t i = 0; i < layer_ids_.size(); ++i) {
    const AutoChoice &x = a.layers[i], &y = b.layers[i];
    if (x.quant_group_size != y.quant_group_size || x.fitted_scales != y.fitted_scales ||
        a.k[i].choice != b.k[i].choice || a.v[i].choice != b.v[i].choice ||
        x.k_option().clip != y.k_option().clip || x.v_option().clip != y.v_option().clip ||
        BitsOf(x.k_option()) != BitsOf(y.k_option()) ||
        BitsOf(x.v_option()) != BitsOf(y.v_option()))
      return false;
  }
  return true;
}

std::vector<AutoChoice> ChoicePlans::PlannedAt(size_t choice, BitPrice price,
                                               std::vector<AutoChoice> layers) const {
  AutoOptions options = plans_.at(choice).options;
  options.price = price;
  PlanLayers(options, plans_[choice].elements, layers);
  return layers;
}

void ChoicePlans::SetPriced(size_t choice, std::vector<AutoChoice> layers, BitPrice price,
                            Json why) {
  Plan& plan = plans_.at(choice);
  plan.layers = std::move(layers);
  plan.options.price = price;
  plan.bits_by = std::move(why);
}

void ChoicePlans::Finish() {
  if (plans_.empty()) return;
  searched_ = plans_.front().layers;
  for (size_t i = 0; i < plans_.size(); ++i) {
    Plan& plan = plans_[i];
    plan.shared = PlanLayers(plan.options, plan.elements, plan.layers);
    while (plan.same_as < i && !Same(plans_[plan.same_as], plan)) ++plan.same_as;
  }
}

void ChoicePlans::ForEachTensor(size_t index, const LayerResult* layer, const Visit& visit) const {
  for (size_t p = 0; p < plans_.size(); ++p) {
    const Plan& plan = plans_[p];
    if (plan.same_as != p) continue;
    const AutoChoice* choice = layer == nullptr ? nullptr
                               : p == 0         ? &layer->automatic
                                                : &layer->other_choices.at(p - 1);
    const auto side = [&](char name, const StoredAs& as, CacheSide AutoChoice::*of,
                          const SideOption& option) {
      const auto tensor = [&](const char* what, const std::vector<int64_t>& shape,
                              const std::vector<double>* values) {
        OSCAR_CHECK(IsArtifactTensor(&ArtifactTensor::of_choice, name, what));
        visit(ChoiceTensorName(layer_ids_[index], name, plan.name, what), shape, values);
      };
      for (const auto& [stored, shape] : as.shapes)
        tensor(stored->name, shape, choice == nullptr ? nullptr : &(choice->*of.*stored->values));
      tensor("clip_ratio", {std::ssize(option.clip)}, &option.clip);
    };
    side('k', plan.k[index], &AutoChoice::k, plan.layers[index].k_option());
    side('v', plan.v[index], &AutoChoice::v, plan.layers[index].v_option());
  }
}

// The search measured the arm "auto" with its own choice and with every choice that planning could
// select. This stores the measurements of the selected one.
void ChoicePlans::AddTo(size_t index, Json& layer_report) const {
  const AutoChoice& planned = plans_.front().layers[index];
  layer_report["auto"] = ChoiceToJson(planned);
  const ChoicePoint to = PointOf(headline_, planned);
  if (to == PointOf(headline_, searched_[index]) || !layer_report.at("arms").contains("auto"))
    return;
  const auto found = std::ranges::find(points_[index], to, &AutoArm::point);
  OSCAR_CHECK(found != points_[index].end());
  layer_report["arms"]["auto"] = ArmReport(found->arm);
}

Json ChoicePlans::ServingChoice() const {
  const Plan& headline = plans_.front();
  const AutoOptions& options = headline.options;
  const AutoPlan& plan = headline.shared;
  const std::vector<AutoChoice>& choices = headline.layers;
  Json windows = Json::array();
  for (size_t i = 0; i < plan.window_scores.size(); ++i) {
    const WindowPrice& window = choices.front().windows[i];
    int64_t rows = window.rows;
    for (const AutoChoice& choice : choices) rows = std::min(rows, choice.windows[i].rows);
    windows.push_back({{"sink_tokens", window.windows.sink},
                       {"recent_tokens", window.windows.recent},
                       {"bits_per_element", WindowBits(window.windows)},
                       {"rows_beyond", rows},
                       {"kl", plan.window_scores[i]}});
  }
  const auto any = [&](auto property) { return std::ranges::any_of(choices, property); };
  Json serving = {
      {"for", RulesOf(options.consumer).name},
      {"bits", options.bits},
      {"bits_spent", plan.bits},
      {"bits_stored", plan.stored_bits},
      {"sink_tokens", plan.windows.sink},
      {"recent_tokens", plan.windows.recent},
      {"windows", windows},
      {"windows_priced_at_tokens", kPriceTokens},
      {"fold_checkpoint", any(Folds)},
      {"query_rotation", any([](const AutoChoice& c) {
         return c.keys.kind == KeyTransformKind::kBalanced || !c.keys.folded;
       })},
      {"key_mean", any([](const AutoChoice& c) { return c.keys.centred; })},
      {"unstable_layers",
       std::ranges::count_if(choices, [](const AutoChoice& c) { return c.stability.unstable; })},
      {"hadamard_layers", std::ranges::count_if(choices, [](const AutoChoice& c) {
         return !c.k_fallback.empty() || !c.v_fallback.empty();
       })}};
  if (!headline.bits_by.is_null()) serving["bits_by"] = headline.bits_by;
  const ClipScope scope = RulesOf(options.consumer).clip;
  if (scope == ClipScope::kSide || scope == ClipScope::kModel) {
    serving["k_clip_ratio"] = choices.front().k_option().clip.at(0);
    serving["v_clip_ratio"] = choices.front().v_option().clip.at(0);
  }
  return serving;
}

Json ChoicePlans::Runtimes() const {
  Json rows = Json::array();
  const auto plan_for = [&](Consumer consumer, bool fold) -> const Plan* {
    const std::string name = ChoiceFor(headline_, latents_, consumer, fold);
    const auto found = std::ranges::find(plans_, name, &Plan::name);  // no plan is named ""
    return found == plans_.end() ? nullptr : &plans_[found->same_as];
  };
  for (const ConsumerRules& rules : AllConsumers()) {
    const Plan* plain = plan_for(rules.consumer, false);
    for (const bool fold : {false, true}) {
      const Plan* plan = plan_for(rules.consumer, fold);
      if (plan == nullptr || (fold && plan == plain)) continue;
      rows.push_back(ErrorsOf(plan->layers));
      rows.back().update({{"runtime", rules.name},
                          {"fold_checkpoint", std::ranges::any_of(plan->layers, Folds)},
                          {"choice", plan->name}});
      if (std::ranges::any_of(plan->layers, [](const auto& c) { return c.keys.feedback; }))
        rows.back()["error_feedback"] = true;
    }
  }
  return rows;
}

Json ChoicePlans::Budgets() const {
  Json rows = Json::array();
  AutoOptions at_budget{.consumer = Consumer::kAny, .fold = false, .budgets = headline_.budgets};
  for (const double bits : headline_.budgets) {
    at_budget.bits = bits;
    const auto found = std::ranges::find(plans_, ChoiceName(at_budget), &Plan::name);
    const Plan& plan = found == plans_.end() ? plans_.front() : *found;  // headline's bits
    rows.push_back(ErrorsOf(plan.layers));
    rows.back().update({{"bits", bits},
                        {"choice", plans_[plan.same_as].name},
                        {"bits_spent", plan.shared.bits},
                        {"bits_stored", plan.shared.stored_bits}});
    if (!plan.bits_by.is_null()) rows.back()["bits_by"] = plan.bits_by;
  }
  return rows;
}

Json ChoicePlans::LayerRecord(const Plan& plan, size_t index) const {
  const AutoChoice& choice = plan.layers[index];
  Json record = {
      {"layer_id", layer_ids_[index]},       {"keys", choice.keys.Name()},
      {"values", choice.values.Name()},      {"k_bits", BitsOf(choice.k_option())},
      {"v_bits", BitsOf(choice.v_option())}, {"quant_group_size", choice.quant_group_size}};
  if (choice.fitted_scales) record["fitted_scales"] = MetadataTypeName(*choice.fitted_scales);
  for (const auto& [key, as] :
       {std::pair("k_of", &plan.k[index]), std::pair("v_of", &plan.v[index])}) {
    if (const std::string& name = plans_[as->choice].name; name != plan.name) record[key] = name;
  }
  return record;
}

Json ChoicePlans::ManifestChoice(const Plan& plan) const {
  Json choice = {{"for", RulesOf(plan.options.consumer).name},
                 {"fold_checkpoint", std::ranges::any_of(plan.layers, Folds)},
                 {"layers", Json::array()}};
  for (size_t i = 0; i < layer_ids_.size(); ++i) choice["layers"].push_back(LayerRecord(plan, i));
  return choice;
}

Json ChoicePlans::ManifestAuto() const { return ManifestChoice(plans_.front()); }

Json ChoicePlans::ManifestChoices() const {
  Json choices = Json::object();
  for (size_t p = 1; p < plans_.size(); ++p) {
    if (plans_[p].same_as == p) choices[plans_[p].name] = ManifestChoice(plans_[p]);
  }
  return choices;
}

}  // namespace oscar
