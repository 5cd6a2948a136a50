// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/export/served/broken_directories.h"

#include <limits>

#include "export/served/served_directory.h"  // ServedRuntime

namespace fs = std::filesystem;

namespace oscar {
namespace {

const float kNan = std::numeric_limits<float>::quiet_NaN();

}  // namespace

std::vector<BrokenDirectory> BrokenDirectories() {
  const auto nothing = [](auto&) {};
  return {
      {"scales-without-method", kServedVllm,
       Of([](ServedSample& s) { s.config.erase("quantization_config"); })},
      {"scales-beside-other-method", kServedVllm, Of([](ServedSample& s) {
         s.quantization() = {{"quant_method", "gptq"}, {"bits", 4}};
       })},
      {"scales-beside-other-method", kServedTrtllm, OfModelOpt([](ServedSample& s) {
         s.texts.clear();
         s.quantization()["quant_method"] = "compressed-tensors";
       })},
      {"scales-not-declared", kServedVllm,
       Of([](ServedSample& s) { s.quantization().erase("kv_cache_scheme"); })},
      {"scale-names", kServedTrtllm, OfModelOpt([](ServedSample& s) {
         s.tensors().clear();
         s.Weights("model.layers.", AllServedLayers());
         s.Scales(".k_scale", ".v_scale", AllServedLayers());
       })},
      {"scale-names", kServedSglang, Of([](ServedSample& s) {
         s.tensors().clear();
         s.Weights("model.layers.", AllServedLayers());
         s.Scales(".k_proj.output_scale", ".v_proj.output_scale", AllServedLayers());
       })},
      {"scale-names", kServedVllm, Of([](ServedSample& s) {
         s.tensors().clear();
         s.Weights("model.layers.", AllServedLayers());
         s.Scales(".attn.k_scale", ".attn.v_scale", AllServedLayers());
       })},
      {"family-drops-scales", kServedVllm, Changed(Hybrid(".k_scale", ".v_scale"), nothing)},
      {"scale-modules", kServedVllm, Of([](ServedSample& s) {
         s.tensors().clear();
         s.Weights("model.language_model.layers.", AllServedLayers());
         s.Scales(".k_scale", ".v_scale", AllServedLayers());
       })},
      {"scale-layers", kServedSglang,
       Changed(Hybrid(".k_scale", ".v_scale", {0, 1}), nothing)},  // counted among attention layers
      {"scales-of-some-layers", kServedVllm, Of([](ServedSample& s) {
         s.tensors().erase("model.layers.2.self_attn.k_scale");
         s.tensors().erase("model.layers.2.self_attn.v_scale");
       })},
      {"scales-of-one-side", kServedVllm, Of([](ServedSample& s) {
         for (int64_t id = 0; id < 4; ++id)
           s.tensors().erase(fmt::format("model.layers.{}.self_attn.v_scale", id));
       })},
      {"unit-scales", kServedVllm, Of([](ServedSample& s) {
         for (auto& [name, tensor] : s.tensors()) tensor.values = {1.F};
       })},
      {"scales-not-positive", kServedSglang,
       Of([](ServedSample& s) { Scale(s, 1, "k_scale").values = {0.F}; })},
      {"scales-not-finite", kServedVllm,
       Of([](ServedSample& s) { Scale(s, 3, "v_scale").values = {kNan}; })},
      {"scales-not-floats", kServedVllm, Of([](ServedSample& s) {
         Scale(s, 3, "v_scale") = {DType::kI32, {1}, {}};
       })},
      {"scale-heads", kServedVllm, Of([](ServedSample& s) {
         Scale(s, 0, "k_scale") = {DType::kF32, {3}, {1.5F, 2, 3}};
       })},
      {"scales-per-head", kServedSglang, Of([](ServedSample& s) {
         Scale(s, 0, "k_scale") = {DType::kF32, {2}, {1.5F, 2}};
       })},
      {"scale-strategy", kServedVllm, Of([](ServedSample& s) {
         Scale(s, 0, "k_scale") = {DType::kF32, {2}, {1.5F, 2}};
       })},
      {"scales-outside-index", kServedVllm, Of([](ServedSample& s) {
         s.tensors().clear();
         s.Weights("model.layers.", AllServedLayers());
         s.texts["model.safetensors.index.json"] = s.Index().dump();
         s.Scales(".k_scale", ".v_scale", AllServedLayers(), "model-kvscales.safetensors");
       })},
      {"scales-only-in-index", kServedVllm, Of([](ServedSample& s) {
         s.texts["model.safetensors.index.json"] = s.Index().dump();
         s.tensors().erase("model.layers.2.self_attn.k_scale");
         s.tensors().erase("model.layers.2.self_attn.v_scale");
       })},
      {"scales-twice", kServedVllm, Of([](ServedSample& s) {
         s.files["more.safetensors"]["model.layers.0.self_attn.k_proj.k_scale"] = {.values = {9}};
       })},
      {"recipe-without-scales", kServedVllm, Of([](ServedSample& s) {
         s.tensors().clear();
         s.Weights("model.layers.", AllServedLayers());
       })},
      {"recipes-differ", kServedTrtllm,
       OfModelOpt([](ServedSample& s) { s.quantization()["kv_cache_quant_algo"] = "NVFP4"; })},
      {"recipe-of-other-method", kServedVllm, Of([](ServedSample& s) {
         s.quantization().erase("kv_cache_scheme");
         s.quantization()["kv_cache_quant_algo"] = "FP8";
       })},
      {"recipe-read-as-fp8", kServedVllm,
       Of([](ServedSample& s) { s.quantization()["kv_cache_scheme"]["type"] = "int"; })},
      {"recipe-asymmetric", kServedVllm,
       Of([](ServedSample& s) { s.quantization()["kv_cache_scheme"]["symmetric"] = false; })},
      {"recipe-unknown", kServedVllm, OfModelOpt([](ServedSample& s) {
         s.texts.clear();
         s.quantization()["kv_cache_quant_algo"] = "fp8_e4m3";
       })},
      {"recipe-per-layer", kServedVllm, OfModelOpt([](ServedSample& s) {
         s.texts.clear();
         s.quantization()["kv_cache_quant_algo"] = "MIXED_PRECISION";
         s.quantization()["kv_cache_schema_version"] = 1;
         for (int64_t id = 0; id < 4; ++id)
           s.quantization()["kv_cache_quantized_layers"][fmt::format(
               "model.layers.{}.self_attn", id)] = {{"quant_algo", id == 0 ? "FP8" : "NVFP4"}};
       })},
      {"recipe-schema", kServedTrtllm, OfModelOpt([](ServedSample& s) {
         for (int64_t id = 0; id < 4; ++id)
           s.quantization()["kv_cache_quantized_layers"]
                           [fmt::format("model.layers.{}.self_attn", id)] = {{"quant_algo", "FP8"}};
       })},
      {"recipe-layers", kServedVllm, OfModelOpt([](ServedSample& s) {
         s.quantization()["kv_cache_schema_version"] = 1;
         for (int64_t id = 0; id < 4; ++id)
           s.quantization()["kv_cache_quantized_layers"][fmt::format("layers.{}.attn", id)] = {
               {"quant_algo", "FP8"}};
       })},
      {"recipe-mixed-of-nothing", kServedVllm, OfModelOpt([](ServedSample& s) {
         s.texts.clear();
         s.quantization()["kv_cache_quant_algo"] = "MIXED_PRECISION";
       })},
      {"param-type", kServedSglang,
       OfParam([](Json& j) { j["kv_cache"]["dtype"] = "float8_e5m2"; })},
      {"param-model", kServedSglang, OfParam([](Json& j) { j["model_type"] = "llama"; })},
      {"param-model", kServedSglang, OfParam([](Json& j) { j.erase("model_type"); })},
      {"param-ranks", kServedSglang, OfParam([](Json& j) {
         j["kv_cache"]["scaling_factor"]["2"] = j["kv_cache"]["scaling_factor"]["0"];
       })},
      {"param-layers", kServedSglang,
       OfParam([](Json& j) { j["kv_cache"]["scaling_factor"]["0"].erase("3"); })},
      {"param-values", kServedSglang, OfParam([](Json& j) {
         for (Json& factor : j["kv_cache"]["scaling_factor"]["0"]) factor = 1.0;
       })},
      {"param-values", kServedSglang,
       OfParam([](Json& j) { j["kv_cache"]["scaling_factor"]["0"]["1"] = -0.5; })},
      {"param-family", kServedSglang,
       Changed(ParamSample(), [](ServedSample& s) { s.config["model_type"] = "qwen3_5_text"; })},
      {"broken-json", kServedSglang,
       Changed(ParamSample(),
               [](ServedSample& s) { s.texts["kv_cache_scales.json"] = "{\"kv_cache\": {"; })},
      {"outer-scale-inert", kServedVllm, OuterScales(nothing, ServedConfig())},
      {"outer-scale-schema", kServedVllm,
       OuterScales([](Json& j) { j["scales"].erase(77); }, LatentConfig())},
      {"onnx-lengths", kServedOnnx, Genai([](Json& j) { j["scales"]["v_scales"].erase(3); })},
      {"onnx-layer-ids", kServedOnnx,
       Genai(
           [](Json& j) {
             j["scales"] = {{"k_scales", {0.1, 0.2}}, {"v_scales", {0.1, 0.2}}};
             j.erase("layer_ids");
           },
           Hybrid().config)},
      {"onnx-widths", kServedOnnx, Genai([](Json& j) {
         j["scales"]["k_scales"][1] = {0.1, 0.2, 0.3};
       })},
      {"onnx-values", kServedOnnx, Genai([](Json& j) { j["scales"]["v_scales"][2] = 0; })},
      {"rotation-of-one-side", kServedSglang,
       Pair(Rotations(AllServedLayers()), SglangVersion::kV1,
            [](const fs::path& directory) { fs::remove(directory / "v_rotation_auto.pt"); })},
      {"rotation-layers", kServedVllm, Pair(Rotations({0, 1, 2}))},
      {"rotation-shape", kServedSglang, Pair(Rotations(AllServedLayers(), 2))},
      {"rotation-per-head", kServedVllm, Pair(PerHead(), SglangVersion::kV3)},
      {"rotation-broken", kServedSglang,
       Pair(Rotations(AllServedLayers()), SglangVersion::kV1,
            [](const fs::path& directory) {
              const fs::path file = directory / "k_rotation_auto.pt";
              fs::resize_file(file, fs::file_size(file) / 2);
            })},
      {"rotation-fields-unread", kServedSglang, Pair(Centred(), SglangVersion::kV3)},
      {"rotation-absorbed-twice", kServedSglangOct,
       Pair(Rotations(AllServedLayers()), SglangVersion::kV1,
            [](const fs::path& directory) {
              WriteFileAtomically(directory / "oscar_fold.json", R"({"values": "rotation"})");
            })},
      {"gguf-rotations-apart", kServedLlamacpp,
       Gguf(
           [](ServedGgufSample& g) {
             AddRotations(g, {0, 1, 2, 3}, {0, 1, 2, 3});
           },
           ServedGgufSample{.entries = {{"general.type", std::string("adapter")}}},
           "rotations.gguf")},
      {"gguf-rotations-of-some-layers", kServedLlamacpp, Gguf([](ServedGgufSample& g) {
         AddRotations(g, {0, 1, 3}, {0, 1, 2, 3});
       })},
      {"gguf-rotation-shape", kServedLlamacpp, Gguf([](ServedGgufSample& g) {
         AddRotations(g, {0, 1, 2, 3}, {0, 1, 2, 3}, 2);
       })},
      {"gguf-not-orthogonal", kServedLlamacpp, Gguf([](ServedGgufSample& g) {
         AddRotations(g, {0, 1, 2}, {0, 1, 2, 3});
         FloatTensor wrong = *ServedMatrix({4, 4});
         wrong.values[0] = 2;
         g.tensors.push_back(
             GgufRotation(3, 'k', std::make_shared<const FloatTensor>(std::move(wrong))));
       })},
      {"means-basis-unsaid", kServedLlamacpp,
       Gguf([](ServedGgufSample& g) { g.entries.pop_back(); }, GgufMeans(), "means.gguf")},
      {"means-layers", kServedLlamacpp,
       Both(Gguf(nothing), Gguf(nothing, GgufMeans(8, 1), "means.gguf"))},
      {"means-width", kServedLlamacpp,
       Both(Gguf(nothing), Gguf(nothing, GgufMeans(4), "means.gguf"))},
      {"means-of-other-model", kServedLlamacpp,
       Both(Gguf(nothing),
            Gguf(
                [](ServedGgufSample& g) {
                  g.entries.push_back({"kv_mean_center.model_sha256", std::string(64, 'a')});
                },
                GgufMeans(), "means.gguf"))},
      {"means-not-numbers", kServedLlamacpp,
       Gguf(
           [](ServedGgufSample& g) {
             FloatTensor mean{{8}, std::vector<float>(8, kNan)};
             g.tensors[2].values = std::make_shared<const FloatTensor>(std::move(mean));
           },
           GgufMeans(), "means.gguf")},
      {"files-of-others", kServedLlamacpp, Of(nothing)},
      {"broken-files", kServedVllm,
       Both(Of(nothing),
            [](const fs::path& directory) {
              WriteFileAtomically(directory / "more.safetensors", "not a safetensors file");
            })},
  };
}

}  // namespace oscar
