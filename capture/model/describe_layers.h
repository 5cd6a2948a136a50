// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The layers of a model in words: which geometries there are and how often, what has no cache,
// where experts are. Layers are counted by what their cache holds, so the numbers of the
// first line are those an artifact will have.
#pragma once

#include <string>
#include <vector>

#include "capture/model/model_spec.h"

namespace oscar {

// One sentence each, for people: "3 x 96 query heads, 8 KV heads, head_dim 128".
std::vector<std::string> DescribeLayers(const ModelSpec& spec);

}  // namespace oscar
