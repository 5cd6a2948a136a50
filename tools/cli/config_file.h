// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Parses --config FILE.yaml: one mapping from keys to scalars or lists of scalars. Throws
// UsageError, with file and line, for anchors, aliases, tags, nesting, a second document, repeated
// keys and files over 1 MiB. The parser does not know the options; OptionTable gives the entries
// their types.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace oscar {

struct ConfigScalar {
  std::string text;
  bool quoted = false;  // 'x', "x" or a literal: always text
  bool IsNull() const;  // plain null, ~ or nothing
};

struct ConfigEntry {
  std::string key;
  int line = 0;  // counts from 1
  bool list = false;
  std::vector<ConfigScalar> values;  // exactly one unless `list`
};

// Returns the entries in file order. `name`: the file's name in error messages.
std::vector<ConfigEntry> ParseConfig(std::string_view text, const std::string& name);
std::vector<ConfigEntry> ReadConfigFile(const std::string& path);

}  // namespace oscar
