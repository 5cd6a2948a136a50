// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks, before any weight is read, whether a validation fits into memory. Every arm keeps the
// hidden states of all its tokens, so the memory grows with the number of arms.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <span>
#include <string_view>

#include "capture/model/spec/model_spec.h"

namespace oscar {

struct StreamMemoryNeed {
  int64_t num_streams = 0;  // including the reference
  int64_t num_tokens = 0;   // in the longest stream
  double hidden = 0;        // bytes of hidden states
  double rows = 0;          // bytes of one layer's keys and values of one text, in all streams
};
// `stream_tokens` has the number of tokens of each stream.
StreamMemoryNeed StreamMemory(const ModelSpec& spec, at::ScalarType dtype,
                              std::span<const int64_t> stream_tokens, int64_t longest_text);

// Throws ResourceError with the numbers if the need exceeds `available`, the free bytes of
// `device`.
void CheckStreamsFit(const StreamMemoryNeed& need, uint64_t available, std::string_view device);

}  // namespace oscar
