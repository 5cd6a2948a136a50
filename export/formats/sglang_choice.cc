// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Upstream's field `created_at_unix` is not written, so that two equal exports have equal bytes.
#include "export/formats/sglang_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "capture/files/atomic_file.h"
#include "export/formats/sglang_pair.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

bool IsPerHead(const FloatTensorPtr& matrices) { return matrices->shape.size() == 3; }

FloatTensorPtr NoMean(const SglangChoiceLayer& layer) {
  const int64_t dim = layer.k->shape.back();
  return std::make_shared<const FloatTensor>(
      FloatTensor{{layer.num_kv_heads, dim},
                  std::vector<float>(static_cast<size_t>(layer.num_kv_heads * dim), 0.0F)});
}

// Fields that at least one layer has.
struct Fields {
  bool k_per_head, v_per_head, q, k_mean, o;
  bool k_eigenvalues, v_eigenvalues;  // only if every layer has them
};

Fields FieldsOf(const SglangChoice& choice) {
  const auto any = [&](auto has) { return std::ranges::any_of(choice.layers, has); };
  return {any([](const SglangChoiceLayer& layer) { return IsPerHead(layer.k); }),
          any([](const SglangChoiceLayer& layer) { return IsPerHead(layer.v); }),
          any([](const SglangChoiceLayer& layer) { return layer.q != nullptr; }),
          any([](const SglangChoiceLayer& layer) { return layer.k_mean != nullptr; }),
          any([](const SglangChoiceLayer& layer) { return layer.o != nullptr; }),
          std::ranges::all_of(
              choice.layers,
              [](const SglangChoiceLayer& layer) { return layer.k_eigenvalues != nullptr; }),
          std::ranges::all_of(choice.layers, [](const SglangChoiceLayer& layer) {
            return layer.v_eigenvalues != nullptr;
          })};
}

void CheckVersion1(const SglangChoice& choice) {
  for (const SglangChoiceLayer& layer : choice.layers) {
    const char* extra = IsPerHead(layer.k) || IsPerHead(layer.v) ? "a rotation per KV head"
                        : layer.q != nullptr                     ? "a separate matrix for queries"
                        : layer.k_mean != nullptr                ? "a key mean"
                        : layer.o != nullptr ? "a separate matrix that undoes the value rotation"
                                             : nullptr;
    if (extra == nullptr) continue;
    throw InputError(fmt::format(
        "layer {} has {}, which version 1 files cannot hold; expected one rotation per side",
        layer.layer_id, extra));
  }
}

SglangFile KeyFile(const SglangChoice& choice, const Fields& fields, bool v3) {
  SglangFile file{.name = v3 ? "k_rotation_oscar2_auto.pt" : "k_rotation_auto.pt",
                  .version = v3 ? 3 : 1,
                  .objective = v3 ? "oscar2_auto" : "qqt_auto",
                  .source_grouping = fields.k_per_head ? "head" : "layer",
                  .value_target = {},
                  .transform = {},
                  .calibration = choice.calibration,
                  .layers = {}};
  if (v3) {
    file.transform = {
        {"key", choice.key_transform}, {"centered", fields.k_mean}, {"orthogonal", !fields.q}};
  }
  for (const SglangChoiceLayer& layer : choice.layers) {
    const auto matrices = [&](const FloatTensorPtr& of) {
      return fields.k_per_head ? MatrixPerHead(of, layer.num_kv_heads) : of;
    };
    const FloatTensorPtr rotation = matrices(layer.k);
    file.layers.push_back({layer.layer_id, {{"rotation", &RotationLayer::rotation, rotation}}});
    auto& tensors = file.layers.back().tensors;
    if (fields.k_eigenvalues)
      tensors.push_back({"eigenvalues", &RotationLayer::eigenvalues, layer.k_eigenvalues});
    if (fields.q) {
      tensors.push_back(
          {"q_rotation", &RotationLayer::q_rotation, layer.q ? matrices(layer.q) : rotation});
    }
    if (fields.k_mean) {
      tensors.push_back(
          {"k_mean", &RotationLayer::k_mean, layer.k_mean ? layer.k_mean : NoMean(layer)});
    }
  }
  return file;
}

SglangFile ValueFile(const SglangChoice& choice, const Fields& fields, bool v3) {
  SglangFile file{.name = v3 ? "v_rotation_oscar2_auto.pt" : "v_rotation_auto.pt",
                  .version = v3 ? 3 : 1,
                  .objective = v3 ? "oscar2_v_auto" : "sst_auto",
                  .source_grouping = fields.v_per_head ? "head" : "layer",
                  .value_target = {},
                  .transform = {},
                  .calibration = choice.calibration,
                  .layers = {}};
  // If o_rotation is absent, the loader uses the rotation instead.
  if (v3) file.transform = {{"key", "oscar"}, {"centered", false}, {"orthogonal", !fields.o}};
  for (const SglangChoiceLayer& layer : choice.layers) {
    const auto matrices = [&](const FloatTensorPtr& of) {
      return fields.v_per_head ? MatrixPerHead(of, layer.num_kv_heads) : of;
    };
    file.layers.push_back(
        {layer.layer_id, {{"rotation", &RotationLayer::rotation, matrices(layer.v)}}});
    auto& tensors = file.layers.back().tensors;
    if (fields.v_eigenvalues)
      tensors.push_back({"eigenvalues", &RotationLayer::eigenvalues, layer.v_eigenvalues});
    if (fields.o) {
      tensors.push_back(
          {"o_rotation", &RotationLayer::o_rotation, matrices(layer.o ? layer.o : layer.v)});
    }
  }
  return file;
}

}  // namespace

FloatTensorPtr MatrixPerHead(const FloatTensorPtr& matrices, int64_t num_kv_heads) {
  if (IsPerHead(matrices)) return matrices;
  if (num_kv_heads == 0) {
    throw InputError(
        "the number of KV heads is unknown, because the imported file has one matrix for all of "
        "them, but this target needs one per KV head; use --to sglang or --to vllm, which write "
        "one for all");
  }
  FloatTensor repeated{{num_kv_heads, matrices->shape[0], matrices->shape[1]}, {}};
  for (int64_t head = 0; head < num_kv_heads; ++head) {
    repeated.values.insert(repeated.values.end(), matrices->values.begin(), matrices->values.end());
  }
  return std::make_shared<const FloatTensor>(std::move(repeated));
}

void WriteSglangChoice(const std::filesystem::path& out, const SglangChoice& choice,
                       SglangVersion version, const PairServer& server) {
  if (choice.layers.empty()) throw InputError("the artifact has no layers to export");
  const bool v3 = version == SglangVersion::kV3;
  if (!v3) CheckVersion1(choice);
  const Fields fields = FieldsOf(choice);
  const SglangFile k = KeyFile(choice, fields, v3), v = ValueFile(choice, fields, v3);
  AtomicDirectory directory(out);
  WriteSglangPair(directory.staging(), k, v);
  const std::string model = LaunchModel(choice.calibration);
  std::vector<std::string> notes = server.notes;
  if (choice.folded) {
    notes.insert(
        notes.end(),
        {"They were fitted with scales folded into q and k, so they only fit a folded copy of",
         "the model. This command writes FOLDED_MODEL:",
         "oscar-export ARTIFACT --to folded-checkpoint --model " +
             ShellWord(LaunchPath(choice.calibration)) + " -o FOLDED_MODEL"});
  }
  WriteFileAtomically(
      directory.staging() / "launch.txt",
      LaunchHead(server.name, model, notes) +
          server.launch(choice.serving, out / k.name, out / v.name,
                        choice.folded ? "FOLDED_MODEL" : LaunchPath(choice.calibration)));
  directory.Commit();
}

}  // namespace oscar
