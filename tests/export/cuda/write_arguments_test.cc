// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests that the write path and the unpacking refuse bad arguments before any launch. Needs no GPU.
#include <gtest/gtest.h>

#include "export/cuda/reference/unpack_pages.h"
#include "export/cuda/write/write_cache.h"
#include "linalg/base/error.h"
#include "tests/support/said.h"

namespace oscar {
namespace {

// Returns a pointer that is never dereferenced.
template <typename T>
T* Somewhere() {
  return reinterpret_cast<T*>(uintptr_t{4096});
}

CacheView View() {
  CacheView view;
  view.pages = Somewhere<uint8_t>();
  view.windows = Somewhere<__nv_bfloat16>();
  view.page_table_stride = 4;
  return view;
}

TEST(WriteArguments, RefusedByName) {
  WriteOptions options;
  PrefillTokens tokens;
  tokens.num_tokens = 1;
  EXPECT_TRUE(Says(ErrorOf<UsageError>([&] { WritePrefill(View(), options, tokens, nullptr); }),
                   "bad_rows"));
  options.bad_rows = Somewhere<uint32_t>();
  CacheView view = View();
  view.windows = nullptr;
  EXPECT_TRUE(
      Says(ErrorOf<UsageError>([&] { WritePrefill(view, options, tokens, nullptr); }), "windows"));
  view = View();
  view.format.k.dim = 100;
  EXPECT_TRUE(Says(ErrorOf<UsageError>([&] { WritePrefill(view, options, tokens, nullptr); }),
                   "head dim 100"));
  tokens.num_tokens = -1;
  EXPECT_TRUE(Says(ErrorOf<UsageError>([&] { WritePrefill(View(), options, tokens, nullptr); }),
                   "-1 tokens"));
  EXPECT_TRUE(Says(ErrorOf<UsageError>([&] { FlushWindows(View(), options, nullptr, 8, nullptr); }),
                   "null"));
  EXPECT_TRUE(Says(
      ErrorOf<UsageError>([&] { FlushWindows(View(), options, Somewhere<int32_t>(), 0, nullptr); }),
      "at most 0"));
  tokens.num_tokens = 1;
  options.v.feedback = Somewhere<int8_t>();
  EXPECT_TRUE(Says(ErrorOf<UsageError>([&] { WritePrefill(View(), options, tokens, nullptr); }),
                   "of values"));
  options.v.feedback_units = Somewhere<float>();
  options.v.feedback += 1;
  EXPECT_TRUE(Says(
      ErrorOf<UsageError>([&] { FlushWindows(View(), options, Somewhere<int32_t>(), 8, nullptr); }),
      "16-byte aligned"));
  RotateArguments rotate;
  rotate.num_rows = 1;
  EXPECT_TRUE(
      Says(ErrorOf<UsageError>([&] { RotateRows(rotate, nullptr); }), "the rotation is null"));
  rotate.rotation = Somewhere<__nv_bfloat16>();
  rotate.num_heads = 6;
  rotate.num_matrices = 4;
  EXPECT_TRUE(Says(ErrorOf<UsageError>([&] { RotateRows(rotate, nullptr); }), "6 heads by 4"));
  rotate.dim = 48;
  EXPECT_TRUE(Says(ErrorOf<UsageError>([&] { RotateRows(rotate, nullptr); }), "head dim 48"));
}

TEST(UnpackArguments, RefusedByName) {
  const CacheView view = View();
  EXPECT_TRUE(
      Says(ErrorOf<UsageError>([&] { UnpackPages(view, 1, 0, 1, {}, nullptr); }), "request 1"));
  EXPECT_TRUE(
      Says(ErrorOf<UsageError>([&] { UnpackPages(view, 0, 500, 20, {}, nullptr); }), "512"));
}

}  // namespace
}  // namespace oscar
