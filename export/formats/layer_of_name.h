// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Layers by what tensors and modules are called.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace oscar {

// The number behind the first "layers." of a name, which goes on to its end or one of `ends`.
std::optional<int64_t> LayerOfName(std::string_view name, std::string_view ends = ".");

}  // namespace oscar
