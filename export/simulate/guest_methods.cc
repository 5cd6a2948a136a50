// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/simulate/guest_methods.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "export/simulate/affine_cost.h"
#include "export/simulate/rotation_caches.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

at::Tensor TensorOf(const FloatTensor& tensor, std::vector<int64_t> shape) {
  return at::tensor(tensor.values, at::kFloat).view(shape);
}

// Returns [num_rotations, dim] from a vector per head or one for all.
at::Tensor VectorOf(const FloatTensor& tensor) {
  return TensorOf(tensor, {-1, tensor.shape.back()});
}

const RotationLayer& LayerOf(const RotationFile& file, const MethodContext& context,
                             size_t layer_index) {
  const std::string path = file.path.string();
  if (file.kind == RotationKind::kStacked) {  // layers in order, without numbers
    if (file.layers.size() != context.layers().size()) {
      throw InputError(
          fmt::format("{}: has matrices for {} layers, but the model has {} layers with attention",
                      path, file.layers.size(), context.layers().size()));
    }
    return file.layers[layer_index];
  }
  const int64_t id = context.layers()[layer_index].layer_id;
  const auto found = std::ranges::find(file.layers, id, &RotationLayer::layer_id);
  if (found != file.layers.end()) return *found;
  throw InputError(fmt::format("{}: lacks layer {} of the model, but has {} other layers", path, id,
                               file.layers.size()));
}

RotatedQuantizer SideOf(const std::optional<RotationFile>& file, const MethodContext& context,
                        size_t layer_index, char side, double clip_ratio) {
  RotatedQuantizer quantizer{
      .codes = {.clip = {clip_ratio}, .quant_group_size = context.options().quant_group_size}};
  if (!file) return quantizer;
  const RotationLayer& layer = LayerOf(*file, context, layer_index);
  const AttentionSpec& spec = context.layers()[layer_index].attention;
  const int64_t dim = side == 'k' ? spec.head_dim : spec.v_head_dim;
  const std::vector<int64_t>& shape = layer.rotation->shape;
  if (shape.back() != dim ||
      (shape.size() == 3 && shape[0] != spec.num_kv_heads && shape[0] != 1)) {
    throw InputError(fmt::format(
        "{}: layer {}: shape [{}], but the model's {} are {} KV heads of dimension {}: expected "
        "[{}, {}] or [{}, {}, {}]",
        file->path.string(), context.layers()[layer_index].layer_id, fmt::join(shape, ", "),
        side == 'k' ? "keys" : "values", spec.num_kv_heads, dim, dim, dim, spec.num_kv_heads, dim,
        dim));
  }
  quantizer.rotation = TensorOf(*layer.rotation, {-1, dim, dim});
  const FloatTensorPtr& undoes = layer.q_rotation ? layer.q_rotation : layer.o_rotation;
  if (undoes) quantizer.inverse = TensorOf(*undoes, {-1, dim, dim}).transpose(1, 2).contiguous();
  if (const FloatTensorPtr& mean = layer.k_mean ? layer.k_mean : layer.mean)
    quantizer.mean = VectorOf(*mean);
  if (layer.pair_scale) {  // (k s - mean) R = (k - mean / s) diag(s) R
    const at::Tensor scale = VectorOf(*layer.pair_scale);
    if (!quantizer.inverse.defined())
      quantizer.inverse = quantizer.rotation.transpose(1, 2).contiguous();
    quantizer.rotation = quantizer.rotation.mul(scale.unsqueeze(2));
    quantizer.inverse = quantizer.inverse.div(scale.unsqueeze(1));
    if (quantizer.mean.defined()) quantizer.mean = quantizer.mean.div(scale);
  }
  return quantizer;
}

std::string Description(const GivenRotations& rotations) {
  const auto file = [](const std::optional<RotationFile>& side) {
    return side ? side->path.filename().string() : std::string("not rotated");
  };
  return fmt::format("given rotations, keys {}, values {}, 2 bits", file(rotations.k),
                     file(rotations.v));
}

// A copy of a run's context that uses another artifact. It is made again only when the run's
// context changes.
class OtherContext {
 public:
  explicit OtherContext(std::shared_ptr<const Artifact> artifact)
      : artifact_(std::move(artifact)) {}

  MethodContext& Of(const MethodContext& context) {
    if (of_ != &context || !own_) {
      own_.emplace(*artifact_, context.layers(), context.options());
      of_ = &context;
    }
    return *own_;
  }
  const Artifact& artifact() const { return *artifact_; }

 private:
  std::shared_ptr<const Artifact> artifact_;
  const MethodContext* of_ = nullptr;
  std::optional<MethodContext> own_;
};

std::shared_ptr<const CacheMethod> OfArtifact(const std::string& name, const CacheMethod& method,
                                              const std::shared_ptr<OtherContext>& other) {
  CacheMethod guest = method;
  guest.make = [&method, other](const MethodContext& context, size_t layer_index,
                                const ArmOptions& options) {
    MethodContext& own = other->Of(context);
    if (method.needs_rows) own.SetRows(context.rows());
    own.SetRowsBefore(context.rows_before());
    return method.make(own, layer_index, options);
  };
  guest.cost = [&method, other](const MethodContext& context, const ArmOptions& options,
                                int64_t tokens) {
    return method.cost(other->Of(context), options, tokens);
  };
  guest.available = [&method, other](const MethodContext& context) {
    if (method.available && !method.available(other->Of(context))) {
      throw InputError(fmt::format("{}: does not contain the data that method {} needs",
                                   other->artifact().directory().string(), method.name));
    }
    return true;
  };
  return NamedMethod(fmt::format("{}:{}", name, method.name),
                     fmt::format("{}: {}", name, method.description), std::move(guest));
}

}  // namespace

std::shared_ptr<const CacheMethod> NamedMethod(std::string name, std::string description,
                                               CacheMethod method) {
  struct Guest {
    std::string name, description;
    CacheMethod method;
  };
  const auto guest =
      std::make_shared<Guest>(Guest{std::move(name), std::move(description), std::move(method)});
  guest->method.name = guest->name;
  guest->method.description = guest->description;
  return {guest, &guest->method};
}

std::shared_ptr<const CacheMethod> RotationMethod(const std::string& name,
                                                  GivenRotations rotations) {
  std::string description = Description(rotations);
  const auto sides = [rotations = std::make_shared<const GivenRotations>(std::move(rotations))](
                         const MethodContext& context, size_t layer_index, const ClipPair& clip) {
    return RotatedSides{SideOf(rotations->k, context, layer_index, 'k', clip.k),
                        SideOf(rotations->v, context, layer_index, 'v', clip.v)};
  };
  CacheMethod method = {
      .name = {},
      .description = {},
      .takes_bf16 = true,
      .as_published = {.clip = true, .windows = true},
      .make =
          [sides](const MethodContext& context, size_t layer_index, const ArmOptions& options) {
            return RotatedCache(context, options,
                                sides(context, layer_index, GivenClip(context, options)));
          },
      .cost = AffineCost({}),
      .available =
          [sides](const MethodContext& context) {
            for (size_t i = 0; i < context.layers().size(); ++i) sides(context, i, {});
            return true;
          }};
  return NamedMethod(name, std::move(description), std::move(method));
}

GuestMethods BudgetMethods(const Artifact& artifact) {
  GuestMethods methods;
  for (const auto& [bits, choice] : artifact.budgets()) {
    if (choice == kHeadlineChoice) continue;
    methods.push_back(
        NamedMethod(fmt::format("{}{:g}", kBudgetPrefix, bits),
                    fmt::format("choice of oscar-calibrate at {:g} bits, in bf16 arithmetic", bits),
                    ChoiceMethod(choice)));
  }
  return methods;
}

std::vector<std::pair<double, std::string>> BudgetArms(const Artifact& artifact) {
  std::vector<std::pair<double, std::string>> arms;
  for (const auto& [bits, choice] : artifact.budgets()) {
    arms.emplace_back(bits, choice == kHeadlineChoice
                                ? std::string("auto+windows")
                                : fmt::format("{}{:g}+windows", kBudgetPrefix, bits));
  }
  return arms;
}

GuestMethods MethodsOfArtifact(const std::string& name, std::shared_ptr<const Artifact> artifact) {
  const auto other = std::make_shared<OtherContext>(std::move(artifact));
  GuestMethods methods;
  for (const CacheMethod& method : CacheMethods())
    methods.push_back(OfArtifact(name, method, other));
  return methods;
}

}  // namespace oscar
