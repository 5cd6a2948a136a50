// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Objects on the stack and in the memo of the pickle machine. Storages and globals are not values;
// they exist only until a tensor takes them.
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

// An object on the stack: a mark, a value of the result, or a torch object that may only be used by
// _rebuild_tensor and persistent ids.
struct Object {
  PtValue* value = nullptr;  // null for a mark, a global and a storage
  bool mark = false;
  const Global* global = nullptr;
  std::optional<Storage> storage;
  std::vector<Object*> tuple;  // items of a tuple that holds torch objects
  bool torch_tuple = false;

  bool used = false;      // another object refers to it, so it must not change any more
  int depth = 1;          // levels of nesting
  uint64_t expanded = 1;  // nodes when it is walked without sharing
};

}  // namespace oscar::pickle
