// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "calib/job/job_directory.h"
#include "capture/files/strict_json.h"

namespace oscar {

// Stores the options that a job was started with. They do not identify the run; RefuseOtherRun only
// shows which ones differ: `--tokens: 30000 -> 20000`.
void RememberOptions(const std::filesystem::path& job, const Json& configuration);
// Lets a job without finished layers be used with other options. The job's other file, text that
// the model wrote, records its own options.
void ForgetOptions(const JobLock& job);
[[noreturn]] void RefuseOtherRun(const std::filesystem::path& job, const Json& configuration,
                                 const OtherRun& error);

}  // namespace oscar
