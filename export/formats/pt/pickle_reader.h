// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A pickle reader that can only build data: the opcodes that torch.save emits with protocol 2, a
// fixed list of globals, and torch's persistent ids. It never imports or calls anything. The memo
// lets a few bytes name a value many times, so depth and expanded size are limited.
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

// Throws InputError naming `what` (the file) and the byte: an opcode or global outside the list, a
// truncated or overlong stream, a repeated key, an integer beyond 64 bits, text that is not UTF-8,
// a value deeper or larger than PtTree allows. Checks only the form of tensors; PtFile checks them
// against their storages.
PickleResult ReadPickle(std::span<const std::byte> bytes, std::string_view what);

}  // namespace oscar
