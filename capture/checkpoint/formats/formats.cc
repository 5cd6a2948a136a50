// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/checkpoint/formats/formats.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr QuantizationMethod kMethods[] = {
    {"awq", ReadAwqConfig},           {"compressed-tensors", ReadCompressedTensorsConfig},
    {"fbgemm_fp8", ReadFbgemmConfig}, {"fp8", ReadFp8Config},
    {"gptq", ReadGptqConfig},         {"modelopt", ReadModelOptConfig},
    {"mxfp4", ReadMxfp4Config},
};

constexpr StorageFormat kFormats[] = {
    {WeightFormat::kScaled, ScaledCodes, FindScaled},
    {WeightFormat::kPacked, PackedCodes, FindPacked},
    {WeightFormat::kGptq, GptqCodes, FindGptq},
    {WeightFormat::kAwq, GptqCodes, FindAwq},
    {WeightFormat::kMxfp4, Mxfp4Codes, FindMxfp4},
    {WeightFormat::kNvfp4, Nvfp4Codes, FindNvfp4},
};

std::vector<int64_t> Squeezed(const std::vector<int64_t>& shape) {
  std::vector<int64_t> squeezed;
  std::ranges::copy_if(shape, std::back_inserter(squeezed), [](int64_t size) { return size != 1; });
  return squeezed;
}

}  // namespace

std::span<const QuantizationMethod> QuantizationMethods() { return kMethods; }

const StorageFormat& FindFormat(WeightFormat format) {
  const auto* found = std::ranges::find(kFormats, format, &StorageFormat::format);
  OSCAR_CHECK(found != std::end(kFormats));
  return *found;
}

int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

PartFinder::PartFinder(const Checkpoint& checkpoint, std::string weight, const WeightScheme& scheme)
    : checkpoint_(checkpoint), weight_(std::move(weight)) {
  storage_.scheme = scheme;
}

std::string PartFinder::InModule(std::string_view name) const {
  constexpr std::string_view kWeight = "weight";
  const bool ends = weight_.ends_with(".weight");
  return (ends ? weight_.substr(0, weight_.size() - kWeight.size()) : weight_ + ".") +
         std::string(name);
}

void PartFinder::Fail(const std::string& name, const std::string& problem) const {
  throw InputError(
      fmt::format("tensor {} {} ({} is stored as {})", name, problem, weight_, scheme().name));
}

const TensorInfo& PartFinder::Add(PartRole role, const std::string& name,
                                  std::initializer_list<DType> types) {
  if (!Has(name)) Fail(name, "is missing");
  const TensorInfo& info = checkpoint_.info(name);
  if (std::ranges::find(types, info.dtype) == types.end()) {
    std::vector<std::string_view> names;
    for (const DType type : types) names.push_back(DTypeName(type));
    Fail(name,
         fmt::format("has type {}, expected {}", DTypeName(info.dtype), fmt::join(names, " or ")));
  }
  storage_.parts.push_back({role, name, info.dtype, info.shape, 0, info.size});
  return info;
}

void PartFinder::Expect(const std::string& name, const std::vector<int64_t>& shape, bool squeezed) {
  const std::vector<int64_t>& found = checkpoint_.info(name).shape;
  if (squeezed ? Squeezed(found) == Squeezed(shape) : found == shape) return;
  Fail(name, fmt::format("has shape [{}], expected [{}]", fmt::join(found, ", "),
                         fmt::join(shape, ", ")));
}

void PartFinder::ExpectRank(const std::string& name, size_t rank) {
  const std::vector<int64_t>& found = checkpoint_.info(name).shape;
  if (found.size() == rank && std::ranges::find(found, 0) == found.end()) return;
  Fail(name,
       fmt::format("has shape [{}], expected {} dimensions above 0", fmt::join(found, ", "), rank));
}

}  // namespace oscar
