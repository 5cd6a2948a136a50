// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/checkpoint/weight_storage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "capture/checkpoint/formats/formats.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

// Returns the module of a dense tensor: m for "m.weight". A stacked "m.experts.down_proj" is its
// own module, because releases that quantize single experts use that name.
std::string_view ModuleOf(std::string_view name) {
  constexpr std::string_view kWeight = ".weight";
  return name.ends_with(kWeight) ? name.substr(0, name.size() - kWeight.size()) : name;
}

bool StoredPlain(const Checkpoint& checkpoint, const std::string& name) {
  return checkpoint.Contains(name) && IsPlain(checkpoint.info(name).dtype);
}

WeightStorage PlainStorage(const Checkpoint& checkpoint, const std::string& name) {
  const TensorInfo& info = checkpoint.info(name);
  WeightStorage storage;
  storage.scheme.name = DTypeName(info.dtype);
  storage.shape = info.shape;
  storage.parts.push_back({PartRole::kCodes, name, info.dtype, info.shape, 0, info.size});
  return storage;
}

WeightStorage StorageOfGguf(const GgufWeight& weight) {
  WeightStorage storage;
  storage.shape = weight.info.shape;
  const GgufWeight::Part& first = weight.parts.front();
  storage.scheme.name = fmt::format("GGUF {}", first.type->name);
  if (weight.plain()) {
    storage.parts = {{PartRole::kCodes, first.tensor, weight.info.dtype, weight.info.shape,
                      first.begin, first.size}};
    return storage;
  }
  storage.scheme.format = WeightFormat::kGguf;
  storage.scheme.bits = static_cast<int>(first.type->bytes * 8 / first.type->values);
  storage.gguf = &weight;
  for (const GgufWeight::Part& part : weight.parts) {
    const auto bytes = static_cast<int64_t>(part.size);
    storage.parts.push_back({PartRole::kCodes,
                             part.tensor,
                             DType::kU8,
                             {weight.matrices, bytes / weight.matrices},
                             part.begin,
                             part.size});
  }
  return storage;
}

std::string WhyNoScheme(const Checkpoint& checkpoint, const std::string& name) {
  if (!checkpoint.Contains(name)) return fmt::format("tensor {} is missing", name);
  const std::string stored(DTypeName(checkpoint.info(name).dtype));
  if (checkpoint.quantization().plain()) {
    return fmt::format(
        "tensor {} is stored as {}, but config.json has no quantization_config that describes this "
        "format. Supported: BF16, F16, F32, and the methods {}",
        name, stored, SupportedQuantization());
  }
  return fmt::format(
      "tensor {} is stored as {}, but quantization_config ({}) specifies no weight format for its "
      "module",
      name, stored, checkpoint.quantization().method());
}

}  // namespace

bool IsPlain(DType dtype) {
  return dtype == DType::kBF16 || dtype == DType::kF16 || dtype == DType::kF32;
}

const WeightPart* WeightStorage::Find(PartRole role) const {
  const auto part = std::ranges::find(parts, role, &WeightPart::role);
  return part == parts.end() ? nullptr : &*part;
}

uint64_t WeightStorage::bytes() const {
  uint64_t total = 0;
  for (const WeightPart& part : parts) total += part.size;
  return total;
}

WeightStorage FindWeightStorage(const Checkpoint& checkpoint, const std::string& name) {
  if (const GgufWeight* weight = checkpoint.gguf_weight(name)) return StorageOfGguf(*weight);
  if (StoredPlain(checkpoint, name)) return PlainStorage(checkpoint, name);
  const WeightScheme* scheme = checkpoint.quantization().SchemeOf(ModuleOf(name));
  if (scheme == nullptr) throw InputError(WhyNoScheme(checkpoint, name));
  PartFinder finder(checkpoint, name, *scheme);
  FindFormat(scheme->format).find(finder);
  WeightStorage& storage = finder.storage();
  storage.stored_rows = *(storage.shape.end() - (storage.transposed ? 1 : 2));
  return std::move(storage);
}

double PlaceOf(const Checkpoint& checkpoint, const WeightStorage& storage) {
  double first = 1;
  for (const WeightPart& part : storage.parts) {
    const uint64_t begin = checkpoint.info(part.name).offset + part.begin;
    first = std::min(first, checkpoint.Place(checkpoint.file_index(part.name), begin));
  }
  return first;
}

bool StoresWeight(const Checkpoint& checkpoint, const std::string& name) {
  if (checkpoint.Contains(name)) return true;
  const WeightScheme* scheme = checkpoint.quantization().SchemeOf(ModuleOf(name));
  if (scheme == nullptr) return false;
  const PartFinder finder(checkpoint, name, *scheme);
  return checkpoint.Contains(FindFormat(scheme->format).codes(finder));
}

WeightStorage SliceStorage(WeightStorage storage, int64_t first, int64_t count) {
  OSCAR_CHECK(!storage.shape.empty() && first >= 0 && count > 0);
  OSCAR_CHECK_LE(first + count, storage.shape[0]);
  const int64_t whole = storage.shape[0];
  storage.shape[0] = count;
  const bool stacked =
      storage.gguf != nullptr ? storage.gguf->matrices > 1 : storage.shape.size() >= 3;
  if (!storage.plain() && !stacked) {
    storage.first_row += first;
    return storage;
  }
  for (WeightPart& part : storage.parts) {
    OSCAR_CHECK(!part.shape.empty());
    OSCAR_CHECK_EQ(part.shape[0], whole);
    const uint64_t entry = part.size / static_cast<uint64_t>(whole);
    part.begin += static_cast<uint64_t>(first) * entry;
    part.size = static_cast<uint64_t>(count) * entry;
    part.shape[0] = count;
  }
  return storage;
}

void CheckGroupIndex(const Checkpoint& checkpoint, const WeightStorage& storage) {
  const WeightPart* part = storage.Find(PartRole::kGroupIndex);
  if (part == nullptr) return;
  const int64_t groups = CeilDivide(storage.shape[1], storage.scale_columns);
  const TensorView view = checkpoint.tensor(part->name);
  for (size_t k = 0; k < view.data.size() / sizeof(int32_t); ++k) {
    int32_t group = 0;
    std::memcpy(&group, view.data.data() + k * sizeof group, sizeof group);
    if (group < 0 || group >= groups) {
      throw InputError(fmt::format("tensor {}: entry {} is {}, expected a group in 0 .. {}",
                                   part->name, k, group, groups - 1));
    }
  }
  checkpoint.Release(part->name);
}

bool IsActivationScale(std::string_view name) {
  static constexpr std::string_view kSuffixes[] = {".input_scale",
                                                   ".input_global_scale",
                                                   ".input_zero_point",
                                                   ".activation_scale",
                                                   ".input_scale_ub",
                                                   ".output_scale",
                                                   ".k_scale",
                                                   ".v_scale",
                                                   ".q_scale",
                                                   ".prob_output_scale",
                                                   ".kv_cache_scaling_factor"};
  return std::ranges::any_of(kSuffixes,
                             [&](std::string_view suffix) { return name.ends_with(suffix); });
}

}  // namespace oscar
