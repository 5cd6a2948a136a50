// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs the readers over a folder laid out like tests/data/upstream: expectations of files that
// load, verdicts of hostile ones. A folder without any case is a failure, not a pass.
#pragma once

#include <filesystem>

namespace oscar {

// Every *.expect.json below `folder`: each of its fields must be in our report with the same value
// (floats within 1e-9 relative or 1e-12). Returns the number of files checked.
int CheckExpectations(const std::filesystem::path& folder);

// Every case of folder/index.json: verdict of the reader and of the report, values, under a second.
// Returns the number of cases checked.
int CheckVerdicts(const std::filesystem::path& folder);

}  // namespace oscar
