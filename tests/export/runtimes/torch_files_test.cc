// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What oscar-kv's reader finds in the exported folder and in the artifact it was exported from.
#include <gtest/gtest.h>

#include "export/runtimes/exporter.h"
#include "linalg/error.h"
#include "tests/calib/moments/sample_moments.h"
#include "tests/export/artifact/chosen_artifact.h"
#include "tests/export/runtimes/exporter_named.h"
#include "tests/support/run_program.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

// Prints what differs between two folders; nothing: they say the same of every layer.
constexpr const char* kCompare = R"(
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from oscar_kv.artifact import Artifact
artifact, folder = map(Artifact, sys.argv[2:])
print(artifact.layer_ids == folder.layer_ids, artifact.windows == folder.windows,
      artifact.exported, folder.exported, artifact.report()["$schema"]["name"])
for i in artifact.layer_ids:
    for side, other in zip(*((l.k, l.v) for l in (artifact.layer(i, True), folder.layer(i, True)))):
        for name, value in vars(side).items():
            found = getattr(other, name)
            if not (np.array_equal(found, value) if isinstance(value, np.ndarray) else found == value):
                print(i, name, "differs")
    print(artifact.layer(i, True).k.feedback.any())
)";

TEST(TorchFiles, HoldWhatTheArtifactHolds) {
  const fs::path scratch = TestScratch("torch-files");
  const std::vector<SampleRecipe> all = SampleRecipes();
  const std::vector<SampleRecipe> recipes = {all[0], all[2], all[4], all[5]};
  for (const Consumer headline : {Consumer::kAny, Consumer::kSglangOct}) {
    const fs::path at = scratch / std::string(RulesOf(headline).name);
    fs::create_directories(at);
    WriteChosenArtifact(
        at / "a", recipes,
        {.consumer = headline, .fold = false, .bits = headline == Consumer::kAny ? 3.0 : 2.0},
        [](int i) { return SampleMoments(i, 300, 4 + static_cast<unsigned>(i), 64, 32); });
    const Artifact artifact = Artifact::Open(at / "a");
    WriteForRuntime(ExporterNamed("oscar-torch"), artifact, {}, at / "out");
    const ProgramExit found = RunProgram(
        "/usr/bin/env", {"-u", "LD_PRELOAD", OSCAR_PYTHON, "-c", kCompare, OSCAR_TORCH_PACKAGE,
                         (at / "a").string(), (at / "out").string()});
    if (found.err.find("No module named 'numpy'") != std::string::npos)
      OSCAR_SKIP_WITHOUT_PACKAGE("numpy");
    EXPECT_EQ(found.err, "");
    EXPECT_EQ(found.out, "True True False True oscar-report\nTrue\nTrue\nTrue\nTrue\n");
    const std::string script = ReadText(at / "out" / "run.py");
    EXPECT_NE(script.find("main([\"chat\", model, "), std::string::npos) << script;
  }
}

}  // namespace
}  // namespace oscar
