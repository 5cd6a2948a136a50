// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/runtimes/dump_rows.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "capture/checkpoint/stored_values.h"
#include "capture/model/rope_json.h"
#include "linalg/error.h"

namespace oscar {

RopeSpec RopeOf(const DumpLayer& layer, const std::string& where) {
  if (!layer.facts) {
    throw InputError(fmt::format(
        "{}: layer {}: the dump does not say its rotary embedding; oscar-capture writes it", where,
        layer.layer_id));
  }
  return RopeFromText(layer.facts->rope, layer.head_dim, where);
}

DumpRows RowsOf(const DumpLayer& layer, std::span<const std::byte> bytes, int64_t width) {
  const int64_t size = DTypeBytes(layer.dtype);
  DumpRows rows(std::ssize(bytes) / (width * size), width);
  for (Eigen::Index i = 0; i < rows.size(); ++i)
    rows.data()[i] = static_cast<double>(LoadFloat(layer.dtype, bytes.data() + i * size));
  return rows;
}

void TurnBack(const RopeSpec& rope, Eigen::Ref<DumpRows> rows) {
  const std::vector<double> frequencies = InverseFrequencies(rope, rows.rows());
  for (Eigen::Index position = 0; position < rows.rows(); ++position) {
    for (size_t i = 0; i < frequencies.size(); ++i) {
      const RopePair pair = PairOf(rope, static_cast<int64_t>(i));
      const double angle = static_cast<double>(position) * frequencies[i];
      const double c = std::cos(angle) / rope.attention_factor,
                   s = std::sin(angle) / rope.attention_factor;
      double &first = rows(position, pair.first), &second = rows(position, pair.second);
      const double turned = first;
      first = c * turned + s * second;
      second = c * second - s * turned;
    }
  }
}

}  // namespace oscar
