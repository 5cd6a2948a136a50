// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "calib/job/job_directory.h"
#include "capture/files/strict_json.h"

namespace oscar {

// Stores the options with which a job was started. A job is not identified by them; they only let
// RefuseOtherRun show which ones differ, like `--tokens: 30000 -> 20000`.
void RememberOptions(const std::filesystem::path& job, const Json& configuration);
// Forgets the options of a job without finished layers, so that it can continue with others. The
// job may have text that the model wrote; that file records its own options.
void ForgetOptions(const JobLock& job);
// Throws InputError that lists the options that differ from the job's.
[[noreturn]] void RefuseOtherRun(const std::filesystem::path& job, const Json& configuration,
                                 const OtherRun& error);

}  // namespace oscar
