// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Puts what oscar-validate measured into an artifact: a new report.json, report.html, model card
// and manifest, exchanged for the old ones in one step; or beside it, where it is none of record
// (export/report/of_record.h). The identity of an artifact is its manifest's digest, so it
// changes; a published version is never touched, a copy is.
#pragma once

#include <filesystem>

#include "export/artifact/artifact_reader.h"

namespace oscar {

// The artifact's report with `validation` (export/report/schema.md) in it.
Json ReportWithValidation(const Artifact& artifact, const Json& validation);

// Whether the artifact has its validation of record.
bool HasValidation(const Artifact& artifact);

// Exchanges the artifact's directory for one with that report, whose validation is of record.
// UsageError where it is not, ResourceError where the file system cannot exchange directories.
void AttachReport(const Artifact& artifact, const Json& report);

// Where reports go that are none of record and have no place of their own: ARTIFACT-comparison, or
// ARTIFACT-comparison-2, -3, ...: the first that is not there yet.
std::filesystem::path ComparisonDirectory(const std::filesystem::path& artifact);

// report.json and report.html in a new directory.
void WriteReportDirectory(const std::filesystem::path& path, const Json& report);

}  // namespace oscar
