// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Every way known in which a runtime takes a checkpoint directory and does silently something else
// than the directory says: one table, a row for each. A new way is a row in served_checks.cc and
// the function that finds it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "export/served/served_directory.h"

namespace oscar {

enum class ServedEffect {
  kIgnores,   // the runtime serves without it and at most warns in its log
  kMisreads,  // the runtime takes it for something else
  kRefuses,   // the runtime does not start: loud, but wrong all the same
  kRemark,    // right as it is, if one thing is known
};

// A directory as one runtime sees it.
struct ServedView {
  const ServedDirectory& at;
  ServedRuntime runtime;
  std::vector<const StoredScale*> loaded;  // scales that arrive in an attention layer of its model
};

struct ServedCheck {
  std::string_view name;
  unsigned runtimes;  // of ServedRuntime
  ServedEffect effect;
  std::string_view looks_at;
  std::string_view verdict;  // why, in words that follow what was found
  std::string_view remedy;   // what to do instead
  // What is wrong, by name; empty: nothing.
  std::string (*find)(const ServedView& view);
};

std::span<const ServedCheck> ServedChecks();

struct ServedFinding {
  const ServedCheck* check;
  std::string found;
};

// What becomes of a directory in one runtime.
struct ServedVerdict {
  std::string_view runtime;
  std::vector<std::string> loads;  // "8 scales (.k_scale)", "a recipe (FP8)"
  std::vector<ServedFinding> findings;

  bool wrong() const;  // a finding that is more than a remark
};

struct NamedRuntime {
  std::string_view name;
  ServedRuntime runtime;
};
std::span<const NamedRuntime> ServedRuntimes();

// Of one runtime (0 < `runtimes`, a bit of it), or of all that read anything of what is there.
std::vector<ServedVerdict> JudgeServed(const ServedDirectory& served, unsigned runtimes);

std::string_view ServedEffectName(ServedEffect effect);  // "ignores"

}  // namespace oscar
