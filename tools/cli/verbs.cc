// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/verbs.h"

#include <fmt/format.h>

#include <algorithm>

#include "capture/files/nearest.h"
#include "capture/files/quote.h"
#include "capture/files/removed_names.h"
#include "tools/cli/build_info.h"
#include "tools/cli/program_docs.h"

namespace oscar {
namespace {

ProgramDocs DocsOf(const VerbCommand& command) {
  ProgramDocs docs{command.command, command.summary, {}, command.notes};
  CommonOptions common;  // the tables outlive it, so only their defaults may be read
  const auto add = [&](OptionTable table) {
    AddCommonOptions(&common, &table);
    docs.tables.push_back(std::move(table));
  };
  if (command.without_verb) add(command.without_verb->table);
  for (const Verb& verb : command.verbs) add(verb.table);
  return docs;
}

std::string NoSuchVerb(const VerbCommand& command, const std::string& given) {
  std::vector<std::string> names;
  std::string listed;
  for (const Verb& verb : command.verbs) {
    names.push_back(verb.name());
    listed += (listed.empty() ? "" : ", ") + verb.name();
  }
  if (given.empty()) return fmt::format("VERB is missing; expected one of {}", listed);
  if (const std::string hint = RemovedHint(given); !hint.empty())
    return fmt::format("{} {} {}", command.command, given, hint);
  return fmt::format("{} has no verb {}; the nearest is {}", command.command, Quoted(given),
                     Nearest(given, names));
}

}  // namespace

std::string VerbsHelpText(const VerbCommand& command, int columns) {
  constexpr size_t kColumn = 12;  // column where descriptions start
  std::string text;
  AppendWrapped(command.command + ": " + command.summary, "", columns, &text);
  text += fmt::format("\nUsage: {} VERB [options]\n\nVerbs:\n", command.command);
  for (const Verb& verb : command.verbs) {
    text += fmt::format("  {:<{}}", verb.name(), kColumn - 2);
    AppendWrapped(verb.table.summary(), std::string(kColumn, ' '), columns, &text);
  }
  if (!command.notes.empty()) text += "\n";
  if (!command.notes.empty()) AppendWrapped(command.notes, "", columns, &text);
  text += fmt::format("\n{} VERB --help explains one verb.\n", command.command);
  return text;
}

int RunVerbs(int argc, const char* const* argv, const VerbCommand& command,
             const Console& console) {
  const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  const std::string first = arguments.empty() ? "" : arguments.front();
  for (const Verb& verb : command.verbs) {
    if (verb.name() != first) continue;
    std::vector<const char*> rest(argv, argv + argc);
    rest.erase(rest.begin() + 1);
    return RunCommand(argc - 1, rest.data(), verb.table, verb.run, console);
  }
  try {
    if (const auto docs = DocsAskedFor(DocsOf(command), arguments)) {
      *console.out << *docs << std::flush;
      if (!*console.out) throw ResourceError("standard output: the results could not be written");
      return static_cast<int>(ExitCode::kDone);
    }
    if (command.without_verb)
      return RunCommand(argc, argv, command.without_verb->table, command.without_verb->run,
                        console);
    if (first != "--help" && first != "-h" && first != "--version")
      throw UsageError(NoSuchVerb(command, first));
    *console.out << (first == "--version"
                         ? VersionText(command.command)
                         : VerbsHelpText(command, std::clamp(console.out_columns, 60, 100)));
    console.out->flush();
    if (!*console.out) throw ResourceError("standard output: the results could not be written");
    return static_cast<int>(ExitCode::kDone);
  } catch (const Error& error) {
    return ReportFailure(error, arguments, fmt::format("see {} --help", command.command), console);
  }
}

}  // namespace oscar
