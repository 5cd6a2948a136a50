// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/runtimes/cache_scales.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "linalg/base/error.h"

namespace oscar {

float ScaleOf(const std::vector<double>& of_heads, double largest_of_type) {
  return static_cast<float>(std::ranges::max(of_heads) / largest_of_type);
}

std::vector<LayerMaxima> MaximaOf(const Artifact& artifact) {
  std::vector<LayerMaxima> layers;
  const auto refuse = [&](int layer_id, char side, std::string_view what) {
    throw InputError(fmt::format("{}: layer {}, {}: {}", artifact.directory().string(), layer_id,
                                 side == 'k' ? "keys" : "values", what));
  };
  for (const int id : artifact.layer_ids()) {
    LayerMaxima layer{.layer_id = id, .k = {}, .v = {}};
    for (const char side : {'k', 'v'}) {
      const std::vector<double> channels = artifact.AbsMax(id, side);
      if (channels.empty()) {
        refuse(id, side,
               "the largest magnitude is unknown, because older artifacts and rotation files do "
               "not contain it; calibrate the model");
      }
      const int64_t heads = artifact.NumKvHeads(id);
      const int64_t dim = std::ssize(channels) / heads;
      for (int64_t head = 0; head < heads; ++head) {
        const auto begin = channels.begin() + head * dim;
        const double largest = *std::max_element(begin, begin + dim);
        if (!(largest > 0 && std::isfinite(largest)))
          refuse(id, side, fmt::format("KV head {} has a largest magnitude of {}", head, largest));
        (side == 'k' ? layer.k : layer.v).push_back(largest);
      }
    }
    layers.push_back(std::move(layer));
  }
  return layers;
}

}  // namespace oscar
