// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/formats/loaders.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "calib/consumers.h"
#include "export/runtimes/exporter.h"
#include "tests/export/runtimes/exporter_named.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

TEST(Loaders, EveryExporterSaysWhoLoadsItsFiles) {
  for (const Exporter& exporter : AllExporters()) {
    const Loader& loader = LoaderOf(exporter.name);
    for (const std::string_view text : {loader.source, loader.released, loader.hardware}) {
      EXPECT_FALSE(text.empty()) << exporter.name;
      EXPECT_EQ(text.find('\n'), text.npos) << exporter.name;  // printed as a single comment line
    }
    if (loader.source.find("open") == loader.source.npos) continue;
    EXPECT_NE(loader.released.find(kNotReleased), loader.released.npos) << exporter.name;
  }
}

// Writes an artifact that `exporter` can export: a choice for its consumer, or for any consumer.
Artifact ArtifactFor(const Exporter& exporter, const fs::path& path) {
  const auto rules =
      std::ranges::find(AllConsumers(), exporter.name, &ConsumerRules::export_target);
  const Consumer consumer = rules == AllConsumers().end() ? Consumer::kAny : rules->consumer;
  return WideArtifact(path, consumer);
}

// Checks all exporters except those that need a checkpoint.
TEST(Loaders, StandBehindTheFirstLineOfEveryScriptWithAbsolutePaths) {
  const fs::path scratch = TestScratch("loaders");
  for (const Exporter& exporter : AllExporters()) {
    if (exporter.needs_model) continue;
    const fs::path output = scratch / exporter.name;
    const Artifact artifact = ArtifactFor(exporter, scratch / ("of-" + std::string(exporter.name)));
    WriteForRuntime(exporter, artifact, {}, fs::relative(output));
    const bool torch = exporter.name == "oscar-torch";
    const std::string script = ReadText(output / (torch ? "run.py" : "launch.txt"));
    std::string expected = script.substr(0, script.find('\n') + 1);
    EXPECT_TRUE(expected.starts_with("#!"));
    for (const std::string& line : LoaderLines(LoaderOf(exporter.name)))
      expected += "# " + line + "\n";
    EXPECT_TRUE(script.starts_with(expected)) << script;
    // run.py finds its own folder, and llama.cpp loads a merged model, so these name no output
    // path.
    if (torch || exporter.name == "llamacpp") continue;
    EXPECT_NE(script.find(output.string()), script.npos) << script;
  }
}

}  // namespace
}  // namespace oscar
