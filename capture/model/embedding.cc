// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/embedding.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "capture/model/device.h"
#include "linalg/check.h"
#include "linalg/parallel_for.h"

namespace oscar {

at::Tensor GatherRows(const Checkpoint& checkpoint, const std::string& name,
                      const std::vector<std::vector<int32_t>>& ids, const WeightTarget& target) {
  constexpr int64_t kRowsAtOnce = 2048, kRowsPerPiece = 128, kThreads = 8;
  const TensorView table = checkpoint.tensor(name);
  const int64_t columns = table.shape.at(1);
  const size_t row_bytes = table.data.size() / static_cast<size_t>(table.shape[0]);
  std::vector<int32_t> all;
  for (const auto& sequence : ids) all.insert(all.end(), sequence.begin(), sequence.end());
  for (const int32_t id : all) OSCAR_CHECK(id >= 0 && id < table.shape[0]);
  const int64_t total = std::ssize(all);

  at::Tensor rows =
      at::empty({total, columns}, at::TensorOptions().dtype(target.dtype).device(target.device));
  const at::Tensor host = at::empty({std::min(total, kRowsAtOnce), columns},
                                    at::TensorOptions()
                                        .dtype(ToScalarType(table.dtype, name))
                                        .pinned_memory(!target.device.is_cpu()));
  auto* const to = static_cast<std::byte*>(host.mutable_data_ptr());
  for (int64_t begin = 0; begin < total; begin += kRowsAtOnce) {
    const int64_t count = std::min(kRowsAtOnce, total - begin);
    const auto copy = [&](int64_t piece) {
      const int64_t end = std::min(count, (piece + 1) * kRowsPerPiece);
      for (int64_t i = piece * kRowsPerPiece; i < end; ++i) {
        const auto row = static_cast<size_t>(all[static_cast<size_t>(begin + i)]);
        std::memcpy(to + static_cast<size_t>(i) * row_bytes, table.data.data() + row * row_bytes,
                    row_bytes);
      }
    };
    // Several at once: a row that is not in the page cache is waited for.
    ParallelFor((count + kRowsPerPiece - 1) / kRowsPerPiece, copy, kThreads);
    rows.narrow(0, begin, count).copy_(host.narrow(0, 0, count));
    checkpoint.Release(name);
  }
  return rows;
}

}  // namespace oscar
