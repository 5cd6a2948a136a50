// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Arguments that the write path and the unpacking refuse, before any launch; needs no GPU.
#include <gtest/gtest.h>

#include "export/cuda/reference/unpack_pages.h"
#include "export/cuda/write/write_cache.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

// Never dereferenced.
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

template <typename Call>
std::string Refusal(Call call) {
  try {
    call();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(WriteArguments, RefusedByName) {
  WriteOptions options;
  PrefillTokens tokens;
  tokens.num_tokens = 1;
  EXPECT_NE(Refusal([&] { WritePrefill(View(), options, tokens, nullptr); }).find("bad_rows"),
            std::string::npos);
  options.bad_rows = Somewhere<uint32_t>();
  CacheView view = View();
  view.windows = nullptr;
  EXPECT_NE(Refusal([&] { WritePrefill(view, options, tokens, nullptr); }).find("windows"),
            std::string::npos);
  view = View();
  view.format.k.dim = 100;
  EXPECT_NE(Refusal([&] { WritePrefill(view, options, tokens, nullptr); }).find("head dim 100"),
            std::string::npos);
  tokens.num_tokens = -1;
  EXPECT_NE(Refusal([&] { WritePrefill(View(), options, tokens, nullptr); }).find("-1 tokens"),
            std::string::npos);
  EXPECT_NE(Refusal([&] { FlushWindows(View(), options, nullptr, 8, nullptr); }).find("null"),
            std::string::npos);
  EXPECT_NE(Refusal([&] {
              FlushWindows(View(), options, Somewhere<int32_t>(), 0, nullptr);
            }).find("at most 0"),
            std::string::npos);
  tokens.num_tokens = 1;
  options.v.feedback = Somewhere<int8_t>();
  EXPECT_NE(Refusal([&] { WritePrefill(View(), options, tokens, nullptr); }).find("of values"),
            std::string::npos);
  options.v.feedback_units = Somewhere<float>();
  options.v.feedback += 1;
  EXPECT_NE(Refusal([&] {
              FlushWindows(View(), options, Somewhere<int32_t>(), 8, nullptr);
            }).find("16-byte aligned"),
            std::string::npos);
  RotateArguments rotate;
  rotate.num_rows = 1;
  EXPECT_NE(Refusal([&] { RotateRows(rotate, nullptr); }).find("no rotation"), std::string::npos);
  rotate.rotation = Somewhere<__nv_bfloat16>();
  rotate.num_heads = 6;
  rotate.num_matrices = 4;
  EXPECT_NE(Refusal([&] { RotateRows(rotate, nullptr); }).find("6 heads by 4"), std::string::npos);
  rotate.dim = 48;
  EXPECT_NE(Refusal([&] { RotateRows(rotate, nullptr); }).find("head dim 48"), std::string::npos);
}

TEST(UnpackArguments, RefusedByName) {
  const CacheView view = View();
  EXPECT_NE(Refusal([&] { UnpackPages(view, 1, 0, 1, {}, nullptr); }).find("request 1"),
            std::string::npos);
  EXPECT_NE(Refusal([&] { UnpackPages(view, 0, 500, 20, {}, nullptr); }).find("512"),
            std::string::npos);
}

}  // namespace
}  // namespace oscar
