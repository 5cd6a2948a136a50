// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A plain table for standard output, with aligned columns: numbers to the right, words to the left.
#pragma once

#include <string>
#include <vector>

namespace oscar {

class TextTable {
 public:
  // A heading that starts with '>' aligns its column to the right (the mark is not printed).
  explicit TextTable(std::vector<std::string> headings);

  // One cell per column. Control characters in a cell are printed as '?'.
  void AddRow(std::vector<std::string> cells);

  // Renders the headings, a rule and the rows, with two spaces between columns and none at the end.
  std::string ToString() const;

 private:
  std::vector<bool> right_;                     // per column
  std::vector<std::vector<std::string>> rows_;  // the headings come first
};

}  // namespace oscar
