// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The quantization_config of a config.json (or of hf_quant_config.json, which ModelOpt writes, or
// of the files that AutoGPTQ and AutoAWQ once wrote): the storage scheme of every module's weight.
// formats/ has a reader for each method.
//
// Producers name excluded modules in different ways (exact names, suffixes, globs, parts of names),
// and some omit routers silently. So the stored type decides whether a weight is plain, that is,
// not quantized (weight_storage.h). This class only decides how a quantized weight is read.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "capture/checkpoint/module_rules.h"
#include "capture/checkpoint/weight_scheme.h"
#include "capture/files/strict_json.h"

namespace oscar {

class QuantizationConfig {
 public:
  // `config`: the whole config.json; the result is plain if it has no quantization_config.
  // `modelopt`: hf_quant_config.json, or null. Throws InputError naming `what`, the field, and
  // supported values.
  static QuantizationConfig Read(const Json& config, std::string_view what = "config.json",
                                 const Json* modelopt = nullptr);
  // Reads a model directory; plain if it has no config.json.
  static QuantizationConfig ReadDirectory(const std::filesystem::path& directory);

  bool plain() const { return method_.empty(); }
  const std::string& method() const { return method_; }  // "gptq"; "" if plain
  // Returns the scheme of a module ("model.layers.0.mlp.up_proj"), or nullptr if it is plain or
  // excluded.
  const WeightScheme* SchemeOf(std::string_view module) const;
  const std::vector<WeightScheme>& schemes() const { return schemes_; }
  // Names of unknown fields: "quantization_config.foo".
  const std::vector<std::string>& unknown_fields() const { return unknown_fields_; }

  // Used by the readers in formats/.
  size_t AddScheme(WeightScheme scheme);         // returns the scheme's number
  ModuleRules& targets() { return targets_; }    // values are numbers of schemes
  ModuleRules& excluded() { return excluded_; }  // values are unused
  void AddUnknownField(std::string field) { unknown_fields_.push_back(std::move(field)); }

 private:
  std::string method_;
  std::vector<WeightScheme> schemes_;
  ModuleRules targets_, excluded_;
  std::vector<std::string> unknown_fields_;
};

// Returns the supported methods: "awq, compressed-tensors, ...".
std::string SupportedQuantization();

}  // namespace oscar
