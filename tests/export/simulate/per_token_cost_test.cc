// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests the published and the allocated bits per element of methods that quantize each token by
// itself. There are 8 KV heads of 128 values, as in the published tables.
#include <gtest/gtest.h>

#include "tests/export/simulate/row_context.h"

namespace oscar {
namespace {

constexpr RowGeometry kPublished = {.num_q_heads = 8,
                                    .num_kv_heads = 8,
                                    .head_dim = 128,
                                    .v_head_dim = 128,
                                    .sequences = 1,
                                    .tokens = 8};

struct Expected {
  const char* method;
  double paper, actual;
};

// A multiple of every page size.
constexpr int64_t kTokens = 131072;

TEST(PerTokenCost, PublishedRows) {
  RowContext rows(kPublished);
  const Expected kTable[] = {{"bf16", 16, 16},
                             {"fp8_e4m3", 8, 8},
                             {"fp8_e5m2_per_head", 8, 8},
                             {"nvfp4", 4.5, 4.5},
                             {"fp8_k_nvfp4_v_calibrated", 6.25, 6.25},
                             {"hadamard_trellis", 2.1875, 2.1875},
                             {"octopus_2", 43 * 7 / 128.0 + 0.25, 43 * 7 / 128.0 + 0.25},
                             {"naive", 2.25, 2.5},  // fp32 metadata in memory
                             {"naive_int4", 4.25, 4.5},
                             {"hadamard", 2.25, 2.5},
                             {"headq", 2.625, 3},  // keys: 2 + 16 * 4 / 128 bits and two scales
                             {"quarot_int2", 2.25, 2.25},
                             {"quarot_int4", 4.25, 4.25},
                             {"quarot_int4_kernel", 4.25, 4.25},
                             {"quarot_int2_per_token", 2 + 32.0 / 1024, 2 + 32.0 / 1024},
                             {"saw_int4", 4.25, 4.5},
                             {"saw_int8", 8.25, 8.5},
                             {"turboquant_k3v3", 3.25, 3.1875},  // key slots hold only a norm
                             {"turboquant_k8v4", 6.125, 6.125},
                             {"turboquant_4bit_nc", 4.25, 4.1875},
                             {"turboquant_k3v4_nc", 3.75, 3.6875},
                             {"turboquant_3bit_nc", 3.25, 3.1875},
                             {"turboquant_mse_2", 2.125, 2.125},
                             {"turboquant_prod_4", 4.25, 4.25},
                             {"oscar_shared", 2.25, 2.5},
                             {"oscar_bf16_metadata", 2.25, 2.25},
                             {"oscar_k3v2", 2.75, 3.0},
                             {"oscar_k4v2", 3.25, 3.5},
                             {"oscar_lloyd_max", 2.25, 2.5},
                             {"oscar_lloyd_max_llamacpp", 3.0, 3.0}};
  for (const Expected& row : kTable) {
    const CacheCost cost = CacheMethodNamed(row.method).cost(rows.context(), {}, kTokens);
    EXPECT_NEAR(cost.paper, row.paper, 1e-9) << row.method;
    EXPECT_NEAR(cost.actual, row.actual, 1e-9) << row.method;
  }
  EXPECT_EQ(CacheMethodNamed("int4_hadamard").cost(rows.context(), {}, kTokens).paper, 4.25);
}

// The second layer has half as many values per token: 2 heads of 256.
TEST(PerTokenCost, CountsEachLayerByItsOwnHeads) {
  RowContext rows(kPublished);
  rows.AddLayer(2, 256);
  const auto paper = [&](const char* method) {
    return CacheMethodNamed(method).cost(rows.context(), {}, kTokens).paper;
  };
  EXPECT_NEAR(paper("octopus_2"), (2 * (43 * 7 + 32) / 128.0 + (86 * 7 + 32) / 256.0) / 3, 1e-9);
  EXPECT_NEAR(paper("quarot_int2_per_token"), 2 + (2 * 32.0 / 1024 + 32.0 / 512) / 3, 1e-9);
}

// With 64 sink and 256 recent tokens, OSCAR takes 2.28 bits at 128K tokens and 2.38 at 32K. With
// fp32 metadata, it takes 2.533 at 128K.
TEST(PerTokenCost, WindowsOfOscar) {
  RowContext rows(kPublished);
  const ArmOptions windows{.windows = true};
  for (const char* name :
       {"oscar_shared", "oscar_per_head", "oscar_bf16_metadata", "oscar_lloyd_max_serving"}) {
    const CacheMethod& method = CacheMethodNamed(name);
    EXPECT_NEAR(method.cost(rows.context(), windows, 131072).paper, 2.28357, 5e-6) << name;
    EXPECT_NEAR(method.cost(rows.context(), windows, 32768).paper, 2.38428, 5e-6) << name;
  }
  EXPECT_NEAR(CacheMethodNamed("oscar_shared").cost(rows.context(), windows, 131072).actual, 2.533,
              1e-3);
  EXPECT_NEAR(CacheMethodNamed("oscar_bf16_metadata").cost(rows.context(), windows, 131072).actual,
              2.284, 1e-3);
}

// The option sets the quantization group of OSCAR. Methods that quantize whole rows ignore it.
TEST(PerTokenCost, GroupsOfTheOptions) {
  RowContext rows(kPublished, {.quant_group_size = 64});
  const auto paper = [&](const char* name) {
    return CacheMethodNamed(name).cost(rows.context(), {}, kTokens).paper;
  };
  EXPECT_EQ(paper("oscar_k3v2"), 3.0);
  EXPECT_EQ(paper("saw_int4"), 4.25);
  EXPECT_EQ(paper("turboquant_k3v3"), 3.25);
}

}  // namespace
}  // namespace oscar
