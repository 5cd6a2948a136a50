// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/formats/layer_of_name.h"

#include "export/formats/rotation_file.h"  // ParseLayerId

namespace oscar {

std::optional<int64_t> LayerOfName(std::string_view name, std::string_view ends) {
  constexpr std::string_view kLayers = "layers.";
  const size_t at = name.find(kLayers);
  if (at == name.npos) return {};
  name.remove_prefix(at + kLayers.size());
  return ParseLayerId(name.substr(0, name.find_first_of(ends)));
}

}  // namespace oscar
