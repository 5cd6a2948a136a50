// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Objects on the stack and in the memo of the pickle machine. Storages and globals never become
// values of the result; they are only operands from which a tensor is built.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "export/formats/pt/pickle_format.h"
#include "export/formats/pt/pt_value.h"

namespace oscar::pickle {

struct Storage {
  std::string key;
  DType dtype{};
  uint64_t numel = 0;
};

// An object on the stack: a mark, a value of the result, or an operand (global, storage or tuple)
// of _rebuild_tensor_v2 or a persistent id.
struct Object {
  PtValue* value = nullptr;  // null for a mark, a global and a storage
  bool mark = false;
  const Global* global = nullptr;
  std::optional<Storage> storage;
  std::vector<Object*> tuple;  // items of a tuple that holds torch objects
  bool torch_tuple = false;

  bool used = false;      // part of another object, so it must not change any more
  int depth = 1;          // levels of nesting
  uint64_t expanded = 1;  // nodes visited by a walk that expands shared objects
};

}  // namespace oscar::pickle
