// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// quantization_config of a config.json (or of hf_quant_config.json, which ModelOpt writes, or of
// the files AutoGPTQ and AutoAWQ once wrote): for every module the scheme its weight is stored in.
// Readers of the methods: formats/. Producers differ in how they name what they leave out
// (exact names, suffixes, globs, parts of names), and some leave out routers without a word. So the
// stored types decide whether a weight is plain (weight_storage.h); this decides how a quantized
// one is read.
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
  // `config`: the whole config.json; without quantization_config the result is plain. InputError
  // naming `what`, the field, and what is supported. `modelopt`: hf_quant_config.json, or null.
  static QuantizationConfig Read(const Json& config, std::string_view what = "config.json",
                                 const Json* modelopt = nullptr);
  // Of a model directory; plain where it has no config.json.
  static QuantizationConfig ReadDirectory(const std::filesystem::path& directory);

  bool plain() const { return method_.empty(); }
  const std::string& method() const { return method_; }  // "gptq"; "" if plain
  // Of "model.layers.0.mlp.up_proj"; nullptr: plain, or excluded.
  const WeightScheme* SchemeOf(std::string_view module) const;
  const std::vector<WeightScheme>& schemes() const { return schemes_; }
  // Fields that no table knows: "quantization_config.foo".
  const std::vector<std::string>& unknown_fields() const { return unknown_fields_; }

  // For the readers of formats/.
  size_t AddScheme(WeightScheme scheme);         // its number
  ModuleRules& targets() { return targets_; }    // number of a scheme
  ModuleRules& excluded() { return excluded_; }  // any number
  void AddUnknownField(std::string field) { unknown_fields_.push_back(std::move(field)); }

 private:
  std::string method_;
  std::vector<WeightScheme> schemes_;
  ModuleRules targets_, excluded_;
  std::vector<std::string> unknown_fields_;
};

// "awq, compressed-tensors, ...": the methods that are read.
std::string SupportedQuantization();

}  // namespace oscar
