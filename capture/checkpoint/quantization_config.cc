// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/checkpoint/quantization_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <system_error>
#include <utility>

#include "capture/checkpoint/formats/formats.h"
#include "capture/checkpoint/formats/quantization_fields.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

// Files of AutoGPTQ and AutoAWQ, from before config.json had quantization_config.
constexpr std::pair<const char*, const char*> kFilesBesideConfig[] = {
    {"quantize_config.json", "gptq"}, {"quant_config.json", "awq"}};

// Also true for a dangling link, so that reading it gives an error that names it.
bool IsThere(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(std::filesystem::symlink_status(path, ignored));
}

struct ConfigPlace {
  const Json* json = nullptr;
  std::string what;
};

// Finds the only quantization_config of a config, in any place that releases use.
ConfigPlace FindConfig(const Json& config, const std::string& what) {
  ConfigPlace found;
  const auto consider = [&](const Json& object, const char* key, const std::string& path) {
    const auto member = object.find(key);
    if (member == object.end() || IsEmptyMember(*member)) return;
    if (found.json != nullptr && *found.json != *member) {
      throw InputError(fmt::format("{} contradicts {}", path, found.what));
    }
    if (found.json == nullptr) found = {&*member, path};
  };
  if (!config.is_object()) return found;
  for (const char* key : {"quantization_config", "compression_config"}) {
    consider(config, key, fmt::format("{}: {}", what, key));
    const auto text = config.find("text_config");
    if (text != config.end() && text->is_object())
      consider(*text, key, fmt::format("{}: text_config.{}", what, key));
  }
  return found;
}

// ModelOpt's first versions omitted quant_method.
std::string_view MethodOfProducer(const Json& fields) {
  if (!fields.is_object()) return "";
  const auto producer = fields.find("producer");
  const bool named = producer != fields.end() && producer->is_object() &&
                     producer->value("name", Json()) == "modelopt";
  return named || fields.contains("quant_algo") ? "modelopt" : "";
}

const QuantizationMethod& FindMethod(const QuantizationFields& fields, const std::string& name) {
  const auto methods = QuantizationMethods();
  const auto method = std::ranges::find(methods, name, &QuantizationMethod::name);
  if (method == methods.end()) {
    fields.Fail("quant_method",
                fmt::format("is not implemented{}. Supported: {}",
                            name.empty() ? ": it is missing" : " as a weight format",
                            SupportedQuantization()));
  }
  return *method;
}

}  // namespace

std::string SupportedQuantization() {
  std::vector<std::string_view> names;
  for (const QuantizationMethod& method : QuantizationMethods()) names.push_back(method.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

QuantizationConfig QuantizationConfig::Read(const Json& config, std::string_view what,
                                            const Json* modelopt) {
  QuantizationConfig result;
  ConfigPlace place = FindConfig(config, std::string(what));
  std::optional<Json> converted;
  if (modelopt != nullptr) {
    converted = ConfigOfModelOptFile(*modelopt, "hf_quant_config.json");
    if (place.json == nullptr) {
      place = {&*converted, "hf_quant_config.json: quantization"};
    } else {
      CheckSameModelOpt(*place.json, place.what, *converted);
    }
  }
  if (place.json == nullptr) return result;
  QuantizationFields fields(*place.json, place.what);
  result.method_ = fields.String("quant_method", MethodOfProducer(*place.json));
  FindMethod(fields, result.method_).read(fields, result);
  for (const std::string& key : fields.Unread())
    result.AddUnknownField(fmt::format("quantization_config.{}", key));
  return result;
}

QuantizationConfig QuantizationConfig::ReadDirectory(const std::filesystem::path& directory) {
  const std::filesystem::path config = directory / "config.json",
                              modelopt = directory / "hf_quant_config.json";
  if (!IsThere(config)) return {};
  std::optional<Json> second;
  if (IsThere(modelopt)) second = ReadJsonFile(modelopt.string());
  QuantizationConfig result =
      Read(ReadConfigJson(config.string()), config.string(), second ? &*second : nullptr);
  for (const auto& [file, method] : kFilesBesideConfig) {
    const std::filesystem::path path = directory / file;
    if (!result.plain() || !IsThere(path)) continue;
    Json fields = ReadJsonFile(path.string());
    if (fields.is_object()) fields.emplace("quant_method", method);
    result = Read({{"quantization_config", fields}}, path.string());
  }
  return result;
}

const WeightScheme* QuantizationConfig::SchemeOf(std::string_view module) const {
  if (plain() || excluded_.Match(module)) return nullptr;
  const std::optional<size_t> scheme = targets_.Match(module);
  if (!scheme || schemes_[*scheme].format == WeightFormat::kPlain) return nullptr;
  return &schemes_[*scheme];
}

size_t QuantizationConfig::AddScheme(WeightScheme scheme) {
  schemes_.push_back(std::move(scheme));
  return schemes_.size() - 1;
}

}  // namespace oscar
