// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Puts the results of oscar-validate into an artifact: a new report.json, report.html, model card
// and manifest replace the old ones in one step. Results that are not of record
// (export/report/of_record.h) go beside the artifact. The artifact's identity changes, because it
// is its manifest's digest. Only a copy of a published version may be modified.
#pragma once

#include <filesystem>

#include "export/artifact/artifact_reader.h"

namespace oscar {

// Returns the artifact's report with `validation` (export/report/schema.md) in it.
Json ReportWithValidation(const Artifact& artifact, const Json& validation);

// Whether the artifact has its validation of record.
bool HasValidation(const Artifact& artifact);

// Replaces the artifact's directory by one with that report, whose validation must be of record.
// Throws UsageError if it is not, ResourceError if the file system cannot exchange directories.
void AttachReport(const Artifact& artifact, const Json& report);

// Returns the default path for a report that is not of record: the first of ARTIFACT-comparison,
// ARTIFACT-comparison-2, -3, ... that does not exist yet.
std::filesystem::path ComparisonDirectory(const std::filesystem::path& artifact);

// Writes report.json and report.html into a new directory.
void WriteReportDirectory(const std::filesystem::path& path, const Json& report);

}  // namespace oscar
