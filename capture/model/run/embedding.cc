// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/run/embedding.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "capture/checkpoint/weight_storage.h"
#include "capture/model/run/decoder_layer.h"
#include "capture/model/run/dequantize_gguf.h"
#include "capture/model/run/device.h"
#include "capture/model/run/product.h"
#include "linalg/base/check.h"
#include "linalg/base/parallel_for.h"

namespace oscar {

at::Tensor GatherRows(const Checkpoint& checkpoint, const std::string& name,
                      const std::vector<std::vector<int32_t>>& ids, const WeightTarget& target,
                      ColumnRange range) {
  constexpr int64_t kRowsAtOnce = 2048, kRowsPerPiece = 128, kThreads = 8;
  const WeightStorage storage = FindWeightStorage(checkpoint, name);
  const WeightPart& part = storage.parts.front();
  const auto table = checkpoint.tensor(part.name).data.subspan(part.begin, part.size);
  const int64_t num_rows = storage.shape.at(0);
  const int64_t columns = range.count == 0 ? storage.shape.at(1) : range.count;
  const size_t row_bytes = table.size() / static_cast<size_t>(num_rows);
  // GGUF types can only be read in whole groups of values, so this reads all groups in the range.
  const GgmlType* const type = storage.gguf == nullptr ? nullptr : storage.gguf->parts[0].type;
  const auto run = static_cast<int64_t>(type == nullptr ? 1 : type->values);
  const int64_t first_run = range.first / run, end_run = (range.first + columns + run - 1) / run;
  const size_t run_bytes = row_bytes / static_cast<size_t>(storage.shape[1] / run);
  const size_t skipped = static_cast<size_t>(first_run) * run_bytes;
  const size_t copied = static_cast<size_t>(end_run - first_run) * run_bytes;
  std::vector<int32_t> all;
  for (const auto& sequence : ids) all.insert(all.end(), sequence.begin(), sequence.end());
  for (const int32_t id : all) OSCAR_CHECK(id >= 0 && id < num_rows);
  const int64_t total = std::ssize(all);

  at::Tensor rows =
      at::empty({total, columns}, at::TensorOptions().dtype(target.dtype).device(target.device));
  const at::ScalarType stored = type == nullptr ? ToScalarType(part.dtype, name) : at::kByte;
  const int64_t width = type == nullptr ? columns : static_cast<int64_t>(copied);
  const at::Tensor host =
      at::empty({std::min(total, kRowsAtOnce), width},
                at::TensorOptions().dtype(stored).pinned_memory(!target.device.is_cpu()));
  auto* const to = static_cast<std::byte*>(host.mutable_data_ptr());
  for (int64_t begin = 0; begin < total; begin += kRowsAtOnce) {
    const int64_t count = std::min(kRowsAtOnce, total - begin);
    const auto copy = [&](int64_t piece) {
      const int64_t end = std::min(count, (piece + 1) * kRowsPerPiece);
      for (int64_t i = piece * kRowsPerPiece; i < end; ++i) {
        const auto row = static_cast<size_t>(all[static_cast<size_t>(begin + i)]);
        std::memcpy(to + static_cast<size_t>(i) * copied, table.data() + row * row_bytes + skipped,
                    copied);
      }
    };
    // Copies several pieces in parallel, because a row that is not in the page cache is slow.
    ParallelFor((count + kRowsPerPiece - 1) / kRowsPerPiece, copy, kThreads);
    at::Tensor values = host.narrow(0, 0, count);
    if (type != nullptr) {
      values = GgmlValues(values.to(target.device), *type).view({count, -1});
      values = values.narrow(1, range.first - first_run * run, columns);
    }
    rows.narrow(0, begin, count).copy_(values);
    checkpoint.Release(part.name);
  }
  return rows;
}

void Scale(at::Tensor& x, double factor, bool round) {
  if (factor == 1) return;
  if (round) factor = at::scalar_tensor(factor, x.scalar_type()).item<double>();
  x.mul_(factor);
}

PerLayerWeights LoadPerLayerWeights(const Checkpoint& checkpoint, const ModelSpec& spec,
                                    const WeightTarget& target) {
  WeightLoader loader(checkpoint, target);
  PerLayerWeights weights;
  weights.projection.weight = loader.Load(spec.per_layer_inputs->projection.weight);
  weights.norm = LoadNorm(loader, spec.per_layer_inputs->norm);
  loader.Finish();
  return weights;
}

PerLayerInputs::PerLayerInputs(const Checkpoint& checkpoint, const ModelSpec& spec,
                               const std::vector<std::vector<int32_t>>& ids, at::Tensor embedded,
                               const WeightTarget& target)
    : PerLayerInputs(checkpoint, spec, ids, std::move(embedded), target,
                     LoadPerLayerWeights(checkpoint, spec, target)) {}

PerLayerInputs::PerLayerInputs(const Checkpoint& checkpoint, const ModelSpec& spec,
                               const std::vector<std::vector<int32_t>>& ids, at::Tensor embedded,
                               const WeightTarget& target, PerLayerWeights weights)
    : checkpoint_(checkpoint),
      spec_(spec),
      ids_(ids),
      embedded_(std::move(embedded)),
      target_(target),
      weights_(std::move(weights)) {}

// Computes one layer of Gemma4TextModel.project_per_layer_inputs in transformers 5.
at::Tensor PerLayerInputs::Of(int layer_id, const std::vector<RowRange>& rows_at_once) const {
  const PerLayerInputsSpec& inputs = *spec_.per_layer_inputs;
  const ColumnRange own{layer_id * inputs.dim, inputs.dim};
  const at::Tensor weight = weights_.projection.weight.narrow(0, own.first, own.count);
  at::Tensor projected;
  if (rows_at_once.empty()) {
    projected = LinearProduct(embedded_, weight);
  } else {
    std::vector<at::Tensor> parts;
    for (const RowRange& part : rows_at_once)
      parts.push_back(LinearProduct(embedded_.narrow(0, part.first, part.count), weight));
    projected = at::cat(parts);
  }
  Scale(projected, inputs.projection_scale, false);
  at::Tensor rows = GatherRows(checkpoint_, inputs.table, ids_, target_, own);
  Scale(rows, inputs.table_scale, true);
  at::Tensor sum = Norm(inputs.norm, weights_.norm, spec_.rms_norm_eps, projected).add(rows);
  Scale(sum, inputs.sum_scale, false);
  return sum;
}

}  // namespace oscar
