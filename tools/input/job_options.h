// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "calib/job/job_directory.h"
#include "capture/files/strict_json.h"

namespace oscar {

// Which options a job was started with stands in it, for people: it is not what makes two runs the
// same. RefuseOtherRun says which of them differ, `--tokens: 30000 -> 20000`, where some do.
void RememberOptions(const std::filesystem::path& job, const Json& configuration);
// Where no layer is done yet the job is free for a run of other options: what it has besides, the
// model's own words, says itself what it is of.
void ForgetOptions(const JobLock& job);
[[noreturn]] void RefuseOtherRun(const std::filesystem::path& job, const Json& configuration,
                                 const OtherRun& error);

}  // namespace oscar
