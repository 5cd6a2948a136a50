// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/zoo/run_validate.h"

#include <fmt/format.h>

#include <utility>

#include "capture/files/atomic_file.h"
#include "capture/files/temporary_directory.h"
#include "export/artifact/artifact_format.h"
#include "tools/cli/child_program.h"

namespace fs = std::filesystem;

namespace oscar {

Json RunValidate(const ValidateRun& run, Log& log) {
  const fs::path program = ProgramBeside("oscar-validate", "repeating a validation");
  const TemporaryDirectory scratch("measure");
  const fs::path config = scratch.path() / "config.yaml", report = scratch.path() / "report";
  WriteFileAtomically(config, CanonicalJson(run.configuration));  // valid YAML, too
  std::vector<std::string> arguments = {
      run.artifact.string(), "--model",  run.model.string(), "--config", config.string(), "-o",
      report.string(),       "--device", run.device,         "--quiet"};
  if (!run.data.empty()) arguments.push_back("--data");
  arguments.insert(arguments.end(), run.data.begin(), run.data.end());
  log.Info("measuring", fmt::format("repeating the validation with {}", program.string()));
  RunChild(program, std::move(arguments), "the validation could not be repeated");
  return ReadJsonFile(report / kReportFile);
}

}  // namespace oscar
