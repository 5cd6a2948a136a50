// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Makes man pages; see program_docs.h.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "tools/cli/build_info.h"
#include "tools/cli/command_line.h"
#include "tools/cli/program_docs.h"

namespace oscar {
namespace {

// Escapes text so that roff prints it unchanged: no requests, and hyphens that can be copied.
std::string Roff(std::string_view text) {
  std::string roff;
  for (const char c : text) {
    if (c == '\\') {
      roff += "\\e";
    } else if (c == '-') {
      roff += "\\-";
    } else {
      roff += c;
    }
  }
  return roff.starts_with('.') || roff.starts_with('\'') ? "\\&" + roff : roff;
}

std::string OptionsOf(const OptionTable& table) {
  std::string text, group;
  for (const Option& option : table.options()) {
    if (option.group != group) text += fmt::format(".SS \"{}\"\n", Roff(group = option.group));
    text += fmt::format(".TP\n.B {}\n{}\n", Roff(HelpLabel(option)),
                        Roff(HelpDescription(option, /*all=*/true)));
  }
  return text;
}

std::string InCapitals(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

}  // namespace

std::string ManPage(const ProgramDocs& docs) {
  std::string page = fmt::format(".TH {} 1 \"\" \"oscar {}\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n",
                                 Roff(InCapitals(docs.command)), ThisBuild().version,
                                 Roff(docs.command), Roff(docs.summary));
  for (const OptionTable& table : docs.tables)
    page += fmt::format(".B {}\n.br\n", Roff(UsageLine(table)));
  if (!docs.notes.empty()) page += fmt::format(".SH DESCRIPTION\n{}\n", Roff(docs.notes));
  for (const OptionTable& table : docs.tables) {
    const bool verb = table.command() != docs.command;
    page += fmt::format(".SH \"{}\"\n", verb ? Roff(InCapitals(table.command())) : "OPTIONS");
    if (verb) page += Roff(table.summary()) + "\n";
    page += OptionsOf(table);
  }
  std::string examples;
  for (const OptionTable& table : docs.tables)
    for (const auto& [line, what] : table.examples())
      examples += fmt::format(".TP\n.B {}\n{}\n", Roff(line), Roff(what));
  if (!examples.empty()) page += ".SH EXAMPLES\n" + examples;
  page +=
      ".SH \"EXIT STATUS\"\n0 done; 1 a gate failed; 2 wrong usage or configuration; 3 bad input; "
      "4 not enough memory or disk, or a device error; 10 unsigned, 11 wrong key, 12 altered, 13 "
      "extra file, 14 too old, 15 look-alike name; 130 interrupted, can be resumed\n";
  return page;
}

}  // namespace oscar
