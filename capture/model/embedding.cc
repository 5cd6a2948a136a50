// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/embedding.h"

#include <ATen/ops/empty.h>

#include <cstring>

#include "capture/model/device.h"
#include "linalg/check.h"

namespace oscar {

at::Tensor GatherRows(const Checkpoint& checkpoint, const std::string& name,
                      const std::vector<std::vector<int32_t>>& ids, const WeightTarget& target) {
  constexpr int64_t kRowsAtOnce = 4096;
  const TensorView table = checkpoint.tensor(name);
  const int64_t columns = table.shape.at(1);
  const size_t row_bytes = table.data.size() / static_cast<size_t>(table.shape[0]);
  int64_t total = 0;
  for (const auto& sequence : ids) total += static_cast<int64_t>(sequence.size());

  at::Tensor rows =
      at::empty({total, columns}, at::TensorOptions().dtype(target.dtype).device(target.device));
  const at::Tensor host =
      at::empty({std::min(total, kRowsAtOnce), columns}, ToScalarType(table.dtype, name));
  int64_t done = 0, filled = 0;
  const auto flush = [&] {
    rows.narrow(0, done, filled).copy_(host.narrow(0, 0, filled));
    checkpoint.Release(name);
    done += filled;
    filled = 0;
  };
  for (const auto& sequence : ids) {
    for (const int32_t id : sequence) {
      OSCAR_CHECK(id >= 0 && id < table.shape[0]);
      std::byte* destination =
          static_cast<std::byte*>(host.data_ptr()) + static_cast<size_t>(filled) * row_bytes;
      std::memcpy(destination, table.data.data() + static_cast<size_t>(id) * row_bytes, row_bytes);
      if (++filled == host.size(0)) flush();
    }
  }
  if (filled > 0) flush();
  return rows;
}

}  // namespace oscar
