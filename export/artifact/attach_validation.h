// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Puts the results of oscar-validate into an artifact. A new report.json, report.html, model card
// and manifest replace the old ones in one step. This changes the artifact's identity, which is the
// digest of its manifest, so modify only a copy of a published version. Results that are not of
// record (export/report/of_record.h) are written beside the artifact.
#pragma once

#include <filesystem>

#include "export/artifact/artifact_reader.h"

namespace oscar {

// Returns the artifact's report with its member "validation" set (export/report/schema.md).
Json ReportWithValidation(const Artifact& artifact, const Json& validation);

// Whether the artifact's report has a validation of record.
bool HasValidation(const Artifact& artifact);

// Replaces the artifact's directory by one that contains `report`. Throws UsageError if the
// report's validation is not of record, ResourceError if the file system cannot exchange
// directories.
void AttachReport(const Artifact& artifact, const Json& report);

// Returns the default path for a report that is not of record: the first of ARTIFACT-comparison,
// ARTIFACT-comparison-2, -3, ... that does not exist yet.
std::filesystem::path ComparisonDirectory(const std::filesystem::path& artifact);

// Writes report.json and report.html into a new directory.
void WriteReportDirectory(const std::filesystem::path& path, const Json& report);

}  // namespace oscar
