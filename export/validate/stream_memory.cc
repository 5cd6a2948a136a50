// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/validate/stream_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "linalg/base/error.h"

namespace oscar {

StreamMemoryNeed StreamMemory(const ModelSpec& spec, at::ScalarType dtype,
                              std::span<const int64_t> stream_tokens, int64_t longest_text) {
  int64_t row_values = 0;  // for a key and a value, over all heads
  for (const LayerSpec& layer : spec.layers) {
    const AttentionSpec& a = layer.attention;
    // Latent attention keeps a row twice, as key and as value, and its positional part once.
    row_values = std::max(row_values, a.latent ? 2 * a.latent->rank + a.latent->rope_dim
                                               : a.num_kv_heads * (a.head_dim + a.v_head_dim));
  }
  const auto element = static_cast<int64_t>(c10::elementSize(dtype));
  const int64_t all_tokens =
      std::accumulate(stream_tokens.begin(), stream_tokens.end(), int64_t{0});
  const auto streams = static_cast<double>(stream_tokens.size());
  return {.num_streams = std::ssize(stream_tokens),
          .num_tokens = std::ranges::max(stream_tokens),
          .hidden = static_cast<double>(all_tokens * spec.hidden_size * element),
          // Counts original rows in `dtype` and stored rows in float32.
          .rows = streams * static_cast<double>(longest_text * row_values * (element + 4))};
}

void CheckStreamsFit(const StreamMemoryNeed& need, uint64_t available, std::string_view device) {
  if (need.hidden + need.rows <= static_cast<double>(available)) return;
  throw ResourceError(
      fmt::format("{} configurations with up to {} tokens each need {:.1f} GB for hidden states "
                  "and {:.1f} GB for keys and values of one layer, but {} has {:.1f} GB left; "
                  "measure fewer configurations at once, or use fewer or shorter texts and needles",
                  need.num_streams, need.num_tokens, need.hidden / 1e9, need.rows / 1e9, device,
                  static_cast<double>(available) / 1e9));
}

}  // namespace oscar
