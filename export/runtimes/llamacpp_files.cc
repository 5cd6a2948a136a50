// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes rotations for llama.cpp's branch zhongzhu/llamacpp of FutureMLS-Lab/OSCAR, as tensors
// blk.<i>.attn_k_rot.weight and blk.<i>.attn_v_rot.weight of a model's GGUF (see
// oscar-rotation/export_rot_kv_gguf.py there). Trap: ggml_mul_mat(a, x) multiplies rows of a by x,
// so the file stores R transposed, row-major.
#include <fmt/format.h>

#include <optional>

#include "capture/files/atomic_file.h"
#include "export/artifact/chosen_rotations.h"
#include "export/formats/gguf_writer.h"
#include "export/formats/sglang_choice.h"
#include "export/runtimes/exporter.h"
#include "export/runtimes/gguf_model.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr int64_t kCacheBlock = 32;  // values per block of q2_0
constexpr std::string_view kRotationsName = "rotations.gguf";

// Returns the transpose [d, d] of a matrix whose rows are first put into `order`: row i is row
// order[i] of the original.
FloatTensorPtr Transposed(const FloatTensor& matrix, const std::vector<int64_t>& order) {
  const auto d = static_cast<size_t>(matrix.shape.at(0));
  FloatTensor out{matrix.shape, std::vector<float>(d * d)};
  for (size_t i = 0; i < d; ++i)
    for (size_t j = 0; j < d; ++j)
      out.values[j * d + i] = matrix.values[static_cast<size_t>(order[i]) * d + j];
  return std::make_shared<const FloatTensor>(std::move(out));
}

// Checks that layer numbers are positions in the model, 0 to L-1 without gaps, and that head dims
// fit into blocks. A missing layer would be stored at 2 bits without any rotation
// (LLAMA_KV_NO_HADAMARD).
void CheckLlamacppCarries(const SglangChoice& choice, const std::string& artifact) {
  for (size_t i = 0; i < choice.layers.size(); ++i) {
    const SglangChoiceLayer& layer = choice.layers[i];
    if (layer.layer_id != static_cast<int64_t>(i)) {
      throw InputError(
          fmt::format("{}: found layer {} instead of layer {}; llama.cpp stores every layer's "
                      "cache in 2 bits and needs rotations for layers 0 to L-1; use --to sglang, "
                      "which writes only the existing ones",
                      artifact, layer.layer_id, i));
    }
    for (const FloatTensorPtr& rotation : {layer.k, layer.v}) {
      const int64_t dim = rotation->shape.back();
      if (dim % kCacheBlock == 0) continue;
      throw InputError(
          fmt::format("{}: layer {} has head dimension {}, but llama.cpp's q2_0 cache needs "
                      "multiples of {}; use --to sglang, which takes any",
                      artifact, layer.layer_id, dim, kCacheBlock));
    }
  }
}

std::vector<GgufTensor> Tensors(const SglangChoice& choice, std::string_view model_type) {
  std::vector<GgufTensor> tensors;
  for (const SglangChoiceLayer& layer : choice.layers) {
    const std::string name = fmt::format("blk.{}.attn_", layer.layer_id);
    tensors.push_back({name + "k_rot.weight",
                       Transposed(*layer.k, GgufKeyOrder(model_type, layer.k->shape.back()))});
    tensors.push_back(
        {name + "v_rot.weight", Transposed(*layer.v, SameOrder(layer.v->shape.back()))});
  }
  return tensors;
}

// Returns header entries that say where the rotations come from and which settings they need.
std::vector<GgufEntry> Identity(const SglangChoice& choice, const Json& program) {
  const SglangServing& serving = choice.serving;
  return {{"oscar.layout", "transposed: ggml_mul_mat(rot, x) = x R"},
          {"oscar.basis", "keys after the rotary embedding, values as cached"},
          {"oscar.clip_ratio", static_cast<float>(serving.k_clip_ratio)},
          {"oscar.sink_tokens", static_cast<uint32_t>(serving.sink_tokens)},
          {"oscar.recent_tokens", static_cast<uint32_t>(serving.recent_tokens)},
          {"oscar.quant_group_size", static_cast<uint32_t>(kCacheBlock)},
          {"oscar.folded_checkpoint", choice.folded},
          {"oscar.version", program.value("version", "unknown")},
          {"oscar.artifact_sha256", choice.calibration.value("artifact_sha256", "")},
          {"oscar.calibration", choice.calibration.dump()}};
}

// `fitted`: the name of the GGUF to which the rotations were fitted, or empty.
std::string LlamacppLaunch(const SglangChoice& choice, const std::filesystem::path& model,
                           const std::string& fitted, bool own) {
  std::vector<std::string> notes = {
      "They need the branch zhongzhu/llamacpp of github.com/FutureMLS-Lab/OSCAR, which reads them "
      "as tensors",
      "in the model's own file. There q2_0 has a scale for every 32 values, and windows are "
      "16-bit."};
  if (own) notes.emplace_back("Keys and values share one clip ratio; the keys' ratio is used.");
  if (model.empty()) {
    notes.insert(notes.end(),
                 {"This command makes MERGED.gguf from the model's file:",
                  fmt::format("oscar-export ARTIFACT --to llamacpp --merge-into {} -o DIRECTORY",
                              fitted.empty() ? "MODEL.gguf" : ShellWord(fitted))});
  }
  if (choice.folded) {
    notes.insert(notes.end(),
                 {"They were fitted with scales folded into q and k, so MODEL.gguf must be made",
                  "from a folded copy: oscar-export ARTIFACT --to folded-checkpoint --model " +
                      ShellWord(LaunchPath(choice.calibration)) + " -o FOLDED_MODEL"});
  }
  const SglangServing& serving = choice.serving;
  return LaunchHead("llama.cpp", LaunchModel(choice.calibration), notes) +
         fmt::format(
             "LLAMA_KV_NO_HADAMARD=1 \\\n"
             "LLAMA_KV_CLIP_RATIO={} \\\n"
             "LLAMA_KV_HP_SINK={} \\\n"
             "LLAMA_KV_HP_RECENT={} \\\n"
             "llama-server -m {} --cache-type-k q2_0 --cache-type-v q2_0\n",
             serving.k_clip_ratio, serving.sink_tokens, serving.recent_tokens,
             model.empty() ? "MERGED.gguf" : ShellWord(std::filesystem::absolute(model).string()));
}

}  // namespace

void WriteLlamacppFiles(const Artifact& artifact, const ExportRequest& request,
                        const std::filesystem::path& output) {
  const SglangChoice choice = request.chosen
                                  ? ChosenForRuntime(artifact, Consumer::kLlamacpp, request.folded)
                                  : OwnRotations(artifact);
  CheckLlamacppCarries(choice, artifact.directory().string());
  std::optional<GgufFile> model;
  if (!request.merge_into.empty()) {
    model = GgufFile::Open(request.merge_into);
    CheckGgufModel(*model, artifact, /*all_layers=*/true);
  }
  const std::string model_type = ModelTypeOf(artifact);
  const std::optional<FittedGguf> fitted = FittedGgufOf(artifact);
  AtomicDirectory directory(output);
  std::vector<GgufEntry> entries =
      Identity(choice, artifact.manifest().value("program", Json::object()));
  if (model) {
    AppendToGguf(*model, directory.staging() / request.merge_into.filename(), entries,
                 Tensors(choice, model_type));
  } else {
    entries.insert(entries.begin(),
                   {{"general.type", "oscar-rotations"},
                    {"general.architecture", "oscar"},
                    {"general.name", LaunchModel(choice.calibration) + ", rotations"}});
    WriteGguf(directory.staging() / kRotationsName, entries, Tensors(choice, model_type));
  }
  WriteFileAtomically(
      directory.staging() / "launch.txt",
      LlamacppLaunch(choice,
                     model ? output / request.merge_into.filename() : std::filesystem::path(),
                     fitted ? fitted->name : "", !request.chosen));
  directory.Commit();
}

}  // namespace oscar
