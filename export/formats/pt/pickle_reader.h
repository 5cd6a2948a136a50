// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A pickle reader that can only build data and never imports or calls anything. It supports the
// opcodes that torch.save emits with protocol 2, a fixed list of globals, and torch's persistent
// ids. A few bytes can refer to a memoized value many times, so depth and expanded size are
// limited.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "export/formats/pt/pt_value.h"

namespace oscar {

struct PickleResult {
  PtTree tree;
  std::vector<std::string> globals;  // "torch.FloatStorage", in order of first use
};

// Throws InputError naming `what` (the file) and the byte offset. Refuses opcodes and globals
// outside the list, truncated or overlong streams, repeated keys, integers beyond 64 bits, text
// that is not UTF-8, and values deeper or larger than PtTree allows. Tensors are checked only for
// their form; PtFile checks them against their storages.
PickleResult ReadPickle(std::span<const std::byte> bytes, std::string_view what);

}  // namespace oscar
