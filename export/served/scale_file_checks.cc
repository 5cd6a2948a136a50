// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks of files that hold scales alone: SGLang's (QuantParamSchema of
// python/sglang/srt/model_loader/weight_utils.py, which on any error takes 1.0 for all), those of
// NVFP4 latents (local-inference-lab/vllm, vllm/model_executor/layers/mla.py), onnxruntime-genai's
// (kv_cache_scale_file).
#include <algorithm>
#include <cmath>
#include <set>

#include "export/served/found.h"

namespace oscar {
namespace {

const Json& Below(const Json& object, std::initializer_list<const char*> keys) {
  static const Json null;
  const Json* at = &object;
  for (const char* key : keys) {
    const auto found = at->is_object() ? at->find(key) : at->end();
    if (!at->is_object() || found == at->end()) return null;
    at = &*found;
  }
  return *at;
}

// The files of a kind for which `is` finds something.
template <typename Find>
std::string InFiles(const ServedView& view, ScaleFileKind kind, const Find& find) {
  for (const ScaleFile* file : view.at.FilesOf(kind)) {
    if (const std::string found = find(file->content); !found.empty())
      return fmt::format("{} ({})", Escaped(file->file), found);
  }
  return {};
}

bool IsPositive(const Json& value) {
  return value.is_number() && std::isfinite(value.get<double>()) && value.get<double>() > 0;
}

const Json& Factors(const Json& content) { return Below(content, {"kv_cache", "scaling_factor"}); }

// Every number in an array of numbers or of arrays of them.
void Flatten(const Json& values, std::vector<Json>& flat) {
  for (const Json& value : values) {
    if (value.is_array()) {
      flat.insert(flat.end(), value.begin(), value.end());
    } else {
      flat.push_back(value);
    }
  }
}

}  // namespace

std::string ParamType(const ServedView& view) {
  return InFiles(view, ScaleFileKind::kSglang, [](const Json& content) {
    const Json& type = Below(content, {"kv_cache", "dtype"});
    return type == "float8_e4m3fn" ? "" : "dtype " + Escaped(type.dump(), 40);
  });
}

std::string ParamModel(const ServedView& view) {
  return InFiles(view, ScaleFileKind::kSglang, [&](const Json& content) -> std::string {
    // The field has to be there, if only as null.
    if (!content.contains("model_type")) return "no model_type";
    const Json& type = content["model_type"];
    if (view.at.model_type.empty() || type == view.at.model_type) return {};
    return fmt::format("model_type {}, the model is {}", Escaped(type.dump(), 40),
                       Quoted(view.at.model_type, 40));
  });
}

std::string ParamRanks(const ServedView& view) {
  return InFiles(view, ScaleFileKind::kSglang, [](const Json& content) -> std::string {
    const Json& ranks = Factors(content);
    if (!ranks.is_object()) return "no ranks";
    for (size_t rank = 0; rank < ranks.size(); ++rank)
      if (!ranks.contains(std::to_string(rank))) return fmt::format("no rank {}", rank);
    return ranks.empty() ? "no ranks" : "";
  });
}

std::string ParamLayers(const ServedView& view) {
  return InFiles(view, ScaleFileKind::kSglang, [&](const Json& content) -> std::string {
    if (view.at.num_layers == 0 || !Factors(content).is_object()) return {};
    for (const auto& [rank, layers] : Factors(content).items()) {
      if (!layers.is_object() || std::ssize(layers) != view.at.num_layers)
        return fmt::format("rank {}: {} layers of {}", Escaped(rank, 20), layers.size(),
                           view.at.num_layers);
      for (int64_t id = 0; id < view.at.num_layers; ++id)
        if (!layers.contains(std::to_string(id)))
          return fmt::format("rank {}: no layer {}", Escaped(rank, 20), id);
    }
    return {};
  });
}

std::string ParamValues(const ServedView& view) {
  return InFiles(view, ScaleFileKind::kSglang, [&](const Json& content) -> std::string {
    const Json& ranks = Factors(content);
    if (!ranks.is_object()) return {};
    for (const Json& layers : ranks) {
      if (!layers.is_object()) continue;
      size_t units = 0, attention = 0;
      for (const auto& [id, factor] : layers.items()) {
        const auto number = ParseLayerId(id);
        if (!view.at.layers.empty() && number && view.at.Find(*number) == nullptr) continue;
        if (!IsPositive(factor)) return fmt::format("layer {}", Escaped(id, 20));
        ++attention;
        units += factor == 1.0 ? 1 : 0;
      }
      if (attention > 0 && units == attention) return "all of them 1";
    }
    return {};
  });
}

std::string ParamFamily(const ServedView& view) {
  const auto files = view.at.FilesOf(ScaleFileKind::kSglang);
  if (files.empty() || !view.at.model_type.starts_with("qwen3_5")) return {};
  return fmt::format("{} of {}", Escaped(files.front()->file), Escaped(view.at.model_type, 40));
}

std::string ParamRemark(const ServedView& view) {
  const auto files = view.at.FilesOf(ScaleFileKind::kSglang);
  return files.empty() ? "" : Escaped(files.front()->file);
}

std::string BrokenJson(const ServedView& view) {
  std::vector<std::string> files;
  for (const ServedProblem& problem : view.at.unread)
    if (problem.file.ends_with(".json")) files.push_back(problem.file);
  return Naming(files);
}

std::string OuterScaleInert(const ServedView& view) {
  const auto files = view.at.FilesOf(ScaleFileKind::kMlaOuter);
  if (files.empty() || view.at.latent || view.at.layers.empty()) return {};
  return Escaped(files.front()->file);
}

std::string OuterScaleSchema(const ServedView& view) {
  return InFiles(view, ScaleFileKind::kMlaOuter, [](const Json& content) -> std::string {
    const Json& scales = Below(content, {"scales"});
    if (content["format"] != "nvfp4_ds_mla_outer_scale_v1") return "format";
    if (Below(content, {"num_layers"}) != 78) return "num_layers";
    if (Below(content, {"latent_dim"}) != 512) return "latent_dim";
    if (Below(content, {"denominator"}) != 2688) return "denominator";
    if (!scales.is_array() || scales.size() != 78 || !std::ranges::all_of(scales, IsPositive))
      return "scales";
    return {};
  });
}

std::string OuterScaleRemark(const ServedView& view) {
  const auto files = view.at.FilesOf(ScaleFileKind::kMlaOuter);
  return files.empty() ? "" : Escaped(files.front()->file);
}

std::string OnnxLengths(const ServedView& view) {
  return InFiles(view, ScaleFileKind::kOnnxGenai, [&](const Json& content) -> std::string {
    const Json &k = Below(content, {"scales", "k_scales"}),
               &v = Below(content, {"scales", "v_scales"});
    if (!k.is_array() || !v.is_array()) return "not two lists";
    const Json& ids = Below(content, {"layer_ids"});
    const bool as_many = k.size() == v.size() && (!ids.is_array() || ids.size() == k.size()) &&
                         (view.at.layers.empty() || k.size() == view.at.layers.size());
    return as_many ? "" : fmt::format("{} and {} entries", k.size(), v.size());
  });
}

std::string OnnxLayerIds(const ServedView& view) {
  return InFiles(view, ScaleFileKind::kOnnxGenai, [&](const Json& content) -> std::string {
    const Json &ids = Below(content, {"layer_ids"}), &k = Below(content, {"scales", "k_scales"});
    for (size_t i = 0; i < std::min(k.size(), view.at.layers.size()); ++i) {
      const int64_t expected = view.at.layers[i].layer_id;
      const Json id = ids.is_array() && i < ids.size() ? ids[i] : Json(i);
      if (id != expected) return fmt::format("entry {} for layer {}", i, Escaped(id.dump(), 20));
    }
    return {};
  });
}

std::string OnnxWidths(const ServedView& view) {
  return InFiles(view, ScaleFileKind::kOnnxGenai, [&](const Json& content) -> std::string {
    for (const char* side : {"k_scales", "v_scales"}) {
      const Json& entries = Below(content, {"scales", side});
      for (size_t i = 0; entries.is_array() && i < std::min(entries.size(), view.at.layers.size());
           ++i) {
        const ServedLayer& layer = view.at.layers[i];
        const int64_t dim = side[0] == 'k' ? layer.head_dim : layer.v_head_dim;
        if (entries[i].is_array() && std::ssize(entries[i]) != layer.num_kv_heads * dim)
          return fmt::format("{} of layer {} has {} numbers", side, layer.layer_id,
                             entries[i].size());
      }
    }
    return {};
  });
}

std::string OnnxValues(const ServedView& view) {
  return InFiles(view, ScaleFileKind::kOnnxGenai, [](const Json& content) -> std::string {
    for (const char* side : {"k_scales", "v_scales"}) {
      std::vector<Json> flat;
      if (Below(content, {"scales", side}).is_array())
        Flatten(Below(content, {"scales", side}), flat);
      if (!std::ranges::all_of(flat, IsPositive)) return side;
      if (!flat.empty() && std::ranges::all_of(flat, [](const Json& x) { return x == 1.0; }))
        return fmt::format("{}: all of them 1", side);
    }
    return {};
  });
}

}  // namespace oscar
