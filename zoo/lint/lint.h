// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Reports defects of rotations from any source: artifacts, zoos, and upstream's bare files. Every
// kind of finding has a stable code (lint_codes.md).
//
// A reader of these files stops at the first defect, while lint continues where that is safe. In
// the end lint also runs the reader, so it never passes a file that a reader refuses.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "zoo/check/artifact_check.h"

namespace oscar {

enum class Severity { kError, kWarning, kNote };
std::string_view SeverityName(Severity severity);  // "error", "warning", "note"

// A row of lint_codes.md. A code never changes its meaning and is never reused.
struct LintRule {
  std::string_view code;  // "OZ001"
  std::string_view name;  // "unreadable"
  Severity severity;
  std::string_view meaning;
};
std::span<const LintRule> LintRules();
const LintRule& LintRuleNamed(std::string_view name);  // aborts for an unknown name

struct LintPlace {
  std::filesystem::path file;
  std::optional<int64_t> layer_id, head;
  std::string side = {};  // "k", "v", "k_shared", "v_shared", or ""
};

struct LintFinding {
  const LintRule* rule = nullptr;
  LintPlace place;
  std::string found, expected;  // either may be empty
};

struct LintOptions {
  std::optional<ModelGeometry> model;  // reference for layer and head counts
};

struct LintReport {
  size_t files = 0;  // number of files checked
  std::vector<LintFinding> findings;
  bool has_errors() const;
};

// Checks files, artifacts, zoos, entries of zoos, and folders that contain any of these. Throws
// InputError if a path does not exist or contains none of them.
LintReport Lint(const std::vector<std::filesystem::path>& paths, const LintOptions& options);

Json LintToJson(const LintReport& report);
std::string LintLine(const LintFinding& finding);  // "error OZ013 file: layer 3, v, head 1: ..."

}  // namespace oscar
