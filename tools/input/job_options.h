// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "calib/job/job_directory.h"
#include "capture/files/strict_json.h"

namespace oscar {

// Stores for people the options that a job was started with; they do not make two runs the same.
// RefuseOtherRun names those that differ: `--tokens: 30000 -> 20000`.
void RememberOptions(const std::filesystem::path& job, const Json& configuration);
// Frees a job in which no layer is done for other options. The other file that it has, the model's
// own words, itself says what it belongs to.
void ForgetOptions(const JobLock& job);
[[noreturn]] void RefuseOtherRun(const std::filesystem::path& job, const Json& configuration,
                                 const OtherRun& error);

}  // namespace oscar
