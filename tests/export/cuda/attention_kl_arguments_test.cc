// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests that attention-KL refuses unsupported arguments and names them. Needs no GPU.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "export/cuda/attention_kl/attention_kl.h"
#include "linalg/base/error.h"
#include "tests/support/said.h"

namespace oscar {
namespace {

void ExpectRefused(const std::function<void(AttentionKlShape&, AttentionKlOptions&)>& change,
                   const std::string& why) {
  AttentionKlShape shape{1024, 32, 8, 128, 128, 1024};
  AttentionKlOptions options;
  options.scale = 0.1;
  change(shape, options);
  EXPECT_TRUE(Says(ErrorOf<UsageError>([&] { AttentionKlWorkspace(shape, options); }), why));
}

TEST(AttentionKlArguments, RefusesWhatItCannotDoByName) {
  ExpectRefused([](auto& s, auto&) { s.head_dim = 512; },
                "head dim 512; supported: multiples of 8 from 8 to 256");
  ExpectRefused([](auto& s, auto&) { s.head_dim = 100; }, "head dim 100");
  ExpectRefused([](auto& s, auto&) { s.num_kv_heads = 7; }, "32 query heads over 7 KV heads");
  ExpectRefused([](auto& s, auto&) { s.num_kv_heads = 0; }, "32 query heads over 0 KV heads");
  ExpectRefused([](auto& s, auto&) { s.rows = 0; }, "of 0 rows over 1024 tokens");
  ExpectRefused([](auto& s, auto&) { s.tokens = 1 << 25; }, "of 1024 rows over 33554432 tokens");
  ExpectRefused([](auto&, auto& o) { o.scale = 0; }, "scale 0 and softcap 0");
  ExpectRefused([](auto&, auto& o) { o.softcap = -1; }, "softcap -1");
  ExpectRefused([](auto&, auto& o) { o.recent = -1; }, "-1 recent tokens");
  ExpectRefused(
      [](auto& s, auto& o) {
        o.outputs = true;
        s.v_head_dim = 1024;
      },
      "V head dim 1024");
}

}  // namespace
}  // namespace oscar
