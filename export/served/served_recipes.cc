// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What configuration files say of the cache, and which JSON files hold scales. ModelOpt's schema of
// layers: modelopt/torch/export/convert_hf_config.py; compressed-tensors' kv_cache_scheme.
#include <fmt/format.h>

#include "export/served/served_directory.h"

namespace oscar {
namespace {

const Json& MemberOrNull(const Json& object, const char* key) {
  static const Json null;
  if (!object.is_object()) return null;
  const auto found = object.find(key);
  return found == object.end() ? null : *found;
}

CacheRecipe RecipeOf(const Json& quantization, std::string file, std::string method) {
  return {.file = std::move(file),
          .method = std::move(method),
          .scheme = MemberOrNull(quantization, "kv_cache_scheme"),
          .algorithm = MemberOrNull(quantization, "kv_cache_quant_algo"),
          .layers = MemberOrNull(quantization, "kv_cache_quantized_layers"),
          .schema = MemberOrNull(quantization, "kv_cache_schema_version")};
}

}  // namespace

std::string CacheRecipe::Algorithm() const {
  if (algorithm.is_string()) return algorithm.get<std::string>();
  if (!scheme.is_object()) return {};
  const Json &bits = MemberOrNull(scheme, "num_bits"), &type = MemberOrNull(scheme, "type");
  if (!bits.is_number_integer() || !type.is_string()) return "unknown";
  const std::string name = type == "float" ? (bits == 4 ? "NVFP" : "FP")
                           : type == "int" ? "INT"
                                           : "unknown ";
  return fmt::format("{}{}", name, bits.get<int64_t>());
}

void ReadServedRecipes(const Json& config, const Json& modelopt, ServedDirectory& served) {
  const Json& own = MemberOrNull(config, "quantization_config");
  const Json& text = MemberOrNull(MemberOrNull(config, "text_config"), "quantization_config");
  if (const Json& quantization = own.is_object() ? own : text; quantization.is_object()) {
    const Json& method = MemberOrNull(quantization, "quant_method");
    served.recipes.push_back(
        RecipeOf(quantization, "config.json", method.is_string() ? method.get<std::string>() : ""));
  }
  if (const Json& quantization = MemberOrNull(modelopt, "quantization"); quantization.is_object())
    served.recipes.push_back(RecipeOf(quantization, "hf_quant_config.json", "modelopt"));
}

std::optional<ScaleFileKind> ScaleFileKindOf(const Json& content) {
  if (MemberOrNull(content, "kv_cache").is_object() &&
      !MemberOrNull(MemberOrNull(content, "kv_cache"), "scaling_factor").is_null())
    return ScaleFileKind::kSglang;
  if (const Json& format = MemberOrNull(content, "format");
      format.is_string() && format.get_ref<const std::string&>().starts_with("nvfp4_ds_mla"))
    return ScaleFileKind::kMlaOuter;
  const Json& scales = MemberOrNull(content, "scales");
  if (!MemberOrNull(scales, "k_scales").is_null() || !MemberOrNull(scales, "v_scales").is_null())
    return ScaleFileKind::kOnnxGenai;
  return {};
}

}  // namespace oscar
