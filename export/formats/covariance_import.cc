// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Inverts published rotations layer by layer. Eigenvalues were rounded to float32, so C is
// right to about 1e-7 of its largest eigenvalue, not to the last bit.
#include "export/formats/covariance_import.h"

#include <fmt/format.h>

#include "export/formats/rotation_checks.h"
#include "linalg/error.h"

namespace oscar {
namespace {

using RowMajorFloat = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// Fitted quantities by upstream's names and ours. Longer names stand before their prefixes.
constexpr std::string_view kMethods[] = {"qqt_sst", "ktk_vtv",         "qqt", "ktk", "sst",
                                         "vtv",     "attention_output"};

}  // namespace

Composition ObjectiveComposition(std::string_view objective) {
  for (const std::string_view method : kMethods) {
    const std::string prefix = fmt::format("{}_", method);
    if (!objective.starts_with(prefix)) continue;
    const std::string_view name = objective.substr(prefix.size());
    for (const Composition composition : AllCompositions()) {
      if (CompositionName(composition) == name) return composition;
    }
  }
  throw InputError(fmt::format(
      "objective '{}' names no covariance and composition; expected for example 'qqt_r_h_pbr'",
      objective));
}

std::vector<LayerCovariances> RecoverCovariances(const RotationFile& file) {
  const Composition composition = ObjectiveComposition(file.objective);
  std::vector<LayerCovariances> out;
  for (const RotationLayer& layer : file.layers) {
    const std::string where = fmt::format("{}: layer {}", file.path.string(), layer.layer_id);
    if (!layer.rotation || !layer.eigenvalues) {
      throw InputError(where + ": no eigenvalues, so its covariance cannot be recovered");
    }
    if (layer.q_rotation || layer.o_rotation) {
      throw InputError(where + ": not a plain rotation, so its covariance cannot be recovered");
    }
    const MatrixStack stack = StackOf(layer.rotation->shape, where);
    const bool shared_values = layer.eigenvalues->shape.size() == 1;
    LayerCovariances recovered{layer.layer_id, {}};
    for (int64_t h = 0; h < stack.count; ++h) {
      const Matrix r =
          Eigen::Map<const RowMajorFloat>(layer.rotation->values.data() + h * stack.dim * stack.dim,
                                          stack.dim, stack.dim)
              .cast<double>();
      const Vector values =
          Eigen::Map<const Eigen::VectorXf>(
              layer.eigenvalues->values.data() + (shared_values ? 0 : h * stack.dim), stack.dim)
              .cast<double>();
      recovered.covariances.push_back(
          RecoverCovariance(RecoverEigenvectors(r, composition), values));
    }
    out.push_back(std::move(recovered));
  }
  return out;
}

}  // namespace oscar
