// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads the exported folder and its source artifact with the reader of oscar_kv.
#include <gtest/gtest.h>

#include <fstream>

#include "capture/files/replace_all.h"
#include "export/runtimes/exporter.h"
#include "linalg/base/error.h"
#include "tests/calib/moments/sample_moments.h"
#include "tests/export/artifact/chosen_artifact.h"
#include "tests/export/runtimes/exporter_named.h"
#include "tests/support/run_program.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

// Compares an artifact with an exported folder. Prints facts about both, every value that differs,
// and whether the keys of each layer have feedback.
constexpr const char* kCompare = R"(
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from oscar_kv.artifact import Artifact
artifact, folder = map(Artifact, sys.argv[2:])
print(artifact.layer_ids == folder.layer_ids, artifact.windows == folder.windows,
      artifact.exported, folder.exported, artifact.report()["$schema"]["name"])
for i in artifact.layer_ids:
    for side, other in zip(*((l.k, l.v) for l in (artifact.layer(i), folder.layer(i)))):
        for name, value in vars(side).items():
            found = getattr(other, name)
            if not (np.array_equal(found, value) if isinstance(value, np.ndarray) else found == value):
                print(i, name, "differs")
    print(artifact.layer(i).k.feedback is not None)
)";

TEST(TorchFiles, HoldWhatTheArtifactHolds) {
  const fs::path scratch = TestScratch("torch-files");
  const std::vector<SampleRecipe> all = SampleRecipes();
  std::vector<SampleRecipe> recipes = {all[0], all[1], all[4], all[5]};
  recipes[1].keys.feedback = true;
  WriteChosenArtifact(
      scratch / "a", recipes, {.consumer = Consumer::kAny, .fold = false, .bits = 3},
      [](int i) { return SampleMoments(i, 300, 4 + static_cast<unsigned>(i), 64, 32); });
  WriteForRuntime(ExporterNamed("oscar-torch"), Artifact::Open(scratch / "a"), {}, scratch / "out");
  const ProgramExit found = RunProgram(
      "/usr/bin/env", {"-u", "LD_PRELOAD", OSCAR_PYTHON, "-c", kCompare, OSCAR_TORCH_PACKAGE,
                       (scratch / "a").string(), (scratch / "out").string()});
  if (found.err.find("No module named 'numpy'") != std::string::npos)
    OSCAR_SKIP_WITHOUT_PACKAGE("numpy");
  EXPECT_EQ(found.err, "");
  EXPECT_EQ(found.out, "True True False True oscar-report\nFalse\nTrue\nFalse\nFalse\n");
  const std::string script = ReadText(scratch / "out" / "run.py");
  EXPECT_NE(script.find("main([\"chat\", model, "), std::string::npos) << script;

  // For a model calibrated from a directory, the artifact knows only the directory's last name.
  std::ofstream(scratch / "run.py") << ReplaceAll(script, "\"example/Tiny\"", "\"Tiny\"");
  const ProgramExit nowhere = RunProgram(OSCAR_PYTHON, {(scratch / "run.py").string()});
  EXPECT_TRUE(Exits(nowhere, 1));
  EXPECT_EQ(nowhere.err,
            "run.py: there is no directory Tiny here; give the model's directory: python3 run.py "
            "MODEL\n");
}

TEST(TorchFiles, AreRefusedWhereTheChoiceFitsAFoldedCheckpointAlone) {
  const fs::path scratch = TestScratch("torch-files-folded");
  WriteChosenArtifact(scratch / "a", {SampleRecipes()[3]}, {.consumer = Consumer::kAny});
  EXPECT_THROW(WriteForRuntime(ExporterNamed("oscar-torch"), Artifact::Open(scratch / "a"), {},
                               scratch / "out"),
               InputError);
  EXPECT_FALSE(fs::exists(scratch / "out"));
}

}  // namespace
}  // namespace oscar
