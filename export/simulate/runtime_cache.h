// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Simulates the cache that a serving runtime really stores; a paper's method shows what it should
// store. Each runtime has one description, and one simulator serves all. A runtime computes in
// float32 and rounds to its own types, so float64 rows are also quantized in float32 here.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "export/simulate/cache_method.h"
#include "export/simulate/runtime_rows.h"

namespace oscar {

struct RuntimeSpec {
  std::string_view runtime;      // as in --runtime: "sglang"
  std::string_view method;       // like "runtime_sglang"
  std::string_view description;  // one line for people
  std::string_view ideal;        // the arm (method and modifiers) that it should match

  // Whether it loads the automatic choice of oscar-calibrate instead of OSCAR's rotations.
  bool chosen = false;
  std::string_view choice = {};  // runtime whose choice it loads; empty: `runtime`
  bool as_chosen = false;        // computes the choice in bf16 arithmetic and ignores the writers
  bool per_head = false;         // loads a rotation per KV head, not per layer
  bool bf16_rotation = false;    // matrix and result of x R in bf16 (also for queries), not float32
  enum class WindowRows {
    kRotatedBf16,  // the rotated row
    kAsTheyCame,   // not rotated
    kRotatedHalf,
  } window_rows = WindowRows::kRotatedBf16;
  bool one_clip_ratio = false;  // the keys' ratio is also used for the values

  RowWriter prefill = {}, flush = {};  // for the prompt; for tokens that leave the recent window
  int64_t flush_tokens = 1;            // tokens that leave the recent window at once
  int64_t sink_page = 1;      // the sink is rounded down to whole pages of this many tokens
  int64_t native_layers = 0;  // this many first and last layers are not quantized

  double metadata_bits = 64;        // stored bits per `metadata_group`
  int64_t metadata_group = 0;       // values; 0: the quantization group
  bool windows_held_twice = false;  // window tokens also have a quantized copy
};

std::span<const RuntimeSpec> Runtimes();  // runtimes.cc

// Returns the method that simulates `runtime`. Clip ratios are those recommended for serving (one
// pair for all layers) or those of the automatic choice. Windows are the context's. The method's
// make() throws InputError if the artifact has no rotation that the runtime can load.
CacheMethod RuntimeMethod(const RuntimeSpec& runtime);

}  // namespace oscar
