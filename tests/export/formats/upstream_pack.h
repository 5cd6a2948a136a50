// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs the readers over a folder laid out like tests/data/upstream. Files that load must match
// their expectations, and hostile files their verdicts. A folder without cases fails the test.
#pragma once

#include <filesystem>

namespace oscar {

// Expects every field of each *.expect.json below `folder` in our report, with the same value
// (floats within 1e-9 relative or 1e-12). Returns the number of files checked.
int CheckExpectations(const std::filesystem::path& folder);

// Checks every case of folder/index.json: the verdicts of the reader and of the report, the values,
// and that reading takes less than a second. Returns the number of cases checked.
int CheckVerdicts(const std::filesystem::path& folder);

}  // namespace oscar
