// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/served/served_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>

#include "export/served/found.h"

namespace oscar {

// Of scales among the tensors (scale_checks.cc), of recipes (recipe_checks.cc), of files of scales
// (scale_file_checks.cc), of rotations and means (rotation_checks.cc).
std::string ScalesWithoutMethod(const ServedView&), ScalesBesideOtherMethod(const ServedView&),
    ScalesNotDeclared(const ServedView&), ScalesOfFloat8(const ServedView&),
    ScalesOtherwiseNamed(const ServedView&), ScalesDroppedByFamily(const ServedView&),
    ScalesOfOtherModule(const ServedView&), ScalesOfOtherLayer(const ServedView&),
    ScalesOfSomeLayers(const ServedView&), ScalesOfOneSide(const ServedView&),
    UnitScales(const ServedView&), ScalesNotPositive(const ServedView&),
    ScalesNotFinite(const ServedView&), ScalesNotFloats(const ServedView&),
    ScalesOfOtherHeads(const ServedView&), ScalesPerHead(const ServedView&),
    ScalesOfOtherStrategy(const ServedView&), ScalesOutsideIndex(const ServedView&),
    ScalesOnlyInIndex(const ServedView&), ScalesTwice(const ServedView&),
    ScalesByVariable(const ServedView&);
std::string RecipeWithoutScales(const ServedView&), RecipesDiffer(const ServedView&),
    RecipeOfOtherMethod(const ServedView&), RecipeReadAsFp8(const ServedView&),
    RecipeAsymmetric(const ServedView&), RecipeUnknown(const ServedView&),
    RecipePerLayer(const ServedView&), RecipeSchema(const ServedView&),
    RecipeOfOtherLayers(const ServedView&), RecipeMixedOfNothing(const ServedView&);
std::string ParamType(const ServedView&), ParamModel(const ServedView&),
    ParamRanks(const ServedView&), ParamLayers(const ServedView&), ParamValues(const ServedView&),
    ParamFamily(const ServedView&), ParamRemark(const ServedView&), BrokenJson(const ServedView&),
    OuterScaleInert(const ServedView&), OuterScaleSchema(const ServedView&),
    OuterScaleRemark(const ServedView&), OnnxLengths(const ServedView&),
    OnnxLayerIds(const ServedView&), OnnxWidths(const ServedView&), OnnxValues(const ServedView&);
std::string RotationOfOneSide(const ServedView&), RotationLayers(const ServedView&),
    RotationShape(const ServedView&), RotationPerHead(const ServedView&),
    RotationFieldsUnread(const ServedView&), RotationAbsorbedTwice(const ServedView&),
    RotationBroken(const ServedView&), GgufRotationsApart(const ServedView&),
    GgufRotationsOfSomeLayers(const ServedView&), GgufRotationShape(const ServedView&),
    GgufNotOrthogonal(const ServedView&), MeansBasisUnsaid(const ServedView&),
    MeansOfOtherLayers(const ServedView&), MeansWidth(const ServedView&),
    MeansOfOtherModel(const ServedView&), MeansNotNumbers(const ServedView&),
    MeansUnrotated(const ServedView&), MeansRemark(const ServedView&),
    FilesOfOthers(const ServedView&), BrokenFiles(const ServedView&);

namespace {

constexpr unsigned kV = kServedVllm, kS = kServedSglang, kO = kServedSglangOct, kT = kServedTrtllm,
                   kL = kServedLlamacpp, kN = kServedOnnx;
using enum ServedEffect;

constexpr std::string_view
    kWriteScales =
        "oscar-export ARTIFACT --to kv-scales --model MODEL writes them as it loads them",
    kCalibrate = "oscar-calibrate MODEL, then oscar-export ARTIFACT --to kv-scales --model MODEL",
    kWriteRecipe = "oscar-export ARTIFACT --to modelopt --model MODEL",
    kWriteParam = "oscar-export ARTIFACT --to sglang-scales writes the file anew",
    kWriteMeans = "oscar-export ARTIFACT --to kv-mean-center writes the file anew",
    kWriteGenai = "onnxruntime-genai's kv_cache_calibration writes the file anew",
    kWriteRotations = "oscar-export ARTIFACT --to the runtime's name writes the files anew";

constexpr std::array kChecks = {
    // Scales among the tensors.
    ServedCheck{"scales-without-method", kV | kS | kT, kIgnores, "k_scale, v_scale; config.json",
                "config.json has no quantization_config, and without one attention has no place "
                "for scales: the cache runs at 1.0 (of FP8) or in 16 bits",
                kWriteScales, ScalesWithoutMethod},
    ServedCheck{"scales-beside-other-method", kV | kS | kT, kIgnores, "quant_method",
                "attention gets no scales beside weights of this method (vLLM: get_quant_method of "
                "it returns nothing for attention; TensorRT-LLM: ModelOpt's alone)",
                "oscar-export ARTIFACT --to sglang-scales, which SGLang loads beside any weights",
                ScalesBesideOtherMethod},
    ServedCheck{"scales-not-declared", kV | kS | kT, kIgnores, "kv_cache_scheme",
                "the configuration declares no cache type, so the cache stays in 16 bits unless "
                "--kv-cache-dtype fp8 is given",
                kWriteScales, ScalesNotDeclared},
    ServedCheck{"scales-of-fp8-weights", kV | kS, kRemark, "quant_method fp8",
                "that configuration has no field for the cache: start it with --kv-cache-dtype fp8 "
                "(SGLang: fp8_e4m3), or the cache stays in 16 bits",
                "", ScalesOfFloat8},
    ServedCheck{"scale-names", kV | kS | kT, kIgnores, "names of scales",
                "it looks for other names: vLLM and SGLang for self_attn.k_scale or "
                "self_attn.k_proj.k_scale, TensorRT-LLM for the latter alone",
                kWriteScales, ScalesOtherwiseNamed},
    ServedCheck{
        "family-drops-scales", kV, kIgnores, "model_type",
        "vLLM's loader of this family takes tensors by their exact names and has no "
        "renaming of scales (vllm issue 54623), so these fall away and the cache runs at 1.0",
        "name them ...self_attn.attn.k_scale, or serve a build that has the fix",
        ScalesDroppedByFamily},
    ServedCheck{"scale-modules", kV | kS | kT, kIgnores, "what stands before the name",
                "no weights lie below these modules (a prefix of another release of the model)",
                kWriteScales, ScalesOfOtherModule},
    ServedCheck{"scale-layers", kV | kS | kT, kIgnores, "layer numbers of scales",
                "the model has no attention there; layers have the checkpoint's own numbers, of a "
                "hybrid those of its attention layers (3, 7, ...)",
                kWriteScales, ScalesOfOtherLayer},
    ServedCheck{"scales-of-some-layers", kV | kS | kT, kMisreads, "every layer has scales",
                "these layers have none and run at 1.0 beside others that have", kCalibrate,
                ScalesOfSomeLayers},
    ServedCheck{
        "scales-of-one-side", kV | kS | kT, kMisreads, "k_scale beside v_scale",
        "the other side is missing: vLLM and SGLang take the scale of keys for values, too, "
        "and stop where it is that of keys; TensorRT-LLM stops",
        kCalibrate, ScalesOfOneSide},
    ServedCheck{"unit-scales", kV | kS | kT, kMisreads, "values of scales",
                "scales of exactly 1 are what stands there before anything was measured",
                kCalibrate, UnitScales},
    ServedCheck{
        "scales-not-positive", kV | kS | kT, kMisreads, "values of scales",
        "a scale of 0 or less is taken for one that was not loaded: 1.0 (SGLang), or a stop "
        "(vLLM); layers that were never observed have such ones",
        kCalibrate, ScalesNotPositive},
    ServedCheck{"scales-not-finite", kV | kS | kT, kMisreads, "values of scales",
                "the scale is not a number, and neither is what attention reads", kCalibrate,
                ScalesNotFinite},
    ServedCheck{"scales-not-floats", kV | kS | kT, kMisreads, "types of scales",
                "scales are one number, or one for each KV head, of F32, F16 or BF16", kWriteScales,
                ScalesNotFloats},
    ServedCheck{"scale-heads", kV | kS | kT, kMisreads, "sizes of scales",
                "neither one number nor one for each KV head of the layer", kWriteScales,
                ScalesOfOtherHeads},
    ServedCheck{"scales-per-head", kS | kT, kRefuses, "sizes of scales",
                "it takes one scale for a layer and side, not one for each KV head",
                "oscar-export ARTIFACT --to kv-scales --model MODEL without --per-head",
                ScalesPerHead},
    ServedCheck{"scale-strategy", kV, kRefuses, "strategy of kv_cache_scheme",
                "the configuration says otherwise: attn_head goes with a scale for each KV head, "
                "tensor with one",
                kWriteScales, ScalesOfOtherStrategy},
    ServedCheck{"scales-outside-index", kV | kS, kIgnores, "model.safetensors.index.json",
                "the index names no tensor of this file, and a file that it does not name is not "
                "opened",
                "add its tensors to weight_map, or write both anew: oscar-export ARTIFACT --to "
                "kv-scales --model MODEL",
                ScalesOutsideIndex},
    ServedCheck{"scales-only-in-index", kV | kS | kT, kIgnores, "model.safetensors.index.json",
                "the index says that they are there, but they are not, and nobody misses a scale",
                kWriteScales, ScalesOnlyInIndex},
    ServedCheck{"scales-twice", kV | kS | kT, kMisreads, "one scale for a layer and side",
                "given twice with different values, of which the order of files decides "
                "(TensorRT-LLM: the larger)",
                "remove one", ScalesTwice},
    ServedCheck{"scales-by-variable", kT, kRemark, "k_scale, v_scale",
                "builds before its pull request 12938 load them only with TRTLLM_LOAD_KV_SCALES=1",
                "", ScalesByVariable},
    // Recipes.
    ServedCheck{"recipe-without-scales", kV | kS | kT, kMisreads, "scales of a declared cache",
                "the cache is quantized as declared, and no scale is there that it loads: 1.0 "
                "everywhere",
                kCalibrate, RecipeWithoutScales},
    ServedCheck{"recipes-differ", kV | kS | kT, kMisreads, "config.json, hf_quant_config.json",
                "the two files declare different caches; vLLM and SGLang go by the first, "
                "TensorRT-LLM by the second",
                "make them one", RecipesDiffer},
    ServedCheck{"recipe-of-other-method", kV | kS | kT, kIgnores, "quant_method",
                "kv_cache_quant_algo is read where quant_method is modelopt, kv_cache_scheme where "
                "it is compressed-tensors or modelopt",
                kWriteScales, RecipeOfOtherMethod},
    ServedCheck{"recipe-read-as-fp8", kV | kS, kMisreads, "kv_cache_scheme",
                "8 bits that are not floats, or floats of other bits, pass the check of releases "
                "before vLLM's pull request 45312 and become FP8",
                "declare num_bits 8 and type float, or serve it where INT8 and NVFP4 are read",
                RecipeReadAsFp8},
    ServedCheck{"recipe-asymmetric", kV | kS, kRefuses, "kv_cache_scheme",
                "a cache with zero points is not implemented", "symmetric: true", RecipeAsymmetric},
    ServedCheck{"recipe-unknown", kV | kS | kT, kIgnores, "kv_cache_quant_algo",
                "not a cache type that anybody reads: the cache stays in 16 bits",
                "FP8, NVFP4, INT8 (TensorRT-LLM), FP8_K_NVFP4_V", RecipeUnknown},
    ServedCheck{
        "recipe-per-layer", kV | kS | kT, kIgnores, "kv_cache_quantized_layers",
        "no release reads types by layer (open: vLLM's pull requests 56155 and 56156, "
        "TensorRT-LLM's 13695); all layers get one type or 16 bits",
        "serve a build with them, or one type: oscar-export ARTIFACT --to kv-scales --model "
        "MODEL",
        RecipePerLayer},
    ServedCheck{"recipe-schema", kV | kS | kT, kIgnores, "kv_cache_schema_version",
                "types by layer are of kv_cache_schema_version 1", kWriteRecipe, RecipeSchema},
    ServedCheck{"recipe-layers", kV | kS | kT, kIgnores, "names in kv_cache_quantized_layers",
                "the model has no such attention module", kWriteRecipe, RecipeOfOtherLayers},
    ServedCheck{"recipe-mixed-of-nothing", kV | kS | kT, kIgnores, "kv_cache_quantized_layers",
                "MIXED_PRECISION says that layers differ, and no layer is named", kWriteRecipe,
                RecipeMixedOfNothing},
    // Files of scales.
    ServedCheck{"param-type", kS, kIgnores, "kv_cache.dtype of --quantization-param-path",
                "only \"float8_e4m3fn\" is taken; else every factor becomes 1.0 with a line in the "
                "log",
                kWriteParam, ParamType},
    ServedCheck{"param-model", kS, kIgnores, "model_type of --quantization-param-path",
                "not the model's; every factor becomes 1.0 with a line in the log", kWriteParam,
                ParamModel},
    ServedCheck{"param-ranks", kS, kIgnores, "ranks of --quantization-param-path",
                "ranks count from 0 without a gap and are all of --tp-size; else every factor "
                "becomes 1.0",
                kWriteParam, ParamRanks},
    ServedCheck{"param-layers", kS, kIgnores, "layers of --quantization-param-path",
                "every layer of the model has to be there, those without a cache, too; else every "
                "factor becomes 1.0",
                kWriteParam, ParamLayers},
    ServedCheck{"param-values", kS, kMisreads, "factors of --quantization-param-path",
                "factors of attention layers are positive, and 1 is what was never measured",
                kWriteParam, ParamValues},
    ServedCheck{"param-family", kS, kRefuses, "model_type",
                "SGLang's class of this family takes no file of factors (sglang issue 37379)",
                kWriteScales, ParamFamily},
    ServedCheck{"param-backends", kS, kRemark, "--quantization-param-path",
                "builds with sglang issue 18818 load the factors and serve at 1.0 on some back "
                "ends; tensors are loaded by all",
                "", ParamRemark},
    ServedCheck{"broken-json", kS | kN | kV, kIgnores, "JSON files",
                "cannot be read; SGLang logs it and takes 1.0", "write it anew", BrokenJson},
    ServedCheck{"outer-scale-inert", kV, kIgnores, "VLLM_NVFP4_MLA_SCALES_FILE",
                "these are scales of latents (MLA) of 512, which this model has not", kWriteRecipe,
                OuterScaleInert},
    ServedCheck{"outer-scale-schema", kV, kRefuses, "VLLM_NVFP4_MLA_SCALES_FILE",
                "nvfp4_ds_mla_outer_scale_v1 has num_layers 78, latent_dim 512, denominator 2688 "
                "and 78 positive scales",
                "oscar-export ARTIFACT --to nvfp4-mla-scales", OuterScaleSchema},
    ServedCheck{
        "outer-scale-fork", kV, kRemark, "VLLM_NVFP4_MLA_SCALES_FILE",
        "read by local-inference-lab's fork with --kv-cache-dtype nvfp4_ds_mla; vLLM itself "
        "does not know the variable",
        "", OuterScaleRemark},
    ServedCheck{"onnx-lengths", kN, kRefuses, "k_scales, v_scales",
                "keys and values have an entry for each layer with a cache", kWriteGenai,
                OnnxLengths},
    ServedCheck{"onnx-layer-ids", kN, kMisreads, "layer_ids",
                "without layer_ids entry i goes to layer i, and the layers with a cache have other "
                "numbers",
                kWriteGenai, OnnxLayerIds},
    ServedCheck{"onnx-widths", kN, kRefuses, "k_scales, v_scales",
                "an entry is one number, or one for each channel of all KV heads", kWriteGenai,
                OnnxWidths},
    ServedCheck{"onnx-values", kN, kMisreads, "k_scales, v_scales",
                "scales are positive, and 1 is what was never measured", kWriteGenai, OnnxValues},
    // Rotations and means.
    ServedCheck{"rotation-of-one-side", kS | kO | kV, kMisreads, "k_rotation*.pt, v_rotation*.pt",
                "the other side is missing and is quantized unrotated", kWriteRotations,
                RotationOfOneSide},
    ServedCheck{"rotation-layers", kS | kO | kV, kRefuses, "layers of rotations",
                "a rotation is missing for layers with a cache; they go by the checkpoint's own "
                "numbers",
                kWriteRotations, RotationLayers},
    ServedCheck{"rotation-shape", kS | kO | kV, kRefuses, "sizes of rotations",
                "a rotation has the size of the layer's heads", kWriteRotations, RotationShape},
    ServedCheck{"rotation-per-head", kS | kV, kRefuses, "rotations per head",
                "it takes one rotation for a layer (SGLang: except October's tree, sglang-oct, and "
                "pull request 20)",
                kWriteRotations, RotationPerHead},
    ServedCheck{
        "rotation-fields-unread", kS | kV, kMisreads, "key means, query matrices",
        "it reads 'rotation' alone, so keys are not centred, or queries turned by the wrong "
        "matrix; October's tree (sglang-oct) reads all of it",
        kWriteRotations, RotationFieldsUnread},
    ServedCheck{"rotation-absorbed-twice", kS | kO | kV | kL, kMisreads, "oscar_fold.json",
                "v_proj and o_proj of this copy rotate values already, and this rotates them again",
                "give the runtime no rotation of values (the identity)", RotationAbsorbedTwice},
    ServedCheck{"rotation-broken", kS | kO | kV, kMisreads, "values of rotations",
                "the runtime loads it without a look: a matrix that is no rotation changes what "
                "attention computes",
                kWriteRotations, RotationBroken},
    ServedCheck{"gguf-rotations-apart", kL, kIgnores, "attn_k_rot, attn_v_rot",
                "llama.cpp looks for rotations in the model's own GGUF",
                "oscar-export ARTIFACT --to llamacpp --merge-into MODEL.gguf", GgufRotationsApart},
    ServedCheck{"gguf-rotations-of-some-layers", kL, kMisreads, "attn_k_rot, attn_v_rot",
                "these tensors are optional, so the other layers are quantized unrotated",
                "oscar-export ARTIFACT --to llamacpp --merge-into MODEL.gguf",
                GgufRotationsOfSomeLayers},
    ServedCheck{"gguf-rotation-shape", kL, kRefuses, "attn_k_rot, attn_v_rot",
                "a rotation is F32 and as wide as the layer's heads",
                "oscar-export ARTIFACT --to llamacpp --merge-into MODEL.gguf", GgufRotationShape},
    ServedCheck{"gguf-not-orthogonal", kL, kMisreads, "values of attn_k_rot, attn_v_rot",
                "values are turned back by the transpose, which does not undo this matrix",
                "oscar-export ARTIFACT --to llamacpp --merge-into MODEL.gguf", GgufNotOrthogonal},
    ServedCheck{"means-basis-unsaid", kL, kMisreads, "kv_mean_center.k_rot",
                "the file does not say whether its means are of rotated keys; the loader only "
                "warns, and means of the other basis make the cache worse",
                kWriteMeans, MeansBasisUnsaid},
    ServedCheck{"means-layers", kL, kIgnores, "kv_bar.blk.<i>.k",
                "the model has no attention in these layers", kWriteMeans, MeansOfOtherLayers},
    ServedCheck{"means-width", kL, kRefuses, "kv_bar.blk.<i>.k",
                "means have head_dim times the number of KV heads", kWriteMeans, MeansWidth},
    ServedCheck{"means-of-other-model", kL, kMisreads, "kv_mean_center.model_sha256",
                "the means are of another GGUF than the one beside them", kWriteMeans,
                MeansOfOtherModel},
    ServedCheck{"means-not-numbers", kL, kMisreads, "values of kv_bar.blk.<i>.k",
                "a mean is not a number, and neither is a key without it", kWriteMeans,
                MeansNotNumbers},
    ServedCheck{
        "means-unrotated", kL, kRemark, "kv_mean_center.k_rot",
        "keys of such heads are rotated unless LLAMA_ATTN_ROT_DISABLE=1 is set, and without "
        "it these means are refused",
        "", MeansUnrotated},
    ServedCheck{"means-fork", kL, kRemark, "kv_bar.blk.<i>.k",
                "by PrismML's fork with --kv-mean-center and keys of q4_0; llama.cpp itself has no "
                "such flag",
                "", MeansRemark},
    // Everything else.
    ServedCheck{"files-of-others", kV | kS | kO | kT | kL | kN, kIgnores, "everything",
                "it reads nothing of what is here for a cache",
                "oscar-export --list names what writes for it", FilesOfOthers},
    ServedCheck{"broken-files", kV | kS | kO | kT | kL | kN, kRefuses, "weight and model files",
                "cannot be read", "fetch or write it again", BrokenFiles},
};

constexpr std::array kRuntimes = {
    NamedRuntime{"vllm", kServedVllm},
    NamedRuntime{"sglang", kServedSglang},
    NamedRuntime{"sglang-oct", kServedSglangOct},
    NamedRuntime{"trtllm", kServedTrtllm},
    NamedRuntime{"llamacpp", kServedLlamacpp},
    NamedRuntime{"onnx", kServedOnnx},
};

}  // namespace

std::span<const ServedCheck> ServedChecks() { return kChecks; }
std::span<const NamedRuntime> ServedRuntimes() { return kRuntimes; }

bool ServedVerdict::wrong() const {
  return std::ranges::any_of(findings, [](const ServedFinding& finding) {
    return finding.check->effect != ServedEffect::kRemark;
  });
}

std::string_view ServedEffectName(ServedEffect effect) {
  switch (effect) {
    case ServedEffect::kIgnores:
      return "ignores";
    case ServedEffect::kMisreads:
      return "misreads";
    case ServedEffect::kRefuses:
      return "refuses";
    case ServedEffect::kRemark:
      return "takes";
  }
  return {};
}

std::vector<ServedVerdict> JudgeServed(const ServedDirectory& served, unsigned runtimes) {
  std::vector<ServedVerdict> verdicts;
  for (const NamedRuntime& runtime : kRuntimes) {
    const ServedView view = ViewOf(served, runtime.runtime);
    const bool asked = (runtimes & runtime.runtime) != 0;
    if (runtimes == 0 ? !ReadsAnything(view) : !asked) continue;
    ServedVerdict verdict{.runtime = runtime.name, .loads = Loaded(view), .findings = {}};
    for (const ServedCheck& check : kChecks) {
      if ((check.runtimes & runtime.runtime) == 0) continue;
      if (std::string found = check.find(view); !found.empty())
        verdict.findings.push_back({&check, std::move(found)});
    }
    verdicts.push_back(std::move(verdict));
  }
  return verdicts;
}

}  // namespace oscar
