// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "capture/files/strict_json.h"
#include "linalg/base/error.h"

namespace oscar {

// Returns the record of a layer in manifest.json's or report.json's list of layers. Throws
// InputError if the list does not have it. `what` names the list in messages.
inline const Json& LayerRecordOf(const Json& layers, int layer_id, std::string_view what) {
  for (const Json& layer : layers) {
    if (JsonInt(layer, "layer_id", what) == layer_id) return layer;
  }
  throw InputError(fmt::format("{}: has no layer {}", what, layer_id));
}

}  // namespace oscar
