// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Describes the layers of a model in words: attention geometries, layers without a cache, layers
// with experts. Layers with the same description are counted together. A layer that reads another
// layer's cache is not counted among the layers with a cache.
#pragma once

#include <string>
#include <vector>

#include "capture/model/spec/model_spec.h"

namespace oscar {

// Returns sentences for users: "3 x 96 query heads, 8 KV heads, head_dim 128".
std::vector<std::string> DescribeLayers(const ModelSpec& spec);

}  // namespace oscar
