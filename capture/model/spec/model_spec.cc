// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/spec/model_spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "capture/checkpoint/model_config.h"
#include "capture/checkpoint/stored_values.h"
#include "capture/checkpoint/weight_files.h"
#include "capture/model/families/families.h"
#include "capture/model/spec/config_reader.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

const Family& FindFamily(const ConfigReader& config, std::string_view model_type) {
  const auto families = Families();
  const auto family = std::ranges::find(families, model_type, &Family::model_type);
  if (family == families.end()) {
    const auto refusals = Refusals();
    const auto known = std::ranges::find(refusals, model_type, &Refusal::model_type);
    config.Fail(
        "model_type",
        fmt::format("is not implemented{}. Supported: {}",
                    known == refusals.end() ? std::string() : fmt::format(": {}", known->reason),
                    fmt::join(SupportedModelTypes(), ", ")));
  }
  return *family;
}

// Releases and transformers differ in the case of names (PhiMoEForCausalLM, PhimoeForCausalLM).
std::string LowerCase(std::string_view name) {
  std::string result(name);
  std::ranges::transform(result, result.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return result;
}

void CheckArchitecture(ConfigReader& config, std::string_view supported,
                       std::string_view written_as = {}) {
  const Json* names = config.Find("architectures");
  if (names == nullptr) return;
  const auto fits = [&](const std::string& name) {
    return name == LowerCase(supported) || name == LowerCase(written_as);
  };
  if (!names->is_array() || names->size() != 1 || !names->front().is_string() ||
      !fits(LowerCase(names->front().get<std::string>()))) {
    config.Fail("architectures", fmt::format("is not implemented. Supported: [\"{}\"]", supported));
  }
}

// Releases may include their own code, which transformers has since adopted. That is accepted if
// the classes in auto_map belong to the same model.
void CheckAutoMap(ConfigReader& config, std::string_view architecture) {
  const Json* map = config.Find("auto_map");
  if (map == nullptr) return;
  const std::string_view stem = architecture.substr(0, architecture.find("For"));
  const auto fits = [&](const Json& value) {
    if (!value.is_string()) return false;
    const std::string name = value.get<std::string>();
    return LowerCase(name.substr(name.rfind('.') + 1)).starts_with(LowerCase(stem));
  };
  if (!map->is_object()) config.Fail("auto_map", "must be an object");
  for (const auto& [key, value] : map->items()) {
    if (key.starts_with("AutoModel") && !fits(value)) {
      config.Fail(
          "auto_map",
          fmt::format(
              "is not implemented: the model runs its own Python code. Supported: classes of {}",
              stem));
    }
  }
}

// Only stored tensors decide how weights are read; the config's dtype is kept for reference.
std::string ReadConfigDType(ConfigReader& config) {
  const std::string old_spelling = config.String("torch_dtype", "");
  const std::string dtype = config.String("dtype", old_spelling);
  if (!old_spelling.empty() && old_spelling != dtype)
    config.Fail("torch_dtype", "contradicts dtype");
  if (!dtype.empty() && dtype != "bfloat16" && dtype != "float16" && dtype != "float32") {
    config.Fail(config.Has("dtype") ? "dtype" : "torch_dtype",
                "is not implemented. Supported: bfloat16, float16, float32");
  }
  return dtype;
}

// The wrapper's dtype applies if its text part has none or null.
void TakeDType(ConfigReader& outer, ConfigReader& part) {
  const std::string dtype = ReadConfigDType(outer);
  if (!dtype.empty() && part.Find("dtype") == nullptr && part.Find("torch_dtype") == nullptr)
    part.Override("dtype", dtype);
}

void MarkQuantizationRead(ConfigReader& config) {
  for (const char* key : {"quantization_config", "compression_config"}) (void)config.Find(key);
}

// Checks whether weights can be read, and notes unknown fields that `options` accept. How weights
// are stored is determined by the checkpoint, not here.
void CheckQuantization(const Json& json, ConfigReader& config, const SpecOptions& options) {
  MarkQuantizationRead(config);
  std::vector<std::string> unknown = QuantizationConfig::Read(json, config.what()).unknown_fields();
  if (unknown.empty() && options.checkpoint != nullptr)  // from a separate file
    unknown = options.checkpoint->quantization().unknown_fields();
  for (const std::string& field : unknown) {
    const std::string why = WhyUnknownRefused(field, options.unknown_config);
    if (!why.empty()) throw InputError(fmt::format("{}: {} {}", config.what(), field, why));
  }
  config.AddNotes({.unknown = unknown}, "");
}

std::string DescribeRopes(const ModelSpec& spec) {
  std::vector<std::string> distinct;
  for (const LayerSpec* layer : AllLayers(spec)) {
    if (layer->delta_net) continue;
    std::string text = DescribeRope(layer->attention.rope);
    if (std::ranges::find(distinct, text) == distinct.end()) distinct.push_back(std::move(text));
  }
  return fmt::format("{}", fmt::join(distinct, "; "));
}

// Families list all layers, but observers and artifacts only use layers with a cache.
void SplitLayers(const ConfigReader& config, ModelSpec& spec) {
  std::vector<LayerSpec> all = std::exchange(spec.layers, {});
  for (LayerSpec& layer : all)
    (layer.has_cache() ? spec.layers : spec.uncached).push_back(std::move(layer));
  if (spec.layers.empty())
    config.Fail("num_hidden_layers",
                "leaves no layer with a KV cache, so there is nothing to rotate");
}

// Reads the few sink values that every softmax needs. CheckTensors reports errors in the tensor.
void ReadSinks(const Checkpoint& checkpoint, AttentionSpec& attention) {
  if (attention.sinks.empty() || !checkpoint.Contains(attention.sinks)) return;
  const TensorView view = checkpoint.tensor(attention.sinks);
  const size_t bytes = view.dtype == DType::kF32 ? 4 : 2;
  const bool plain =
      view.dtype == DType::kF32 || view.dtype == DType::kF16 || view.dtype == DType::kBF16;
  if (!plain || view.data.size() != static_cast<size_t>(attention.num_q_heads) * bytes) return;
  for (size_t i = 0; i < view.data.size(); i += bytes)
    attention.sink_logits.push_back(LoadFloat(view.dtype, view.data.data() + i));
}

// Limits the number of tensor names, which the config multiplies by the numbers of experts and
// heads. The largest released models have 70,000 names; a malicious file could ask for billions.
void CheckTensorCount(const ConfigReader& config, const ModelSpec& spec) {
  constexpr int64_t kMostTensors = 200'000;
  int64_t of_experts = 0, of_heads = 0;
  for (const LayerSpec& layer : spec.layers) {
    if (layer.experts && !layer.experts->fused) of_experts += 3 * layer.experts->num_experts;
    for (const NormSpec* norm : {&layer.attention.q_norm, &layer.attention.k_norm})
      of_heads += norm->stored_by_head() ? norm->heads : 0;
  }
  if (of_experts + of_heads <= kMostTensors) return;
  config.Fail("num_hidden_layers",
              fmt::format("needs {} tensors for all {}, expected at most {}", of_experts + of_heads,
                          of_experts > of_heads ? "experts" : "heads", kMostTensors));
}

ModelSpec ReadText(const Family& family, ConfigReader& config, const SpecOptions& options,
                   bool (*also_irrelevant)(std::string_view) = nullptr) {
  ModelSpec spec = family.read(config);
  CheckTensorCount(config, spec);
  SplitLayers(config, spec);
  if (options.checkpoint != nullptr) {
    for (LayerSpec& layer : spec.layers) ReadSinks(*options.checkpoint, layer.attention);
  }
  spec.model_type = family.model_type;
  spec.rope_description = DescribeRopes(spec);
  spec.config_dtype = ReadConfigDType(config);
  spec.fields = config.Finish(family.model_type, also_irrelevant);
  return spec;
}

ModelSpec ReadWrapped(const Wrapper& wrapper, const Json& json, ConfigReader& outer,
                      const SpecOptions& options);

// Reads a speech model, whose config contains a multimodal wrapper as a member (the thinker).
ModelSpec ReadMember(const Wrapper& wrapper, ConfigReader& outer, const SpecOptions& options) {
  const Json* part = outer.Find(wrapper.member);
  if (part == nullptr || !part->is_object()) outer.Fail(wrapper.member, "must be an object");
  ConfigReader inner(*part, fmt::format("{}: {}", outer.what(), wrapper.member), options);
  (void)inner.Find("architectures");
  (void)inner.Find("model_type");
  TakeDType(outer, inner);
  Wrapper without = wrapper;
  without.member = {};
  ModelSpec spec = ReadWrapped(without, *part, inner, options);
  outer.AddNotes(spec.fields, fmt::format("{}.", wrapper.member));
  spec.fields = outer.Finish(wrapper.model_type, IsOtherModalityField);
  return spec;
}

// Reads the text part of a multimodal model. The wrapper's settings for the head and the dtype
// apply if the text part has none.
ModelSpec ReadWrapped(const Wrapper& wrapper, const Json& json, ConfigReader& outer,
                      const SpecOptions& options) {
  if (!wrapper.member.empty()) return ReadMember(wrapper, outer, options);
  const Json* text = outer.Find("text_config");
  if (text == nullptr || !text->is_object()) outer.Fail("text_config", "must be an object");
  ConfigReader config(*text, outer.what() + ": text_config", options, /*wrapped=*/true);
  if (const Json* tied = outer.Find("tie_word_embeddings"))
    config.Default("tie_word_embeddings", *tied);
  TakeDType(outer, config);
  // If both configs have tie_word_embeddings, the stored tensors show which one the release means.
  const std::string stored_head = config.HeadName();
  if (config.knows_names() && outer.Has("tie_word_embeddings") &&
      config.Has("tie_word_embeddings")) {
    config.Override("tie_word_embeddings", !config.Stores(stored_head));
  }
  MarkQuantizationRead(config);
  const std::string model_type = config.String("model_type", wrapper.text_model_type);
  config.DefaultToReference(model_type);
  (void)config.Find("architectures");  // stored in the text part alone; never used
  if (wrapper.first_position > 0) (void)config.Find("use_bidirectional_attention");
  ModelSpec spec = ReadText(FindFamily(config, model_type), config, options, IsOtherModalityField);
  spec.model_type = wrapper.model_type;
  for (LayerSpec& layer : spec.layers) layer.attention.rope.first_position = wrapper.first_position;
  for (const std::string_view begin : OtherModalityTensors())
    spec.skipped_prefixes.emplace_back(begin);
  // PaliGemma's outer hidden_size and vocab_size repeat the text part's values, perhaps without
  // padding.
  if (wrapper.first_position > 0) {
    for (const char* key : {"hidden_size", "vocab_size"}) (void)outer.Find(key);
  }
  (void)outer.Find("scale_factor");
  for (const auto& [key, value] : text->items()) {  // copies of values in the text part
    const auto copy = json.find(key);
    if (copy != json.end() && *copy == value) (void)outer.Find(key);
  }
  outer.AddNotes(spec.fields, "text_config.");
  spec.fields = outer.Finish(wrapper.model_type, IsOtherModalityField);
  return spec;
}

}  // namespace

ModelSpec ReadModelSpec(const Json& json, const SpecOptions& options, std::string_view what) {
  ConfigReader config(json, std::string(what), options);
  CheckQuantization(json, config, options);
  const std::string model_type = config.String("model_type");
  const auto wrappers = Wrappers();
  const auto wrapper = std::ranges::find(wrappers, model_type, &Wrapper::model_type);
  if (wrapper != wrappers.end() && (config.Has("text_config") || !wrapper->member.empty())) {
    CheckArchitecture(config, wrapper->architecture, wrapper->written_as);
    CheckAutoMap(config, wrapper->architecture);
    return ReadWrapped(*wrapper, json, config, options);
  }
  const Family& family = FindFamily(config, model_type);
  CheckArchitecture(config, family.architecture, family.written_as);
  CheckAutoMap(config, family.architecture);
  return ReadText(family, config, options);
}

ModelSpec ReadModelSpec(const std::filesystem::path& model_directory, const SpecOptions& options) {
  const std::string path = ModelConfigName(model_directory);
  const Json json = ReadModelConfig(model_directory);
  if (options.checkpoint != nullptr || !HasWeightFiles(model_directory))
    return ReadModelSpec(json, options, path);
  const Checkpoint checkpoint = Checkpoint::Open(model_directory);
  SpecOptions with_names = options;
  with_names.checkpoint = &checkpoint;
  return ReadModelSpec(json, with_names, path);
}

std::vector<std::string> SupportedModelTypes() {
  std::vector<std::string> names;
  for (const Family& family : Families()) names.emplace_back(family.model_type);
  for (const Wrapper& wrapper : Wrappers()) names.emplace_back(wrapper.model_type);
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace oscar
