// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/input/job_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "capture/files/atomic_file.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr const char* kConfigurationFile = "configuration.json";  // in the job's directory

}  // namespace

void RememberOptions(const fs::path& job, const Json& configuration) {
  if (const fs::path file = job / kConfigurationFile; !fs::exists(file))
    WriteFileAtomically(file, CanonicalJson(configuration));
}

void ForgetOptions(const JobLock& job) {
  if (JobDirectory::HasLayers(job)) return;
  for (const char* file : {kConfigurationFile, kFingerprintFile}) fs::remove(job.path() / file);
}

void RefuseOtherRun(const fs::path& job, const Json& configuration, const OtherRun& error) {
  const fs::path file = job / kConfigurationFile;
  const Json was = fs::exists(file) ? ReadJsonFile(file.string()) : configuration;
  std::string list;
  for (const auto& [key, value] : configuration.items()) {
    const Json before = was.value(key, Json());
    if (before == value) continue;
    std::string flag = "--" + key;
    std::ranges::replace(flag, '_', '-');
    list += fmt::format("\n  {}: {} -> {}", flag, before.dump(), value.dump());
  }
  if (list.empty()) throw error;
  throw InputError(fmt::format("{}: contains an unfinished run with other options:{}\ngive the "
                               "same options to continue it",
                               job.string(), list),
                   Remedy::kStartOver);
}

}  // namespace oscar
