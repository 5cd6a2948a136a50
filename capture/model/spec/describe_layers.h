// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Describes the layers of a model in words: the geometries and their counts, layers without a
// cache, layers with experts. Layers are counted by the content of their cache, so the first line
// has the same numbers as an artifact.
#pragma once

#include <string>
#include <vector>

#include "capture/model/spec/model_spec.h"

namespace oscar {

// Returns sentences for users: "3 x 96 query heads, 8 KV heads, head_dim 128".
std::vector<std::string> DescribeLayers(const ModelSpec& spec);

}  // namespace oscar
