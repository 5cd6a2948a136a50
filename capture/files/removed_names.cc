// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/files/removed_names.h"

#include <fmt/format.h>

#include <algorithm>

namespace oscar {
namespace {

// Flags, values of options and methods share this table, which is read only when a lookup failed: a
// name may still exist elsewhere ("optr" is a method, but no longer a format).
struct RemovedNames {
  std::string_view names;  // separated by single spaces
  std::string_view instead;
};

constexpr RemovedNames kRemoved[] = {
    {"--served",
     "start the server on the checkpoint and read its log; --inspect of oscar-export shows what a "
     "file holds"},
    {"oci:", "publish to a directory, which any web server or object store can hold, or to hf:DIR"},
    {"fish zsh", "bash completions are left (zsh reads them after bashcompinit)"},
};

}  // namespace

std::string RemovedHint(std::string_view name) {
  if (name.empty() || name.find(' ') != name.npos) return "";
  for (const RemovedNames& row : kRemoved) {
    for (size_t at = 0; at < row.names.size();) {
      const size_t end = std::min(row.names.find(' ', at), row.names.size());
      if (row.names.substr(at, end - at) == name)
        return fmt::format("was removed; {}", row.instead);
      at = end + 1;
    }
  }
  return "";
}

}  // namespace oscar
