// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What a checkpoint directory holds for a quantized KV cache, as it lies there: scales among the
// tensors, recipes in the configuration, files of scales, rotations and means. Reads on behind
// what it cannot read, and judges nothing (served_checks.h does). Trap: a runtime looks at names
// and stops where it finds none, so a name here is as it was written and never put right.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "capture/checkpoint/dtype.h"
#include "capture/files/strict_json.h"
#include "export/formats/gguf_file.h"
#include "export/formats/rotation_file.h"

namespace oscar {

// Bits of a set; who may load a directory.
enum ServedRuntime : unsigned {
  kServedVllm = 1,
  kServedSglang = 2,
  kServedTrtllm = 4,
  kServedLlamacpp = 8,
  kServedOnnx = 16,
  kServedSglangOct = 32,  // the tree of October, for rotations
};

// How the scale of one side is named behind its attention module, and who loads it by that name.
struct ScaleSpelling {
  std::string_view k, v;  // ".k_proj.k_scale"; equal: one scale of both
  unsigned readers = 0;   // of ServedRuntime
};

// A scale of one side of one layer, or of both sides.
struct StoredScale {
  std::string file, name;  // of the tensor
  std::string module;      // "model.layers.3.self_attn"
  const ScaleSpelling* spelling = nullptr;
  int64_t layer_id = -1;  // the last number in its name; -1: none
  char side = 'k';        // 'k', 'v', or 'b': both
  bool indexed = true;    // the weight index, if there is one, names its file
  DType dtype{};
  std::vector<int64_t> shape;
  std::vector<float> values;  // empty: of a type or size that no scale has
};

struct ServedLayer {
  int64_t layer_id = 0;  // the checkpoint's own number
  int64_t num_kv_heads = 0, head_dim = 0, v_head_dim = 0;
};

// Of config.json's quantization_config, or of hf_quant_config.json.
struct CacheRecipe {
  std::string file;
  std::string method;  // quant_method; "modelopt" of hf_quant_config.json
  Json scheme;         // kv_cache_scheme, or null
  Json algorithm;      // kv_cache_quant_algo, or null
  Json layers;         // kv_cache_quantized_layers, or null
  Json schema;         // kv_cache_schema_version, or null

  bool declares() const { return scheme.is_object() || algorithm.is_string(); }
  // "FP8", "NVFP4", "MIXED_PRECISION"; of a scheme by its bits and type; "" for none.
  std::string Algorithm() const;
};

enum class ScaleFileKind {
  kSglang,     // --quantization-param-path
  kMlaOuter,   // VLLM_NVFP4_MLA_SCALES_FILE
  kOnnxGenai,  // kv_cache_scale_file
};

struct ScaleFile {
  std::string file;
  ScaleFileKind kind{};
  Json content;
};

struct ServedRotations {
  std::string file;
  char side = 0;  // by its name: 'k', 'v', or 0
  RotationFile content;
};

struct ServedGguf {
  std::string file;
  GgufFile content;
  bool is_means = false;            // general.type kv-mean-center
  bool is_model = false;            // has layers of weights
  std::vector<ServedLayer> layers;  // of a model
};

struct ServedProblem {
  std::string file, why;
};

struct ServedDirectory {
  std::filesystem::path path;
  std::string model_type;           // "" without a config.json
  int64_t num_layers = 0;           // those without a cache, too
  std::vector<ServedLayer> layers;  // with a cache of keys and values; empty: not known
  bool latent = false;              // whose cache is a latent (MLA)
  bool has_weights = false;
  std::set<std::string, std::less<>> modules;     // that have tensors which are no scales
  std::map<std::string, std::string> weight_map;  // of the index; empty: there is none
  std::vector<StoredScale> scales;
  std::vector<CacheRecipe> recipes;  // that of config.json first
  std::vector<ScaleFile> scale_files;
  std::vector<ServedRotations> rotations;
  std::vector<ServedGguf> ggufs;
  bool values_absorbed = false;       // oscar_fold.json says so
  std::vector<ServedProblem> unread;  // what could not be read

  const ServedLayer* Find(int64_t layer_id) const;
  const CacheRecipe* Recipe() const;  // the first that declares a cache; null: none does
  std::vector<const ScaleFile*> FilesOf(ScaleFileKind kind) const;
};

// Throws InputError where there is no such directory; of one that holds nothing, says nothing.
ServedDirectory ReadServedDirectory(const std::filesystem::path& path);

// Parts of it.
void ReadServedScales(const std::filesystem::path& file, ServedDirectory& served);
void ReadServedRecipes(const Json& config, const Json& modelopt, ServedDirectory& served);
bool IsCacheScaleName(std::string_view tensor);  // of the text model
std::optional<ScaleFileKind> ScaleFileKindOf(const Json& content);

}  // namespace oscar
