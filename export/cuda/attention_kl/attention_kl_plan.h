// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks the arguments and splits the work into tiles of rows and chunks of keys. The split depends
// on shapes and on the kernel, never on the number of multiprocessors. So results have the same
// bits if the GPU is partitioned.
#pragma once

#include <cstddef>
#include <cstdint>

#include "export/cuda/attention_kl/attention_kl.h"
#include "export/cuda/attention_kl/attention_kl_launch.h"

namespace oscar::kl {

constexpr int kMergeRows = 256;  // rows of a head that one CTA merges

struct Plan {
  bool hopper;
  int tile_rows;
  int64_t num_vrows, items;
  int64_t chunk_keys, num_chunks;
  size_t bytes;  // size of the workspace
};

// Throws UsageError, which lists what is supported, for any other shape or option.
Plan PlanOf(const AttentionKlShape& shape, const AttentionKlOptions& options);
void CheckPointers(const AttentionKlOptions& options, const AttentionKlInputs& inputs,
                   const AttentionKlRows& rows);
void CheckWorkspace(const Plan& plan, const void* workspace, size_t bytes);

KlParams ParamsOf(const AttentionKlShape& shape, const AttentionKlOptions& options,
                  const AttentionKlInputs& inputs, const AttentionKlRows& rows, const Plan& plan,
                  void* workspace);

}  // namespace oscar::kl
