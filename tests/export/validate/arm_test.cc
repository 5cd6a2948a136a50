// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//

#include "export/validate/arm.h"

#include <gtest/gtest.h>

#include "linalg/error.h"
#include "tests/export/validate/tiny_artifact.h"

namespace oscar {
namespace {

struct Tiny {
  TinyModel model;
  Artifact artifact = Artifact::Open(TinyArtifact());
  MethodContext context{artifact, model.spec.layers, {}};
};

TEST(Arm, ItsNameIsItsMethodAndModifiersInOneOrder) {
  const Arm arm = ParseArm("hadamard+windows+clip");
  EXPECT_EQ(arm.name, "hadamard+clip+windows");
  EXPECT_EQ(arm.method->name, "hadamard");
  EXPECT_TRUE(arm.clip && arm.windows);
  EXPECT_FALSE(ParseArm("naive").clip);
}

TEST(Arm, NonsenseIsRefused) {
  for (const char* name : {"", "hadamart", "naive+", "naive+clip+clip", "naive+sink", "bf16+clip",
                           "+clip", "naive clip"})
    EXPECT_THROW(ParseArm(name), UsageError) << name;
}

TEST(Arm, TheReferenceComesFirstAndNothingTwice) {
  const Tiny tiny;
  const std::vector<Arm> arms = ParseArms({"naive", "bf16", "naive"}, tiny.context);
  ASSERT_EQ(arms.size(), 2U);
  EXPECT_EQ(arms[0].name, "bf16");
  EXPECT_THROW(ParseArms({"bf16"}, tiny.context), UsageError);
}

TEST(Arm, EveryMethodComesWithAndWithoutClippingAndWindows) {
  const std::vector<Arm> arms = ParseArms({"all"}, Tiny().context);
  size_t quantizing = 0;
  for (const CacheMethod& method : CacheMethods()) quantizing += method.payload_bits < 16;
  EXPECT_EQ(arms.size(), 4 * quantizing + (CacheMethods().size() - quantizing));
}

TEST(Arm, TheHeadlineIsOscarPerHeadWithEverything) {
  const Tiny tiny;
  EXPECT_EQ(HeadlineArm(ParseArms({"default"}, tiny.context)).name, "oscar_per_head+clip+windows");
  EXPECT_EQ(HeadlineArm(ParseArms({"oscar_shared+windows", "naive"}, tiny.context)).name,
            "oscar_shared+windows");
  EXPECT_EQ(HeadlineArm(ParseArms({"naive", "hadamard"}, tiny.context)).name, "hadamard");
}

}  // namespace
}  // namespace oscar
