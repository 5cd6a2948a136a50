// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/runtimes/published_scales.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <map>
#include <string_view>

#include "capture/checkpoint/safetensors.h"
#include "capture/files/mapped_file.h"
#include "capture/files/quote.h"
#include "capture/files/removed_names.h"
#include "export/formats/layer_of_name.h"
#include "export/runtimes/cache_bits.h"
#include "export/runtimes/cache_scales.h"
#include "linalg/error.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

using Layers = std::map<int64_t, ImportedLayer>;
constexpr const char* kQuantFile = "hf_quant_config.json";

ImportedFiles Finished(std::string from, std::vector<fs::path> files, Layers layers) {
  ImportedFiles out{.from = std::move(from), .files = std::move(files)};
  for (auto& [id, layer] : layers) {
    layer.layer_id = id;
    out.layers.push_back(std::move(layer));
  }
  return out;
}

double PositiveScale(double scale, const std::string& where) {
  if (!(scale > 0 && std::isfinite(scale)))
    throw InputError(fmt::format("{}: a scale of {}, expected a positive number", where, scale));
  return scale;
}

int64_t LayerIn(std::string_view text, const std::string& where) {
  const auto id = ParseLayerId(text);
  if (!id) throw InputError(fmt::format("{}: {} is no layer", where, Quoted(text)));
  return *id;
}

// ModelOpt's names of what a layer's sides are stored in.
std::pair<int, int> BitsOfAlgorithm(std::string_view name, const std::string& where) {
  if (name == "FP8") return {8, 8};
  if (name == "NVFP4") return {4, 4};
  if (name == "FP8_K_NVFP4_V") return {8, 4};
  throw InputError(
      fmt::format("{}: cache type {}, expected FP8, NVFP4 or FP8_K_NVFP4_V", where, Quoted(name)));
}

// kv_cache_quantized_layers of hf_quant_config.json; empty: it names no layers.
Layers ReadLayerMap(const fs::path& path) {
  const std::string where = path.string();
  const Json file = ReadJsonFile(where);
  const Json& quantization = JsonMember(file, "quantization", where);
  Layers layers;
  if (!quantization.is_object() || !quantization.contains("kv_cache_quantized_layers"))
    return layers;
  if (const int64_t version = JsonInt(quantization, "kv_cache_schema_version", where); version != 1)
    throw InputError(fmt::format("{}: kv_cache_schema_version {}, expected 1", where, version));
  const Json& map = quantization.at("kv_cache_quantized_layers");
  if (!map.is_object()) throw InputError(where + ": kv_cache_quantized_layers is no object");
  for (const auto& [module, entry] : map.items()) {
    const auto id = LayerOfName(module);
    if (!id) throw InputError(fmt::format("{}: {} names no layer", where, Quoted(module)));
    std::tie(layers[*id].k_bits, layers[*id].v_bits) =
        BitsOfAlgorithm(JsonString(entry, "quant_algo", where), where);
  }
  return layers;
}

// k_scale and v_scale of a shard into `layers`; what x / scale reaches is 448, or of NVFP4 more.
void AddScaleTensors(const fs::path& path, Layers& layers) {
  const SafetensorsFile file = SafetensorsFile::Open(path);
  for (const auto& [name, info] : file.tensors()) {
    const bool keys = name.ends_with(".k_scale");
    if (!keys && !name.ends_with(".v_scale")) continue;
    const std::string where = fmt::format("{}: {}", path.string(), Escaped(name));
    const auto id = LayerOfName(name);
    if (!id) throw InputError(where + ": names no layer");
    const TensorView view = file.tensor(name);
    if (view.dtype != DType::kF32) {
      throw InputError(fmt::format("{} is {}, expected F32", where, DTypeName(view.dtype)));
    }
    ImportedLayer& layer = layers[*id];
    std::vector<double>& maxima = keys ? layer.k_abs_max : layer.v_abs_max;
    if (!maxima.empty()) throw InputError(where + ": the layer has this scale twice");
    const int bits = keys ? layer.k_bits : layer.v_bits;
    for (size_t at = 0; at < view.data.size(); at += sizeof(float)) {
      float scale = 0;
      std::memcpy(&scale, view.data.data() + at, sizeof(float));
      maxima.push_back(PositiveScale(scale, where) * (bits == 4 ? kLargestNvfp4 : kLargestE4m3));
    }
    if (maxima.size() > 1) layer.num_kv_heads = std::ssize(maxima);
  }
}

std::optional<ImportedFiles> FromDirectory(const fs::path& path) {
  Layers layers;
  std::vector<fs::path> files;
  if (fs::exists(path / kQuantFile)) {
    layers = ReadLayerMap(path / kQuantFile);
    files.push_back(path / kQuantFile);
  }
  std::vector<fs::path> shards;
  for (const auto& entry : fs::directory_iterator(path))
    if (entry.path().extension() == ".safetensors") shards.push_back(entry.path());
  std::ranges::sort(shards);
  for (const fs::path& shard : shards) {
    const SafetensorsFile file = SafetensorsFile::Open(shard);
    if (std::ranges::none_of(file.tensors(), [](const auto& tensor) {
          return tensor.first.ends_with(".k_scale") || tensor.first.ends_with(".v_scale");
        }))
      continue;
    AddScaleTensors(shard, layers);
    files.push_back(shard);
  }
  if (layers.empty()) return {};
  return Finished("scales", files, std::move(layers));
}

ImportedFiles FromSglangJson(const Json& cache, const fs::path& path) {
  const std::string where = path.string();
  if (const std::string type = JsonString(cache, "dtype", where); type != "float8_e4m3fn")
    throw InputError(fmt::format("{}: dtype {}, expected float8_e4m3fn", where, Quoted(type)));
  const Json& ranks = JsonMember(cache, "scaling_factor", where);
  if (!ranks.is_object() || ranks.empty() || !ranks.begin()->is_object())
    throw InputError(where + ": scaling_factor holds no rank's layers");
  for (const auto& [rank, factors] : ranks.items()) {
    if (factors != *ranks.begin())
      throw InputError(fmt::format("{}: factors of rank {} differ from the first's", where, rank));
  }
  Layers layers;
  for (const auto& [key, factor] : ranks.begin()->items()) {
    if (!factor.is_number()) throw InputError(where + ": a factor is no number");
    const double largest = PositiveScale(factor.get<double>(), where) * kLargestE4m3;
    ImportedLayer& layer = layers[LayerIn(key, where)];
    layer.k_abs_max = layer.v_abs_max = {largest};
  }
  return Finished("sglang-scales", {path}, std::move(layers));
}

std::optional<ImportedFiles> FromJson(const fs::path& path) {
  const Json file = ReadJsonFile(path.string());
  if (!file.is_object()) return {};
  if (file.contains("kv_cache")) return FromSglangJson(file.at("kv_cache"), path);
  if (file.value("format", Json()) == "nvfp4_ds_mla_outer_scale_v1")
    throw InputError(
        fmt::format("{}: nvfp4-mla-scales {}", path.string(), RemovedHint("nvfp4-mla-scales")));
  if (!file.contains("quantization")) return {};
  Layers layers = ReadLayerMap(path);
  if (layers.empty()) {
    throw InputError(path.string() +
                     ": has no kv_cache_quantized_layers, so it says nothing of single layers");
  }
  return Finished("modelopt", {path}, std::move(layers));
}

// "0-3:fp8,4-35:nvfp4"
void AddDtypeMap(std::string_view map, const std::string& where, Layers& layers) {
  while (!map.empty()) {
    const std::string_view part = map.substr(0, map.find(','));
    map.remove_prefix(std::min(map.size(), part.size() + 1));
    const size_t colon = part.find(':');
    if (colon == part.npos) {
      throw InputError(fmt::format("{}: {}, expected LAYERS:TYPE", where, Quoted(part)));
    }
    const std::string_view range = part.substr(0, colon), type = part.substr(colon + 1);
    const size_t dash = range.find('-');
    const int64_t first = LayerIn(range.substr(0, dash), where),
                  last = dash == range.npos ? first : LayerIn(range.substr(dash + 1), where);
    constexpr int64_t kMostLayers = 4096;
    if (last < first || last >= kMostLayers)
      throw InputError(fmt::format("{}: layers {}", where, Quoted(range)));
    const int bits = type == "fp8" ? 8 : type == "nvfp4" ? 4 : type == "auto" ? kNotQuantized : 0;
    if (bits == 0)
      throw InputError(fmt::format("{}: {}, expected fp8, nvfp4 or auto", where, Quoted(type)));
    for (int64_t id = first; id <= last; ++id) layers[id].k_bits = layers[id].v_bits = bits;
  }
}

std::string_view Trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\r' || c == '"' || c == '\''; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

// The file's lines, not YAML: "kv_cache_config:", "  dtype: \"0-3:fp8\"".
ImportedFiles FromYaml(const fs::path& path) {
  const MappedFile file = MappedFile::Open(path);
  std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  Layers layers;
  for (int line = 1; !text.empty(); ++line) {
    const std::string_view whole = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), whole.size() + 1));
    const std::string where = fmt::format("{}, line {}", path.string(), line);
    const std::string_view content = Trimmed(whole.substr(0, whole.find('#')));
    if (content.empty()) continue;
    const size_t colon = content.find(':');
    const std::string_view key = Trimmed(content.substr(0, colon));
    if (key == "dtype" && colon != content.npos) {
      AddDtypeMap(Trimmed(content.substr(colon + 1)), where, layers);
    } else if (key == "nbits_key" || key == "nbits_value") {
      throw InputError(fmt::format("{}: kvtuner {}", where, RemovedHint("kvtuner")));
    } else if (key != "kv_cache_config" && !ParseLayerId(key)) {
      throw InputError(
          fmt::format("{}: {}, expected TensorRT-LLM's kv_cache_config with a dtype by layers",
                      where, Quoted(content)));
    }
  }
  if (layers.empty()) throw InputError(path.string() + ": names no layer");
  return Finished("recipe", {path}, std::move(layers));
}

}  // namespace

std::optional<ImportedFiles> ReadPublishedScales(const fs::path& path) {
  if (fs::is_directory(path)) return FromDirectory(path);
  if (path.extension() == ".json") return FromJson(path);
  if (path.extension() == ".yaml" || path.extension() == ".yml") return FromYaml(path);
  if (path.extension() != ".safetensors") return {};
  Layers layers;
  if (fs::exists(path.parent_path() / kQuantFile))
    layers = ReadLayerMap(path.parent_path() / kQuantFile);
  AddScaleTensors(path, layers);
  if (std::ranges::none_of(layers, [](const auto& layer) {
        return !layer.second.k_abs_max.empty() || !layer.second.v_abs_max.empty();
      }))
    return {};
  return Finished("scales", {path}, std::move(layers));
}

}  // namespace oscar
