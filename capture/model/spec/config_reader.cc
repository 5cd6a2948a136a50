// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/spec/config_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "capture/checkpoint/weight_storage.h"
#include "capture/model/spec/config_fields.h"

namespace oscar {
namespace {

constexpr int64_t kLargestSize = int64_t{1} << 24;
constexpr int64_t kLargestPosition = int64_t{1} << 31;

// Prefixes of the text model, in text-only releases and in the wrappers of transformers 4 and 5.
constexpr std::string_view kPrefixes[] = {"model.", "model.language_model.",
                                          "language_model.model.", "model.text_model.",
                                          "thinker.model."};

}  // namespace

ConfigReader::ConfigReader(const Json& object, std::string what, const SpecOptions& options,
                           bool wrapped)
    : ObjectFields(object, std::move(what)),
      checkpoint_(options.checkpoint),
      unknown_config_(options.unknown_config),
      prefix_(kPrefixes[wrapped ? 1 : 0]) {
  if (checkpoint_ != nullptr) names_ = checkpoint_->names();
  for (const std::string_view prefix : kPrefixes) {
    if (!StoresPrefix(fmt::format("{}embed_tokens.", prefix))) continue;
    prefix_ = prefix;
    break;
  }
}

std::string ConfigReader::LayerPrefix(int64_t layer_id) const {
  return fmt::format("{}{}{}.", prefix_, layers_, layer_id);
}

std::string ConfigReader::HeadName() const {
  constexpr std::string_view kModel = ".model.";  // the head has the same parent module
  return (prefix_.ends_with(kModel) ? prefix_.substr(0, prefix_.size() - kModel.size() + 1) : "") +
         "lm_head.weight";
}

bool ConfigReader::Stores(std::string_view name) const {
  return checkpoint_ != nullptr && StoresWeight(*checkpoint_, std::string(name));
}

bool ConfigReader::StoresPrefix(std::string_view begin) const {
  const auto at = std::ranges::lower_bound(names_, begin, std::less<>());
  return at != names_.end() && at->starts_with(begin);
}

std::vector<int64_t> ConfigReader::StoredShape(const std::string& name) const {
  if (checkpoint_ == nullptr || !checkpoint_->Contains(name)) return {};
  return checkpoint_->info(name).shape;
}

void ConfigReader::Require(std::string_view key, const Json& value) {
  const Json* found = Find(key);
  if (found != nullptr && *found != value)
    Fail(key, fmt::format("is not implemented. Supported: {}", value.dump()));
}

void ConfigReader::SecondName(std::string_view key, std::string_view other) {
  const Json* value = Find(other);
  if (value == nullptr) return;
  if (Has(key)) Require(key, *value);
  Default(key, *value);
}

const Json* ConfigReader::Find(std::string_view key) {
  read_.emplace(key);
  if (const auto forced = overrides_.find(key); forced != overrides_.end())
    return forced->second.is_null() ? nullptr : &forced->second;
  const auto found = object_.find(key);
  if (found != object_.end()) return IsEmptyMember(*found) ? nullptr : &*found;
  const auto meant = defaults_.find(key);
  return meant == defaults_.end() || meant->second.is_null() ? nullptr : &meant->second;
}

int64_t ConfigReader::Size(std::string_view key) {
  const auto size = OptionalSize(key);
  if (!size) Fail(key, "is missing: an integer is needed");
  return *size;
}

std::optional<int64_t> ConfigReader::OptionalSize(std::string_view key) {
  const Json* value = Find(key);
  if (value == nullptr) return std::nullopt;
  return Integer(key, *value, 1, kLargestSize);
}

std::optional<int64_t> ConfigReader::OptionalCount(std::string_view key) {
  const Json* value = Find(key);
  if (value == nullptr) return std::nullopt;
  return Integer(key, *value, 0, kLargestSize);
}

int64_t ConfigReader::Positions(std::string_view key) {
  const Json* value = Find(key);
  if (value == nullptr) Fail(key, "is missing: an integer is needed");
  return Integer(key, *value, 1, kLargestPosition);
}

double ConfigReader::Positive(std::string_view key) {
  const auto number = OptionalPositive(key);
  if (!number) Fail(key, "is missing: a number is needed");
  return *number;
}

std::optional<double> ConfigReader::OptionalPositive(std::string_view key) {
  const Json* value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) Fail(key, "must be a number");
  const double number = value->get<double>();
  if (!std::isfinite(number) || number <= 0) Fail(key, "must be a finite number above 0");
  return number;
}

std::optional<double> ConfigReader::OptionalNumber(std::string_view key) {
  const Json* value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number() || !std::isfinite(value->get<double>()))
    Fail(key, "must be a finite number");
  return value->get<double>();
}

void ConfigReader::DefaultToReference(std::string_view model_type) {
  constexpr std::string_view kExpertCounts[] = {"num_experts", "num_local_experts",
                                                "n_routed_experts"};
  const auto is_count = [&](std::string_view key) {
    return std::ranges::find(kExpertCounts, key) != std::end(kExpertCounts);
  };
  const bool has_count = std::ranges::any_of(kExpertCounts, [&](auto key) { return Has(key); });
  const Json defaults = ReferenceDefaults(model_type);
  for (const auto& [key, value] : defaults.items()) {
    if (is_count(key) && has_count) continue;                     // one number under three names
    if (key == "rope_theta" && Has("rope_parameters")) continue;  // rope_parameters contains it
    if (key == "first_k_dense_replace" && Has("mlp_layer_types")) continue;
    Default(key, value);
  }
}

void ConfigReader::AddNotes(const FieldNotes& notes, const std::string& prefix) {
  for (const std::string& name : notes.unknown) notes_.unknown.push_back(prefix + name);
  for (const std::string& name : notes.unread) notes_.unread.push_back(prefix + name);
}

FieldNotes ConfigReader::Finish(std::string_view model_type,
                                bool (*also_irrelevant)(std::string_view)) const {
  FieldNotes notes = notes_;
  for (const auto& [key, value] : object_.items()) {
    if (IsEmptyMember(value) || read_.contains(key) || IsIrrelevantField(key)) continue;
    if (also_irrelevant != nullptr && also_irrelevant(key)) continue;
    if (IsUnreadByReference(model_type, key)) {
      notes.unread.push_back(key);
      continue;
    }
    if (const MathField* field = FindMathField(key)) {
      if (IsNeutral(*field, value)) continue;
      Fail(key, fmt::format("is not implemented: {}. Supported: {}", field->effect,
                            field->neutral_text));
    }
    const std::string why = WhyUnknownRefused(key, unknown_config_);
    if (!why.empty()) Fail(key, why + NearestField(key, read_));
    notes.unknown.push_back(key);
  }
  return notes;
}

}  // namespace oscar
