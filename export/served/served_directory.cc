// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/served/served_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "capture/checkpoint/weight_files.h"
#include "capture/model/model_spec.h"
#include "export/fold/fold_checkpoint.h"  // kFoldFile
#include "export/formats/mla_folder.h"
#include "linalg/error.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

// JSON of a model directory that is large and holds no scales.
bool IsTokenizers(std::string_view name) {
  return name.starts_with("tokenizer") || name.starts_with("vocab") || name == "merges.txt";
}

int64_t IntOf(const Json& config, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    const auto found = config.find(key);
    if (found != config.end() && found->is_number_integer()) return found->get<int64_t>();
  }
  return 0;
}

// Of a family that is not read otherwise, by the fields that nearly all have.
void ReadPlainGeometry(const Json& whole, ServedDirectory& served) {
  const Json& config = whole.contains("text_config") && whole["text_config"].is_object()
                           ? whole["text_config"]
                           : whole;
  constexpr int64_t kMostLayers = 10000;
  served.num_layers =
      std::clamp<int64_t>(IntOf(config, {"num_hidden_layers", "n_layer"}), 0, kMostLayers);
  const int64_t heads = IntOf(config, {"num_attention_heads", "n_head"});
  ServedLayer layer{.num_kv_heads = IntOf(config, {"num_key_value_heads"}),
                    .head_dim = IntOf(config, {"head_dim"})};
  if (layer.num_kv_heads <= 0) layer.num_kv_heads = heads;
  if (layer.head_dim <= 0 && heads > 0) layer.head_dim = IntOf(config, {"hidden_size"}) / heads;
  layer.v_head_dim = layer.head_dim;
  served.latent = IntOf(config, {"kv_lora_rank"}) > 0;
  const Json types = config.value("layer_types", Json());
  for (int64_t id = 0; id < served.num_layers; ++id) {
    const auto at = static_cast<size_t>(id);
    if (types.is_array() && at < types.size() && types[at].is_string()) {
      const auto& type = types[at].get_ref<const std::string&>();
      if (type.find("attention") == type.npos || type.starts_with("linear")) continue;
    }
    layer.layer_id = id;
    served.layers.push_back(layer);
  }
}

void ReadGeometry(const Json& config, ServedDirectory& served) {
  if (!config.is_object()) return;
  const Json type = config.value("model_type", Json());
  if (type.is_string()) served.model_type = type.get<std::string>();
  try {
    const ModelSpec spec = ReadModelSpec(config, {.allow_unknown_config = true});
    served.num_layers = std::ssize(spec.layers) + std::ssize(spec.uncached);
    for (const LayerSpec& layer : spec.layers) {
      const AttentionSpec& a = layer.attention;
      served.latent = served.latent || a.latent.has_value();
      served.layers.push_back({layer.layer_id, a.num_kv_heads, a.head_dim, a.v_head_dim});
    }
  } catch (const Error&) {
    ReadPlainGeometry(config, served);
  }
}

int64_t GgufInt(const GgufFile& file, const std::string& key) {
  const auto found = file.entries.find(key);
  if (found == file.entries.end()) return 0;
  if (const auto* value = std::get_if<uint64_t>(&found->second))
    return static_cast<int64_t>(std::min<uint64_t>(*value, 1U << 30U));
  if (const auto* value = std::get_if<int64_t>(&found->second)) return *value;
  return 0;
}

std::string GgufText(const GgufFile& file, std::string_view key) {
  const auto found = file.entries.find(key);
  const auto* text =
      found == file.entries.end() ? nullptr : std::get_if<std::string_view>(&found->second);
  return text == nullptr ? std::string() : std::string(*text);
}

ServedGguf ReadServedGguf(const fs::path& path) {
  ServedGguf gguf{.file = path.filename(), .content = GgufFile::Open(path), .layers = {}};
  gguf.is_means = GgufText(gguf.content, "general.type") == "kv-mean-center";
  const std::string architecture = GgufText(gguf.content, "general.architecture");
  const int64_t heads = GgufInt(gguf.content, architecture + ".attention.head_count");
  ServedLayer layer{
      .num_kv_heads = GgufInt(gguf.content, architecture + ".attention.head_count_kv"),
      .head_dim = GgufInt(gguf.content, architecture + ".attention.key_length"),
      .v_head_dim = GgufInt(gguf.content, architecture + ".attention.value_length")};
  const int64_t width = GgufInt(gguf.content, architecture + ".embedding_length");
  if (layer.head_dim == 0 && heads > 0) layer.head_dim = width / heads;
  if (layer.v_head_dim == 0) layer.v_head_dim = layer.head_dim;
  for (const GgufTensorInfo& tensor : gguf.content.tensors) {
    const std::string_view name = tensor.name;
    if (!name.starts_with("blk.")) continue;
    const auto id = ParseLayerId(name.substr(4, name.find('.', 4) - 4));
    const std::string_view rest = id ? name.substr(std::min(name.find('.', 4), name.size())) : "";
    // Layers of a hybrid without attention have neither.
    if (rest != ".attn_k.weight" && rest != ".attn_qkv.weight") continue;
    layer.layer_id = *id;
    gguf.layers.push_back(layer);
  }
  std::ranges::sort(gguf.layers, {}, &ServedLayer::layer_id);
  gguf.is_model = !gguf.layers.empty();
  return gguf;
}

char SideByName(std::string_view name) {
  for (const auto& [part, side] :
       {std::pair("k_rotation", 'k'), {"v_rotation", 'v'}, {"k_mean", 'k'}, {"kmean", 'k'}})
    if (name.find(part) != name.npos) return side;
  return 0;
}

class Scan {
 public:
  explicit Scan(ServedDirectory& served) : served_(served) {}

  void Run() {
    for (const auto& entry : fs::directory_iterator(served_.path)) {
      if (entry.is_regular_file()) names_.push_back(entry.path().filename());
    }
    std::ranges::sort(names_);
    const Json config = ReadNamed("config.json");
    ReadGeometry(config, served_);
    ReadServedRecipes(config, ReadNamed("hf_quant_config.json"), served_);
    ReadIndex();
    for (const std::string& name : names_) Try(name, [&] { File(name); });
  }

 private:
  template <typename F>
  void Try(const std::string& name, const F& read) {
    try {
      read();
    } catch (const Error& error) {
      served_.unread.push_back({name, error.what()});
    }
  }

  Json ReadNamed(const std::string& name) {
    Json json;
    if (std::ranges::find(names_, name) != names_.end())
      Try(name, [&] { json = ReadJsonFile((served_.path / name).string()); });
    return json;
  }

  void ReadIndex() {
    const Json index = ReadNamed(kWeightIndexFile);
    if (!index.is_object() || !index.contains("weight_map")) return;
    for (const auto& [tensor, file] : index["weight_map"].items())
      if (file.is_string()) served_.weight_map[tensor] = file.get<std::string>();
  }

  void File(const std::string& name) {
    const fs::path path = served_.path / name;
    const std::string extension = path.extension();
    if (extension == ".safetensors") {
      ReadServedScales(path, served_);
    } else if (extension == ".json" && !IsTokenizers(name) && name != kWeightIndexFile &&
               name != "config.json" && name != "hf_quant_config.json") {
      const Json json = ReadJsonFile(path.string());
      if (name == kFoldFile)
        served_.values_absorbed = json.is_object() && json.value("values", Json()) == "rotation";
      if (const auto kind = ScaleFileKindOf(json))
        served_.scale_files.push_back({name, *kind, json});
    } else if (extension == ".pt") {
      served_.rotations.push_back({name, SideByName(name), OpenRotationFile(path)});
    } else if (extension == ".gguf") {
      served_.ggufs.push_back(ReadServedGguf(path));
    }
  }

  ServedDirectory& served_;
  std::vector<std::string> names_;
};

}  // namespace

const ServedLayer* ServedDirectory::Find(int64_t layer_id) const {
  const auto found = std::ranges::find(layers, layer_id, &ServedLayer::layer_id);
  return found == layers.end() ? nullptr : &*found;
}

const CacheRecipe* ServedDirectory::Recipe() const {
  const auto found = std::ranges::find_if(recipes, &CacheRecipe::declares);
  return found == recipes.end() ? nullptr : &*found;
}

std::vector<const ScaleFile*> ServedDirectory::FilesOf(ScaleFileKind kind) const {
  std::vector<const ScaleFile*> files;
  for (const ScaleFile& file : scale_files)
    if (file.kind == kind) files.push_back(&file);
  return files;
}

ServedDirectory ReadServedDirectory(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error))
    throw InputError(fmt::format("{}: no such directory", path.string()));
  ServedDirectory served;
  served.path = path;
  Scan(served).Run();
  return served;
}

}  // namespace oscar
