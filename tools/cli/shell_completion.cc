// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Makes bash completions; see program_docs.h.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "capture/files/quote.h"  // Quoted
#include "capture/files/removed_names.h"
#include "linalg/base/error.h"
#include "tools/cli/command_line.h"
#include "tools/cli/program_docs.h"

namespace oscar {
namespace {

// Returns "publish" for the table of "oscar-zoo publish"; "" for the program's own table.
std::string VerbOf(const ProgramDocs& docs, const OptionTable& table) {
  return table.command() == docs.command ? "" : table.command().substr(docs.command.size() + 1);
}

std::vector<std::string> VerbsOf(const ProgramDocs& docs) {
  std::vector<std::string> verbs;
  for (const OptionTable& table : docs.tables)
    if (const std::string verb = VerbOf(docs, table); !verb.empty()) verbs.push_back(verb);
  return verbs;
}

std::vector<std::string> FlagsOf(const Option& option) {
  std::vector<std::string> flags = {LongFlag(option)};
  if (option.is_switch() && option.default_value == true)
    flags = {"--no-" + flags.front().substr(2)};
  if (option.spec.short_name != 0) flags.push_back(fmt::format("-{}", option.spec.short_name));
  return flags;
}

std::string FunctionName(const ProgramDocs& docs) {
  std::string name = "_" + docs.command;
  std::ranges::replace(name, '-', '_');
  return name;
}

std::string BashOf(const OptionTable& table) {
  std::string cases, words;
  for (const Option& option : table.options()) {
    const std::vector<std::string> flags = FlagsOf(option);
    words += (words.empty() ? "" : " ") + flags.front();
    if (!option.spec.choices.empty()) {
      cases += fmt::format("        {}) COMPREPLY=($(compgen -W {} -- \"$word\")); return;;\n",
                           fmt::join(flags, "|"),
                           ShellQuote(fmt::format("{}", fmt::join(option.spec.choices, " "))));
    } else if (!option.is_switch() && !option.spec.path) {
      cases += fmt::format("        {}) return;;\n", fmt::join(flags, "|"));
    }
  }
  return fmt::format("      case $before in\n{}      esac\n      flags={}\n", cases,
                     ShellQuote(words));
}

std::string Bash(const ProgramDocs& docs) {
  std::string verbs, cases;
  for (const OptionTable& table : docs.tables) {
    const std::string verb = VerbOf(docs, table);
    cases += fmt::format("    {})\n{}      ;;\n", verb.empty() ? "*" : verb, BashOf(table));
  }
  return fmt::format(
      "# bash completion of {0}, made by {0} --print-completion bash\n"
      "{1}() {{\n"
      "  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} flags=\n"
      "  case ${{COMP_WORDS[1]}} in\n{2}  esac\n"
      "  if [[ $word == -* ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$flags\" -- \"$word\"))\n"
      "  elif ((COMP_CWORD == 1)); then\n"
      "    COMPREPLY=($(compgen -W {3} -- \"$word\") $(compgen -f -- \"$word\"))\n"
      "  else\n"
      "    COMPREPLY=($(compgen -f -- \"$word\"))\n"
      "  fi\n"
      "}}\n"
      "complete -o filenames -F {1} {0}\n",
      docs.command, FunctionName(docs), cases,
      ShellQuote(fmt::format("{}", fmt::join(VerbsOf(docs), " "))));
}

}  // namespace

std::string ShellCompletion(const ProgramDocs& docs, std::string_view shell) {
  ProgramDocs sorted = docs;  // verbs come first, the program's own table last
  std::ranges::stable_sort(
      sorted.tables, {}, [&](const OptionTable& table) { return table.command() == docs.command; });
  if (shell == "bash") return Bash(sorted);
  const std::string hint = RemovedHint(shell);
  throw UsageError(fmt::format("--print-completion: found {}, {}", Quoted(shell),
                               hint.empty() ? "expected bash" : "which " + hint));
}

std::optional<std::string> DocsAskedFor(const ProgramDocs& docs,
                                        const std::vector<std::string>& arguments) {
  if (arguments.size() == 1 && arguments[0] == "--print-man") return ManPage(docs);
  if (arguments.size() == 2 && arguments[0] == "--print-completion")
    return ShellCompletion(docs, arguments[1]);
  return std::nullopt;
}

std::vector<std::string> Clauses(const std::string& help) {
  std::vector<std::string> clauses;
  int open = 0;  // open parentheses
  size_t begin = 0;
  for (size_t i = 0; i < help.size(); ++i) {
    open += (help[i] == '(') - (help[i] == ')');
    if (help[i] != ';' || open != 0) continue;
    clauses.push_back(help.substr(begin, i - begin));
    begin = help.find_first_not_of(' ', i + 1);
  }
  clauses.push_back(help.substr(begin));
  return clauses;
}

}  // namespace oscar
