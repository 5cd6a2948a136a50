// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/spec/rope_json.h"

#include <gtest/gtest.h>

#include "linalg/base/error.h"
#include "tests/support/said.h"

namespace oscar {
namespace {

TEST(RopeText, ComesBackToTheLastBit) {
  const RopeSpec plain{.theta = 1e6 / 3, .rotary_dim = 8};
  RopeSpec llama3{RopeKind::kLlama3, 500000, 8.1, 1, 4, 8192, 128};
  RopeSpec yarn{.kind = RopeKind::kYarn, .factor = 4.0 / 3, .rotary_dim = 6};
  yarn.layout = RopeLayout::kInterleaved;
  yarn.attention_factor = 0.1 + 0.2;
  yarn.truncate = false;
  RopeSpec longrope{.kind = RopeKind::kLongRope, .original_max_positions = 16, .rotary_dim = 4};
  longrope.short_factor = {1.1, 1.0 / 7};
  longrope.long_factor = {1e-300, 4};
  RopeSpec proportional{.kind = RopeKind::kProportional, .rotary_dim = 8, .turning_pairs = 1};
  for (const RopeSpec& rope :
       {plain, llama3, yarn, longrope, proportional, RopeSpec{.kind = RopeKind::kNone},
        RopeSpec{.kind = RopeKind::kDynamic}, RopeSpec{.kind = RopeKind::kLinear},
        RopeSpec{.first_position = 1}})
    EXPECT_EQ(RopeFromText(RopeToText(rope), 128, "rope"), rope) << RopeToText(rope);
}

TEST(RopeText, RefusesWhatItDoesNotWrite) {
  const auto refuses = [](std::string text, const std::string& from, const std::string& to,
                          const std::string& why) {
    ASSERT_TRUE(Says(text, from));
    text.replace(text.find(from), from.size(), to);
    const std::string error = ErrorOf<InputError>([&] { (void)RopeFromText(text, 8, "layer 3"); });
    EXPECT_TRUE(Says(error, "layer 3"));
    EXPECT_TRUE(Says(error, why));
  };
  RopeSpec rope{.kind = RopeKind::kLongRope, .rotary_dim = 8};
  rope.short_factor = rope.long_factor = {1, 2, 3, 4};
  const std::string text = RopeToText(rope);
  EXPECT_NO_THROW(RopeFromText(text, 8, "layer 3"));
  refuses(text, "longrope", "spiral", "\"spiral\" is unknown");
  refuses(text, "half", "thirds", "\"thirds\" is unknown");
  refuses(text, "\"rotary_dim\":8", "\"rotary_dim\":10", "10 rotary dimensions");
  refuses(text, "\"rotary_dim\":8", "\"rotary_dim\":-2", "rotary dimensions");
  refuses(text, "\"rotary_dim\":8", "\"rotary_dim\":7", "7 rotary dimensions");
  refuses(text, "[1.0,2.0,3.0,4.0]", "[1.0,2.0]", "pair factors");
  refuses(text, "[1.0,2.0,3.0,4.0]", "[1.0,\"2\",3.0,4.0]", "no numbers");
  refuses(text, "[1.0,2.0,3.0,4.0]", "[1.0,0.0,3.0,4.0]", "above 0");
  refuses(text, "[1.0,2.0,3.0,4.0]", "5", "array");
  refuses(text, "\"theta\":10000.0", "\"theta\":-1.0", "above 0");
  refuses(text, "\"theta\":10000.0,", "", "theta");
  refuses(text, "{", "", "JSON");
}

}  // namespace
}  // namespace oscar
