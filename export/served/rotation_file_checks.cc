// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks of rotations and key means: .pt files of OSCAR's SGLang and of vLLM's pull request 46774,
// tensors of llama.cpp's branches (attn_k_rot, attn_v_rot; kv_bar of PrismML's fork); and of what
// belongs to no file.
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "capture/files/digest.h"
#include "export/served/found.h"

namespace oscar {
namespace {

bool IsMeans(const ServedRotations& rotations) {
  return rotations.content.kind == RotationKind::kKMean;
}

// The first layer, of any rotation file, for which `find` finds something.
template <typename Find>
std::string InRotations(const ServedView& view, const Find& find) {
  for (const ServedRotations& rotations : view.at.rotations) {
    for (const RotationLayer& layer : rotations.content.layers) {
      if (const std::string found = find(rotations, layer); !found.empty())
        return fmt::format("{}, layer {} ({})", Escaped(rotations.file), layer.layer_id, found);
    }
  }
  return {};
}

bool IsIdentity(const FloatTensor& rotation) {
  const auto d = static_cast<size_t>(rotation.shape.back());
  for (size_t i = 0; i < rotation.values.size(); ++i)
    if (rotation.values[i] != ((i % (d * d)) % (d + 1) == 0 ? 1.F : 0.F)) return false;
  return true;
}

// Layers of "blk.<i><ending>" tensors of a GGUF.
std::map<int64_t, const GgufTensorInfo*> GgufLayers(const GgufFile& file, std::string_view begin,
                                                    std::string_view end) {
  std::map<int64_t, const GgufTensorInfo*> layers;
  for (const GgufTensorInfo& tensor : file.tensors) {
    const std::string_view name = tensor.name;
    if (!name.starts_with(begin) || !name.ends_with(end) ||
        name.size() <= begin.size() + end.size())
      continue;
    const auto id =
        ParseLayerId(name.substr(begin.size(), name.size() - begin.size() - end.size()));
    if (id) layers[*id] = &tensor;
  }
  return layers;
}

using Rotations = std::map<int64_t, const GgufTensorInfo*>;
Rotations KeyRotations(const GgufFile& file) {
  return GgufLayers(file, "blk.", ".attn_k_rot.weight");
}
Rotations ValueRotations(const GgufFile& file) {
  return GgufLayers(file, "blk.", ".attn_v_rot.weight");
}
Rotations Means(const GgufFile& file) { return GgufLayers(file, "kv_bar.blk.", ".k"); }

// Float32 values of a tensor; empty: of another type.
Eigen::VectorXf GgufValues(const GgufFile& file, const GgufTensorInfo& tensor) {
  const auto bytes = file.Bytes(tensor);
  Eigen::VectorXf values(tensor.type == 0 ? static_cast<int64_t>(bytes.size() / sizeof(float)) : 0);
  if (values.size() > 0) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

// The layers with a cache that a file of means is for: of the GGUF beside it, else of config.json.
const std::vector<ServedLayer>& CachedLayers(const ServedView& view) {
  for (const ServedGguf& gguf : view.at.ggufs)
    if (gguf.is_model) return gguf.layers;
  return view.at.layers;
}

template <typename Find>
std::string InGgufs(const ServedView& view, const Find& find) {
  for (const ServedGguf& gguf : view.at.ggufs) {
    if (const std::string found = find(gguf); !found.empty())
      return fmt::format("{} ({})", Escaped(gguf.file), found);
  }
  return {};
}

bool IsSquare(const GgufTensorInfo& tensor, int64_t dim) {
  return tensor.type == 0 && tensor.dims.size() == 2 &&
         tensor.dims[0] == static_cast<uint64_t>(dim) &&
         tensor.dims[1] == static_cast<uint64_t>(dim);
}

}  // namespace

std::string RotationOfOneSide(const ServedView& view) {
  bool k = false, v = view.at.values_absorbed;
  const ServedRotations* any = nullptr;
  for (const ServedRotations& rotations : view.at.rotations) {
    if (IsMeans(rotations) || rotations.side == 0) continue;
    (rotations.side == 'k' ? k : v) = true;
    any = &rotations;
  }
  return any == nullptr || (k && v) ? "" : Escaped(any->file);
}

std::string RotationLayers(const ServedView& view) {
  for (const ServedRotations& rotations : view.at.rotations) {
    if (IsMeans(rotations) || rotations.content.layers.empty()) continue;
    if (rotations.content.kind == RotationKind::kStacked) continue;  // has no numbers
    std::vector<int64_t> missing;
    for (const ServedLayer& layer : view.at.layers) {
      const bool there = std::ranges::any_of(
          rotations.content.layers,
          [&](const RotationLayer& given) { return given.layer_id == layer.layer_id; });
      if (!there) missing.push_back(layer.layer_id);
    }
    if (!missing.empty())
      return fmt::format("{} ({})", Escaped(rotations.file), NamingLayers(missing));
  }
  return {};
}

std::string RotationShape(const ServedView& view) {
  return InRotations(view, [&](const ServedRotations& file, const RotationLayer& layer) {
    const ServedLayer* of_model = view.at.Find(layer.layer_id);
    if (of_model == nullptr || !layer.rotation || file.side == 0) return std::string();
    const auto& shape = layer.rotation->shape;
    const int64_t dim = file.side == 'k' ? of_model->head_dim : of_model->v_head_dim;
    const bool heads = shape.size() == 2 || shape[0] == of_model->num_kv_heads;
    return shape.back() == dim && heads
               ? std::string()
               : fmt::format("[{}], heads of {} x {}", fmt::join(shape, ", "),
                             of_model->num_kv_heads, dim);
  });
}

std::string RotationPerHead(const ServedView& view) {
  return InRotations(view, [](const ServedRotations&, const RotationLayer& layer) {
    return layer.rotation && layer.rotation->shape.size() > 2
               ? fmt::format("[{}]", fmt::join(layer.rotation->shape, ", "))
               : std::string();
  });
}

std::string RotationFieldsUnread(const ServedView& view) {
  return InRotations(view, [](const ServedRotations& file, const RotationLayer& layer) {
    if (IsMeans(file)) return std::string("means alone");
    if (layer.k_mean) return std::string("k_mean");
    if (layer.q_rotation && layer.q_rotation != layer.rotation) return std::string("q_rotation");
    return std::string(layer.o_rotation && layer.o_rotation != layer.rotation ? "o_rotation" : "");
  });
}

std::string RotationAbsorbedTwice(const ServedView& view) {
  if (!view.at.values_absorbed) return {};
  if (view.runtime == kServedLlamacpp) {
    return InGgufs(view, [](const ServedGguf& gguf) {
      return std::string(ValueRotations(gguf.content).empty() ? "" : "attn_v_rot");
    });
  }
  return InRotations(view, [](const ServedRotations& file, const RotationLayer& layer) {
    const bool turns = file.side == 'v' && layer.rotation && !IsIdentity(*layer.rotation);
    return std::string(turns ? "not the identity" : "");
  });
}

std::string RotationBroken(const ServedView& view) {
  for (const ServedProblem& problem : view.at.unread)
    if (problem.file.ends_with(".pt") && problem.file.find("rotation") != std::string::npos)
      return Escaped(problem.why);
  return {};
}

std::string GgufRotationsApart(const ServedView& view) {
  return InGgufs(view, [](const ServedGguf& gguf) {
    const bool rotates =
        !KeyRotations(gguf.content).empty() || !ValueRotations(gguf.content).empty();
    return std::string(rotates && !gguf.is_model ? "no layers of a model" : "");
  });
}

std::string GgufRotationsOfSomeLayers(const ServedView& view) {
  return InGgufs(view, [](const ServedGguf& gguf) -> std::string {
    if (!gguf.is_model) return {};
    const Rotations k = KeyRotations(gguf.content), v = ValueRotations(gguf.content);
    for (const auto& [name, rotations] : {std::pair("attn_k_rot", &k), {"attn_v_rot", &v}}) {
      // Values of none: they may be absorbed.
      if (rotations->empty() && (rotations == &v || v.empty())) continue;
      std::vector<int64_t> missing;
      for (const ServedLayer& layer : gguf.layers)
        if (!rotations->contains(layer.layer_id)) missing.push_back(layer.layer_id);
      if (!missing.empty()) return fmt::format("no {} in {}", name, NamingLayers(missing));
    }
    return {};
  });
}

std::string GgufRotationShape(const ServedView& view) {
  return InGgufs(view, [](const ServedGguf& gguf) -> std::string {
    for (const ServedLayer& layer : gguf.layers) {
      for (const bool values : {false, true}) {
        const Rotations all = values ? ValueRotations(gguf.content) : KeyRotations(gguf.content);
        const auto found = all.find(layer.layer_id);
        const int64_t dim = values ? layer.v_head_dim : layer.head_dim;
        if (found != all.end() && dim > 0 && !IsSquare(*found->second, dim))
          return fmt::format("{}, heads of {}", Escaped(found->second->name), dim);
      }
    }
    return {};
  });
}

std::string GgufNotOrthogonal(const ServedView& view) {
  return InGgufs(view, [](const ServedGguf& gguf) -> std::string {
    for (const Rotations& all : {KeyRotations(gguf.content), ValueRotations(gguf.content)}) {
      for (const auto& [id, tensor] : all) {
        const auto dim = static_cast<int64_t>(tensor->dims.empty() ? 0 : tensor->dims[0]);
        const Eigen::VectorXf values = GgufValues(gguf.content, *tensor);
        if (dim == 0 || dim > 4096 || values.size() != dim * dim) continue;
        const Eigen::Map<const Eigen::MatrixXf> matrix(values.data(), dim, dim);
        const Eigen::MatrixXd r = matrix.cast<double>();
        const double residual =
            (r.transpose() * r - Eigen::MatrixXd::Identity(dim, dim)).cwiseAbs().maxCoeff();
        if (!(residual <= kMaxFloat32FileOrthogonality))
          return fmt::format("{}: {:.2g} from a rotation", Escaped(tensor->name), residual);
      }
    }
    return {};
  });
}

std::string MeansBasisUnsaid(const ServedView& view) {
  return InGgufs(view, [](const ServedGguf& gguf) {
    const bool means = gguf.is_means || !Means(gguf.content).empty();
    return std::string(means && !gguf.content.entries.contains("kv_mean_center.k_rot")
                           ? "no kv_mean_center.k_rot"
                           : "");
  });
}

std::string MeansOfOtherLayers(const ServedView& view) {
  const std::vector<ServedLayer>& layers = CachedLayers(view);
  return InGgufs(view, [&](const ServedGguf& gguf) -> std::string {
    if (layers.empty()) return {};
    for (const auto& [id, tensor] : Means(gguf.content)) {
      if (std::ranges::find(layers, id, &ServedLayer::layer_id) == layers.end())
        return fmt::format("layer {}", id);
    }
    return {};
  });
}

std::string MeansWidth(const ServedView& view) {
  const std::vector<ServedLayer>& layers = CachedLayers(view);
  return InGgufs(view, [&](const ServedGguf& gguf) -> std::string {
    const Rotations means = Means(gguf.content);
    for (const ServedLayer& layer : layers) {
      const auto found = means.find(layer.layer_id);
      const int64_t width = layer.num_kv_heads * layer.head_dim;
      if (found == means.end() || width == 0) continue;
      uint64_t count = found->second->type == 0 ? 1 : 0;
      for (const uint64_t dim : found->second->dims) count *= dim;
      if (count != static_cast<uint64_t>(width))
        return fmt::format("{}, not {} of F32", Escaped(found->second->name), width);
    }
    return {};
  });
}

std::string MeansOfOtherModel(const ServedView& view) {
  const auto model = std::ranges::find_if(view.at.ggufs, &ServedGguf::is_model);
  if (model == view.at.ggufs.end()) return {};
  return InGgufs(view, [&](const ServedGguf& gguf) -> std::string {
    const auto found = gguf.content.entries.find("kv_mean_center.model_sha256");
    if (found == gguf.content.entries.end()) return {};
    const auto* said = std::get_if<std::string_view>(&found->second);
    const std::string digest = DigestFile(view.at.path / model->file).sha256;
    return said != nullptr && *said == digest ? "" : "of another than " + Escaped(model->file);
  });
}

std::string MeansNotNumbers(const ServedView& view) {
  return InGgufs(view, [](const ServedGguf& gguf) -> std::string {
    for (const auto& [id, tensor] : Means(gguf.content))
      if (!GgufValues(gguf.content, *tensor).allFinite()) return fmt::format("layer {}", id);
    return {};
  });
}

std::string MeansUnrotated(const ServedView& view) {
  return InGgufs(view, [&](const ServedGguf& gguf) -> std::string {
    const auto said = gguf.content.entries.find("kv_mean_center.k_rot");
    if (said == gguf.content.entries.end() || said->second != GgufValue(false)) return {};
    for (const ServedLayer& layer : CachedLayers(view))
      if (layer.head_dim % 64 == 0) return fmt::format("heads of {}", layer.head_dim);
    return {};
  });
}

std::string MeansRemark(const ServedView& view) {
  return InGgufs(view, [](const ServedGguf& gguf) -> std::string {
    const size_t layers = Means(gguf.content).size();
    return layers == 0 ? "" : fmt::format("means of {} layers", layers);
  });
}

std::string FilesOfOthers(const ServedView& view) {
  if (ReadsAnything(view)) return {};
  std::vector<std::string> what;
  if (!view.at.scales.empty()) what.push_back(fmt::format("{} scales", view.at.scales.size()));
  if (const CacheRecipe* recipe = view.at.Recipe())
    what.push_back(fmt::format("{} of {}", recipe->Algorithm(), recipe->file));
  for (const ScaleFile& file : view.at.scale_files) what.push_back(file.file);
  for (const ServedRotations& rotations : view.at.rotations) what.push_back(rotations.file);
  for (const ServedGguf& gguf : view.at.ggufs) what.push_back(gguf.file);
  return Naming(what);
}

std::string BrokenFiles(const ServedView& view) {
  std::vector<std::string> whys;
  for (const ServedProblem& problem : view.at.unread) {
    if (problem.file == "config.json" || problem.file.ends_with(".safetensors") ||
        problem.file.ends_with(".gguf"))
      whys.push_back(problem.why);
  }
  return Naming(whys);
}

}  // namespace oscar
