// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The cache that a serving runtime really holds; arms named after
// methods say what it should hold. There is one description per runtime
// and one simulator for all. A runtime computes in float32 and rounds
// to its own types, so float64 rows are quantized in float32 here too.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "export/simulate/cache_method.h"
#include "export/simulate/runtime_rows.h"

namespace oscar {

struct RuntimeSpec {
  std::string_view runtime;      // as --runtime names it: "sglang"
  std::string_view method;       // "runtime_sglang"
  std::string_view description;  // one line for people
  std::string_view ideal;        // the arm that it is meant to be

  // Loads the automatic choice, where its files can carry that; else the paper's rotations.
  bool chosen = false;
  std::string_view choice = {};  // whom the choice is made for, where that is not `runtime`
  bool as_chosen = false;      // stores what the choice says, in bf16 arithmetic; no writer counts
  bool per_head = false;       // loads a rotation per KV head; else one per layer
  bool bf16_rotation = false;  // matrix and result of x R in bf16, of queries too; else float32
  enum class WindowRows {
    kRotatedBf16,  // what the rotation gives
    kAsTheyCame,   // not rotated
    kRotatedHalf,
  } window_rows = WindowRows::kRotatedBf16;
  bool one_clip_ratio = false;  // the keys' for the values too

  RowWriter prefill = {},
            flush = {};       // tokens of the prompt; tokens that leave the recent window later
  int64_t flush_tokens = 1;   // how many leave it at once
  int64_t sink_page = 1;      // the sink is rounded down to whole pages, tokens
  int64_t native_layers = 0;  // the first and the last that are not quantized at all

  double metadata_bits = 64;        // per `metadata_group`, as stored
  int64_t metadata_group = 0;       // values; 0: the quantization group
  bool windows_held_twice = false;  // window tokens have a quantized copy, too
};

std::span<const RuntimeSpec> Runtimes();  // runtimes.cc

// The method of a row. Its clip ratios are what the artifact recommends to servers, one for all
// layers, or those of the automatic choice; its windows those of the context. Throws InputError
// where the artifact has no rotation that the runtime loads.
CacheMethod RuntimeMethod(const RuntimeSpec& runtime);

}  // namespace oscar
