// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Launches RotateRows and AppendTokens after their checks (write_cache.cc). Trap: these functions
// check nothing.
#pragma once

#include "export/cuda/write/write_cache.h"

namespace oscar {

void LaunchRotateRows(const RotateArguments& arguments, cudaStream_t stream);
void LaunchAppendTokens(const CacheView& view, const WriteOptions& options, const __nv_bfloat16* k,
                        const __nv_bfloat16* v, cudaStream_t stream);

}  // namespace oscar
