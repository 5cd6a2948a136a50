// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <utility>

#include "capture/checkpoint/gguf/gguf_architectures.h"
#include "capture/files/quote.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

DType DTypeOf(const GgmlType& type) {
  return type.id == kGgmlF32 ? DType::kF32 : type.id == kGgmlF16 ? DType::kF16 : DType::kBF16;
}

bool IsRead(uint32_t type) {
  constexpr std::array<uint32_t, 16> kRead = {
      kGgmlF32,  kGgmlF16,  kGgmlBF16, kGgmlQ4_0, kGgmlQ4_1, kGgmlQ5_0,   kGgmlQ5_1,   kGgmlQ8_0,
      kGgmlQ2_K, kGgmlQ3_K, kGgmlQ4_K, kGgmlQ5_K, kGgmlQ6_K, kGgmlIQ4_NL, kGgmlIQ4_XS, kGgmlMXFP4};
  return std::ranges::find(kRead, type) != kRead.end();
}

int64_t Product(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

}  // namespace

std::vector<TensorFile> GgufModel::TakeFiles() && {
  std::vector<TensorFile> files;
  for (GgufFile& file : files_) {
    std::map<std::string, TensorInfo, std::less<>> tensors;
    for (const GgufTensorInfo& tensor : file.tensors) {
      const GgmlType* const type = FindGgmlType(tensor.type);
      TensorInfo info{DType::kU8, {}, file.data_begin + tensor.offset, tensor.size};
      if (type != nullptr && IsRead(tensor.type) && type->values == 1) {
        info.dtype = DTypeOf(*type);
        info.shape.assign(tensor.dims.rbegin(), tensor.dims.rend());
      } else {
        info.shape = {static_cast<int64_t>(tensor.size)};
      }
      tensors.emplace(tensor.name, std::move(info));
    }
    files.emplace_back(std::move(file.file), std::move(tensors));
  }
  files_.clear();
  tensors_.clear();
  return files;
}

std::vector<int64_t> HalvesOfPairs(int64_t rows, int64_t num_heads) {
  const int64_t dim = rows / num_heads;
  std::vector<int64_t> order(static_cast<size_t>(rows));
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t head = r / dim, i = r % dim, half = dim / 2;
    order[static_cast<size_t>(r)] = head * dim + (i < half ? 2 * i : 2 * (i - half) + 1);
  }
  return order;
}

GgufWeight::Part GgufWeightMaker::Take(std::string_view stored) {
  const GgufTensorInfo* const info = model_.Find(stored);
  if (info == nullptr) model_.Fail(fmt::format("tensor {} is missing", Quoted(stored)));
  const GgmlType* const type = FindGgmlType(info->type);
  if (type == nullptr || !IsRead(info->type)) {
    model_.Fail(fmt::format(
        "tensor {} has type {}, which is not implemented. Supported: F32, F16, BF16, Q4_0, Q4_1, "
        "Q5_0, Q5_1, Q8_0, Q2_K to Q6_K, IQ4_NL, IQ4_XS, MXFP4",
        Quoted(stored), type == nullptr ? std::to_string(info->type) : std::string(type->name)));
  }
  used_.emplace(stored);
  // A plain tensor [n] counts as n rows of one value.
  const bool column = info->dims.size() == 1 && type->values == 1;
  const auto dim = [&](size_t i) {
    return i < info->dims.size() ? static_cast<int64_t>(info->dims[i]) : int64_t{1};
  };
  GgufWeight::Part part;
  part.tensor = stored;
  part.type = type;
  part.size = info->size;
  part.columns = column ? 1 : dim(0);
  part.rows = column ? dim(0) : info->dims.size() == 3 ? dim(1) : dim(1) * dim(2) * dim(3);
  return part;
}

GgufWeight& GgufWeightMaker::Add(const std::string& dense, std::vector<int64_t> shape,
                                 std::vector<GgufWeight::Part> parts) {
  GgufWeight weight;
  const bool whole = parts.size() == 1 && parts[0].type->values == 1;
  weight.info.dtype = whole ? DTypeOf(*parts[0].type) : DType::kU8;
  weight.info.shape = std::move(shape);
  int64_t values = 0;
  for (const GgufWeight::Part& part : parts) {
    weight.info.size += part.size;
    values += static_cast<int64_t>(part.size / part.type->bytes * part.type->values);
  }
  if (values != Product(weight.info.shape)) {
    model_.Fail(fmt::format("tensor {} has {} values, but {} needs {}", Quoted(parts[0].tensor),
                            values, Quoted(dense), Product(weight.info.shape)));
  }
  weight.parts = std::move(parts);
  const auto [added, is_new] = weights_.emplace(dense, std::move(weight));
  if (!is_new) model_.Fail(fmt::format("two tensors are both {}", Quoted(dense)));
  return added->second;
}

GgufWeight& GgufWeightMaker::AddReordered(const std::string& stored, const std::string& dense,
                                          std::vector<int64_t> row_order,
                                          std::vector<int64_t> column_order) {
  GgufWeight::Part part = Take(stored);
  const std::vector<uint64_t>& dims = model_.Find(stored)->dims;
  const auto fits = [](const std::vector<int64_t>& order, int64_t size) {
    return order.empty() || std::ssize(order) == size;
  };
  if (dims.size() > 2 || !fits(row_order, part.rows) || !fits(column_order, part.columns)) {
    model_.Fail(fmt::format("tensor {} has {} rows of {} values, which contradicts the metadata",
                            Quoted(stored), part.rows, part.columns));
  }
  GgufWeight& weight = Add(dense, {dims.rbegin(), dims.rend()}, {std::move(part)});
  weight.row_order = std::move(row_order);
  weight.column_order = std::move(column_order);
  return weight;
}

void GgufWeightMaker::Apply(const GgufRule& rule, const std::string& stored,
                            const std::string& dense, GgufFields& fields) {
  if (rule.kind == GgufRuleKind::kSkip) return Skip(stored);
  const std::vector<uint64_t>& dims = model_.Find(stored)->dims;
  std::vector<int64_t> shape(dims.rbegin(), dims.rend());
  GgufWeight::Part part = Take(stored);
  if (rule.kind == GgufRuleKind::kExperts) {
    constexpr int64_t kMostExperts = 4096;
    if (shape.size() != 3 || shape[0] > kMostExperts) {
      model_.Fail(fmt::format("tensor {} must have three dimensions, and at most {} experts",
                              Quoted(stored), kMostExperts));
    }
    const int64_t experts = shape[0];
    part.size /= static_cast<uint64_t>(experts);
    for (int64_t e = 0; e < experts; ++e) {
      std::string name = dense;
      name.replace(name.find("{e}"), 3, std::to_string(e));
      Add(name, {shape[1], shape[2]}, {part});
      part.begin += part.size;
    }
    return;
  }
  if (rule.kind == GgufRuleKind::kRow && shape.size() == 1) shape.insert(shape.begin(), 1);
  const int64_t rows = part.rows;
  const int64_t matrices = dims.size() == 3 ? static_cast<int64_t>(dims[2]) : 1;
  GgufWeight& weight = Add(dense, std::move(shape), {std::move(part)});
  weight.matrices = matrices;
  if (rule.kind == GgufRuleKind::kLogOfMinus) weight.change = GgufChange::kLogOfMinus;
  if (rule.kind == GgufRuleKind::kNorm && architecture_.storage == GgufStorage::kNormsPlusOne)
    weight.change = GgufChange::kMinusOne;
  const bool query = rule.kind == GgufRuleKind::kQueryRows;
  if (architecture_.storage != GgufStorage::kInterleaved ||
      (!query && rule.kind != GgufRuleKind::kKeyRows))
    return;
  const auto heads = static_cast<int64_t>(query ? fields.num_heads() : fields.num_kv_heads());
  if (heads <= 0 || heads > rows || rows % (2 * heads) != 0) {
    model_.Fail(
        fmt::format("tensor {} has {} rows, which is not possible for {} heads of an even size",
                    Quoted(stored), rows, heads));
  }
  weight.row_order = HalvesOfPairs(rows, heads);
}

void GgufWeightMaker::Transpose(const std::string& dense) {
  GgufWeight& weight = weights_.find(dense)->second;
  if (weight.info.shape.size() != 3)
    model_.Fail(fmt::format("{} must have three dimensions", Quoted(dense)));
  std::swap(weight.info.shape[1], weight.info.shape[2]);
  weight.transposed = true;
}

GgufWeightMaker::Weights GgufWeightMaker::Finish() { return std::move(weights_); }

}  // namespace oscar
