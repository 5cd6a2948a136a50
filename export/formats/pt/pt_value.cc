// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Names of unpickled values, and their JSON. Recursion relies on PtTree's depth limit.
#include "export/formats/pt/pt_value.h"

#include <cmath>

#include "linalg/base/check.h"

namespace oscar {

const PtValue* PtDict::Find(std::string_view key) const {
  const auto found = index.find(PtKey(std::string(key)));
  return found == index.end() ? nullptr : found->second;
}

std::string PtTypeName(const PtValue& value) {
  static constexpr const char* kNames[] = {"None", "bool",  "int",  "float", "str",
                                           "list", "tuple", "dict", "tensor"};
  return kNames[value.data.index()];
}

std::string PtKeyText(const PtKey& key) {
  if (const auto* id = std::get_if<int64_t>(&key)) return std::to_string(*id);
  return std::get<std::string>(key);
}

std::string_view TorchDTypeName(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return "bool";
    case DType::kU8:
      return "uint8";
    case DType::kI8:
      return "int8";
    case DType::kI16:
      return "int16";
    case DType::kI32:
      return "int32";
    case DType::kI64:
      return "int64";
    case DType::kF16:
      return "float16";
    case DType::kBF16:
      return "bfloat16";
    case DType::kF32:
      return "float32";
    case DType::kF64:
      return "float64";
    case DType::kU16:
      return "uint16";
    case DType::kU32:
      return "uint32";
    case DType::kU64:
      return "uint64";
    case DType::kF8E5M2:
      return "float8_e5m2";
    case DType::kF8E4M3:
      return "float8_e4m3fn";
    case DType::kF8E8M0:
      return "float8_e8m0fnu";
    case DType::kC64:
    case DType::kF4:
    case DType::kF6E2M3:
    case DType::kF6E3M2:
    case DType::kF8E4M3Fnuz:
    case DType::kF8E5M2Fnuz:
      break;  // the reader refuses storages of these types
  }
  OSCAR_CHECK(false);
  return "";
}

Json PtTensorJson(const PtTensor& tensor) {
  return {{"shape", tensor.shape},
          {"dtype", TorchDTypeName(tensor.dtype)},
          {"stride", tensor.strides},
          {"storage_offset", tensor.offset}};
}

Json PtToJson(const PtValue& value) {
  const auto items_to_json = [](const std::vector<const PtValue*>& items) {
    Json array = Json::array();
    for (const PtValue* item : items) array.push_back(PtToJson(*item));
    return array;
  };
  if (value.If<PtNone>()) return nullptr;
  if (const auto* flag = value.If<bool>()) return *flag;
  if (const auto* integer = value.If<int64_t>()) return *integer;
  if (const auto* number = value.If<double>()) {
    if (std::isnan(*number)) return "nan";
    if (std::isinf(*number)) return *number > 0 ? "inf" : "-inf";
    return *number;
  }
  if (const auto* text = value.If<std::string>()) return *text;
  if (const auto* list = value.If<PtList>()) return items_to_json(list->items);
  if (const auto* tuple = value.If<PtTuple>()) return items_to_json(tuple->items);
  if (const auto* tensor = value.If<PtTensor>()) return PtTensorJson(*tensor);
  Json object = Json::object();
  for (const auto& [key, item] : value.If<PtDict>()->entries) {
    object[PtKeyText(key)] = PtToJson(*item);
  }
  return object;
}

}  // namespace oscar
