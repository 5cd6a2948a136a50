// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The schema table, and helpers of the readers. Some files store layer ids as strings; " 0", "07"
// and True are not ids.
#include "export/formats/rotation_schemas.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "capture/files/quote.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr RotationSchema kSchemas[] = {
    {"an upstream moments file (layers with M_q, k_sum, M_k, S_v)", MatchesMoments, ReadMoments},
    {"a rotation file (layers with rotation, format_version 1, 2, 3 or identity-v1)", MatchesLayers,
     ReadLayers},
    {"an MLA layer (a matrix, or a dict with rotation)", MatchesMlaLayer, ReadMlaLayer},
    {"a flat rotation dict (layer id to matrix)", MatchesFlat, ReadFlat},
    {"a stacked rotation tensor ([num_layers, d, d])", MatchesStacked, ReadStacked},
};

[[noreturn]] void FailField(std::string_view where, const char* key, std::string_view expected,
                            const PtValue* found) {
  throw InputError(fmt::format("{}: '{}' should be {}, found {}", where, key, expected,
                               found == nullptr ? "nothing" : PtTypeName(*found)));
}

const PtValue* PresentMember(const PtDict& dict, const char* key) {
  const PtValue* value = dict.Find(key);
  return value == nullptr || value->If<PtNone>() ? nullptr : value;
}

}  // namespace

std::span<const RotationSchema> RotationSchemas() { return kSchemas; }

FloatTensorPtr TensorCache::Get(const PtTensor& tensor, std::string_view what) {
  const std::string view =
      fmt::format("{}|{}|{}|{}", tensor.storage, tensor.offset, fmt::join(tensor.shape, ","),
                  fmt::join(tensor.strides, ","));
  FloatTensorPtr& cached = tensors_[view];
  if (!cached) {
    cached =
        std::make_shared<const FloatTensor>(FloatTensor{tensor.shape, file_.Floats(tensor, what)});
  }
  return cached;
}

const PtTensor& TensorField(const PtDict& dict, const char* key, std::string_view where) {
  const PtValue* value = dict.Find(key);
  const auto* tensor = value ? value->If<PtTensor>() : nullptr;
  if (tensor == nullptr) FailField(where, key, "a tensor", value);
  return *tensor;
}

FloatTensorPtr RequiredTensor(const PtDict& dict, const char* key, TensorCache* cache,
                              std::string_view where) {
  return cache->Get(TensorField(dict, key, where), fmt::format("{}: {}", where, key));
}

FloatTensorPtr OptionalTensor(const PtDict& dict, const char* key, TensorCache* cache,
                              std::string_view where) {
  return PresentMember(dict, key) ? RequiredTensor(dict, key, cache, where) : nullptr;
}

int64_t IntField(const PtDict& dict, const char* key, std::string_view where) {
  const PtValue* value = dict.Find(key);
  const auto* number = value ? value->If<int64_t>() : nullptr;
  if (number == nullptr) FailField(where, key, "an int", value);
  return *number;
}

std::string OptionalString(const PtDict& dict, const char* key, std::string_view where) {
  const PtValue* value = PresentMember(dict, key);
  if (value == nullptr) return "";
  const auto* text = value->If<std::string>();
  if (text == nullptr) FailField(where, key, "a str", value);
  return *text;
}

Json OptionalDict(const PtDict& dict, const char* key, std::string_view where) {
  const PtValue* value = PresentMember(dict, key);
  if (value == nullptr) return nullptr;
  if (value->If<PtDict>() == nullptr) FailField(where, key, "a dict", value);
  return PtToJson(*value);
}

const PtDict* DictMember(const PtValue& value, const char* key) {
  const auto* dict = value.If<PtDict>();
  const PtValue* member = dict ? dict->Find(key) : nullptr;
  return member ? member->If<PtDict>() : nullptr;
}

const PtDict* FirstLayer(const PtValue& root) {
  const PtDict* layers = DictMember(root, "layers");
  return layers == nullptr || layers->entries.empty() ? nullptr
                                                      : layers->entries[0].second->If<PtDict>();
}

int64_t CheckedLayerId(const PtKey& key, std::string_view where) {
  const auto id = ParseLayerId(PtKeyText(key));
  if (!id) {
    throw InputError(
        fmt::format("{}: '{}' is not a layer id, expected a number from 0 to 2147483647", where,
                    Escaped(PtKeyText(key))));
  }
  return *id;
}

void CheckLayerCount(size_t count, std::string_view where) {
  constexpr size_t kMaxLayers = 4096;
  if (count > kMaxLayers) {
    throw InputError(
        fmt::format("{}: has {} layers, expected at most {}", where, count, kMaxLayers));
  }
}

void ForEachLayer(const PtFile& file, const PtDict& layers, const LayerVisitor& visit) {
  const std::string path = file.path().string();
  if (layers.entries.empty()) throw InputError(path + ": 'layers' is empty, expected rotations");
  CheckLayerCount(layers.entries.size(), path);
  for (const auto& [key, value] : layers.entries) {
    const int64_t id = CheckedLayerId(key, path);
    const std::string where = fmt::format("{}: layer {}", path, id);
    const auto* entry = value->If<PtDict>();
    if (entry == nullptr) {
      throw InputError(fmt::format("{}: expected a dict, found {}", where, PtTypeName(*value)));
    }
    if (entry->Find("layer_id") != nullptr) {
      const int64_t field = IntField(*entry, "layer_id", where);
      if (field != id) {
        throw InputError(fmt::format("{}: its field layer_id says {}", where, field));
      }
    }
    visit(id, *entry, where);
  }
}

}  // namespace oscar
