// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The content of a .pt file after unpickling: None, bool, int, float, string, list, tuple, dict and
// references to tensors. Values belong to a PtTree, and several containers may refer to the same
// value. The tree is at most kMaxDepth deep, and a walk that follows every reference visits at most
// kMaxExpandedNodes nodes, so a plain recursive walk is safe. Its output is limited too: a node
// becomes at most 128 bytes of JSON.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "capture/checkpoint/dtype.h"
#include "capture/files/strict_json.h"

namespace oscar {

struct PtValue;
struct PtNone {};

// A strided view into a storage record. PtFile checks it against the record.
struct PtTensor {
  std::string storage;  // key of the record "data/<storage>"
  DType dtype{};
  uint64_t storage_numel = 0;
  uint64_t offset = 0;           // elements from the start of the storage
  std::vector<int64_t> shape;    // empty for a scalar
  std::vector<int64_t> strides;  // in elements, one per dimension
  bool operator==(const PtTensor&) const = default;
};

struct PtList {
  std::vector<const PtValue*> items;
};
struct PtTuple {
  std::vector<const PtValue*> items;
};

using PtKey = std::variant<int64_t, std::string>;

struct PtDict {
  std::vector<std::pair<PtKey, const PtValue*>> entries;  // in file order
  std::map<PtKey, const PtValue*> index;

  // Returns nullptr if the key is absent.
  const PtValue* Find(std::string_view key) const;
};

struct PtValue {
  std::variant<PtNone, bool, int64_t, double, std::string, PtList, PtTuple, PtDict, PtTensor> data;

  template <typename T>
  const T* If() const {  // nullptr if it holds another type
    return std::get_if<T>(&data);
  }
};

// Owns every value of one file. Addresses stay valid when the tree is moved.
struct PtTree {
  static constexpr int kMaxDepth = 16;
  static constexpr uint64_t kMaxExpandedNodes = uint64_t{1} << 20;
  static constexpr uint64_t kTextOfNode = 16;    // bytes of a string that count as one more node
  static constexpr uint64_t kNodesOfTensor = 8;  // plus one for each dimension

  std::deque<PtValue> values;
  const PtValue* root = nullptr;
};

std::string PtTypeName(const PtValue& value);  // "dict", "tensor", as in Python
std::string PtKeyText(const PtKey& key);       // 7 or "7" as text

// Returns torch's name of a type: "float32", "bfloat16", ...
std::string_view TorchDTypeName(DType dtype);

// Converts None, bool, numbers, strings, lists, tuples and dicts to JSON. A tensor becomes its
// dtype, shape, stride and offset; a float that JSON cannot hold becomes "nan", "inf" or "-inf".
Json PtToJson(const PtValue& value);
Json PtTensorJson(const PtTensor& tensor);

}  // namespace oscar
