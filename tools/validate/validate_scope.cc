// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/validate/validate_scope.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "export/evaluate/passages.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

struct Scope {
  std::string_view name;
  std::vector<std::string> arms;  // lists for ParseArms
  int64_t sequences, length;      // number of texts, and tokens per text
  int64_t rows;                   // per sequence
  int64_t needle_samples;         // per task and length
  int64_t own_words;              // sequences; -1: see OwnWordsArguments
  bool in_float32;                // measures attention errors in float32 on a CPU
};
const Scope& Named(std::string_view name) {
  static const Scope scopes[] = {
      {"quick", {"quick"}, 4, 2048, 128, 0, 0, true},
      {"normal", {"default"}, 6, 4096, 320, 1, -1, false},
      {"thorough", {"default", "published"}, 16, 4096, 320, 4, -1, false},
  };
  const auto found = std::ranges::find(scopes, name, &Scope::name);
  OSCAR_CHECK(found != std::end(scopes));
  return *found;
}

bool AsksForRecall(const ValidateOptions& options) {
  return !options.needle_lengths.empty() || !options.needle_depths.empty() ||
         !options.needle_tasks.empty() || !options.validation.needle_arms.empty() ||
         options.gate.find("needle") != std::string::npos;
}

bool AsksForOwnWords(const ValidateOptions& options) {
  return options.own_words.length > 0 ||
         std::ranges::find(options.needle_tasks, kPassagesTask) != options.needle_tasks.end();
}

}  // namespace

AppliedScope ApplyScope(bool on_cpu, ValidateOptions& options) {
  if (options.scope == "auto") options.scope = on_cpu ? "quick" : "normal";
  const Scope &scope = Named(options.scope), &normal = Named("normal");
  std::vector<std::string> left_out;
  const auto leave_out = [&](bool less, std::string what) {
    if (less) left_out.push_back(std::move(what));
  };
  // Sets an option that is not given to the scope's value. Returns whether that is less than
  // normal.
  const auto fill = [](int64_t none, int64_t value, int64_t usual, int64_t& option) {
    const bool given = option != none;
    if (!given) option = value;
    return !given && value < usual;
  };
  const bool of_model = options.dump.from.empty(),
             predicts = of_model && !options.validation.local_only;
  if (options.needle_samples < 0 && AsksForRecall(options))
    options.needle_samples = std::max<int64_t>(1, scope.needle_samples);
  leave_out(
      fill(-1, scope.needle_samples, normal.needle_samples, options.needle_samples) && predicts,
      "recall (--needle-samples 1)");
  if (options.own_words.sequences < 0 && !AsksForOwnWords(options)) {
    options.own_words.sequences = scope.own_words;
    leave_out(scope.own_words == 0 && predicts,
              fmt::format("the model's own words (--self-generate {})", kOwnSequences));
  }
  if (options.validation.arms.empty() && options.methods.empty()) {
    options.validation.arms = scope.arms;
    leave_out(scope.arms[0] == "quick", "other usual configurations and controls (--arms default)");
  }
  const bool fewer = fill(0, scope.sequences, normal.sequences, options.sequences),
             shorter = options.length == 0 && scope.length < normal.length;
  options.usual_length = scope.length;
  leave_out((fewer || shorter) && of_model,
            fmt::format("more and longer text (--sequences {} --length {})", normal.sequences,
                        normal.length));
  leave_out(fill(-1, scope.rows, normal.rows, options.validation.rows_per_sequence),
            fmt::format("more query rows (--rows {})", normal.rows));
  if (options.measure == "auto") {
    options.validation.measure_in_float32 = !on_cpu || scope.in_float32;
    leave_out(on_cpu && scope.in_float32, "float64 (--measure f64)");
  } else {
    options.validation.measure_in_float32 = options.measure == "f32";
  }
  if (left_out.empty()) return {options.scope, ""};
  return {options.scope, fmt::format("The {} scope leaves out {}; --scope normal includes them.",
                                     options.scope, fmt::join(left_out, ", "))};
}

}  // namespace oscar
