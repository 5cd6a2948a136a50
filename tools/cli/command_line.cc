// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "capture/files/nearest.h"
#include "capture/files/quote.h"  // Quoted, Escaped
#include "capture/files/removed_names.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"
#include "tools/cli/console.h"       // AppendWrapped
#include "tools/cli/program_docs.h"  // Clauses

namespace oscar {
namespace {

constexpr int kMany = 1 << 20;  // limit for values of one list

std::string FlagName(const Option& option) { return option.flag().substr(2); }

CLI::Option* AddTo(CLI::App* app, const Option& option) {
  const OptionSpec& spec = option.spec;
  const bool is_list = option.type.list;
  CLI::Option* added = nullptr;
  if (spec.positional) {
    added = app->add_option(LongFlag(option) + "," + spec.name);
  } else {
    const std::string short_name = spec.short_name != 0 ? fmt::format("-{},", spec.short_name) : "";
    const std::string name = FlagName(option);
    if (option.is_switch()) {
      added = app->add_flag(fmt::format("{}--{},!--no-{}", short_name, name, name));
    } else {
      added = app->add_option(short_name + "--" + name);
    }
  }
  const bool takes_many = is_list && !spec.one_text;
  if (takes_many) added->expected(1, kMany);
  added->allow_extra_args(takes_many && !spec.positional);
  added->multi_option_policy(takes_many ? CLI::MultiOptionPolicy::TakeAll
                                        : CLI::MultiOptionPolicy::TakeLast);
  return added;
}

[[noreturn]] void RefuseExtra(const OptionTable& table, const std::vector<std::string>& extra) {
  const auto flag = std::find_if(extra.begin(), extra.end(), [](const std::string& text) {
    return text.size() > 1 && text[0] == '-';
  });
  if (flag == extra.end())
    throw UsageError(fmt::format("unexpected argument {}", Quoted(extra.front())));
  std::vector<std::string> known;
  for (const Option& option : table.options()) known.push_back(LongFlag(option));
  const std::string name = flag->substr(0, flag->find('='));
  if (const std::string hint = RemovedHint(name); !hint.empty())
    throw UsageError(fmt::format("{} {}", name, hint));
  throw UsageError(fmt::format("{} has no flag {}; the nearest is {}", table.command(),
                               Escaped(name), Nearest(name, known)));
}

// Whether --help shows the option. If no option of the table is marked, it shows all of them.
bool IsOnFirstScreen(const OptionTable& table, const Option& option) {
  const auto marked = [](const Option& other) {
    return other.spec.main && other.group != kCommonGroup;
  };
  return option.spec.main || option.spec.positional ||
         (option.group != kCommonGroup && std::ranges::none_of(table.options(), marked));
}

}  // namespace

std::vector<GivenFlag> SplitCommandLine(const OptionTable& table,
                                        const std::vector<std::string>& arguments) {
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::vector<std::pair<const Option*, CLI::Option*>> added;
  for (const Option& option : table.options()) added.emplace_back(&option, AddTo(&app, option));
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
  if (const std::vector<std::string> extra = app.remaining(); !extra.empty())
    RefuseExtra(table, extra);
  std::vector<GivenFlag> given;
  for (const auto& [option, parsed] : added)
    if (parsed->count() > 0) given.push_back({option->spec.name, parsed->results()});
  return given;
}

std::string LongFlag(const Option& option) {
  std::string name = "--" + option.spec.name;
  std::ranges::replace(name, '_', '-');
  return name;
}

std::string HelpLabel(const Option& option) {
  const std::string several = option.type.list ? "..." : "";
  if (option.spec.positional) return option.flag() + several;
  const std::string short_name =
      option.spec.short_name != 0 ? fmt::format("-{}, ", option.spec.short_name) : "";
  const std::string value = option.value_name();
  return short_name + option.flag() + (value.empty() ? "" : " " + value) + several;
}

std::string HelpDescription(const Option& option, bool all) {
  const Json& value = option.default_value;
  const bool is_switch = option.is_switch();
  // A clause like "; 0: the whole head" says what the default 0 means, so it is shown as the
  // default.
  const bool absent = value == "" || value.is_null() || value == Json::array();
  std::string word = is_switch     ? ""
                     : value == "" ? "empty"
                     : absent      ? "none"
                                   : ValueWord(option, value);
  std::vector<std::string> clauses = Clauses(option.spec.help);
  const auto meaning =
      std::find_if(clauses.begin() + 1, clauses.end(), [&](const std::string& clause) {
        return option.spec.choices.empty() && clause.starts_with(word + ": ");
      });
  if (meaning != clauses.end()) {
    word = meaning->substr(word.size() + 2);
    clauses.erase(meaning);
  } else if (absent) {
    word.clear();
  }
  if (!all) clauses.resize(1);
  std::string text = fmt::format("{}", fmt::join(clauses, "; "));
  if (is_switch && value == true)
    text += fmt::format(" (default; --no-{} to switch off)", FlagName(option));
  if (option.spec.required) text += " (required)";
  if (!word.empty()) text += fmt::format(" (default: {})", word);
  return text;
}

std::string UsageLine(const OptionTable& table) {
  std::string line = table.command();
  for (const Option& option : table.options()) {
    if (!option.spec.positional) continue;
    line += option.spec.required ? " " + HelpLabel(option) : " [" + HelpLabel(option) + "]";
  }
  return line + " [options]";
}

std::string HelpText(const OptionTable& table, int columns, bool all) {
  OSCAR_CHECK_LE(40, columns);
  constexpr size_t kColumn = 30;  // column where descriptions start
  std::string text;
  AppendWrapped(table.command() + ": " + table.summary(), "", columns, &text);
  text += "\nUsage: " + UsageLine(table) + "\n";
  std::vector<const Option*> shown;
  for (const Option& option : table.options())
    if (all || IsOnFirstScreen(table, option)) shown.push_back(&option);
  std::vector<std::string> groups;
  for (const Option* option : shown) {
    const std::string group = all ? option->group : "";
    if (std::ranges::find(groups, group) == groups.end()) groups.push_back(group);
  }
  for (const std::string& group : groups) {
    text += "\n" + (group.empty() ? "Options" : group) + ":\n";
    for (const Option* shown_option : shown) {
      const Option& option = *shown_option;
      if (all && option.group != group) continue;
      const std::string label = "  " + HelpLabel(option);
      text += label.size() + 2 > kColumn ? label + "\n" + std::string(kColumn, ' ')
                                         : label + std::string(kColumn - label.size(), ' ');
      AppendWrapped(HelpDescription(option, all), std::string(kColumn, ' '), columns, &text);
    }
  }
  if (const size_t more = table.options().size() - shown.size(); more > 0)
    text += fmt::format("\n--help-all explains these options in full, and {} more.\n", more);
  if (!table.examples().empty()) text += "\nExamples:\n";
  for (const auto& [line, what] : table.examples()) {
    text += "  " + line + "\n      ";
    AppendWrapped(what, std::string(6, ' '), columns, &text);
  }
  return text;
}

std::string ShellQuote(const std::string& text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return c < 128 &&
           (std::isalnum(c) ||
            std::string_view("_./:=@%+,-").find(static_cast<char>(c)) != std::string_view::npos);
  });
  if (plain) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string ResumeCommand(const OptionTable& table, const std::string& program,
                          const std::vector<std::string>& arguments) {
  const auto find_once = [&](const std::string& flag) {
    return std::find_if(table.options().begin(), table.options().end(), [&](const Option& option) {
      return option.spec.only_once && option.flag() == flag;
    });
  };
  const size_t verb = table.command().find(' ');  // as in "oscar-zoo publish"
  std::string line =
      ShellQuote(program) + (verb == std::string::npos ? "" : table.command().substr(verb));
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const size_t equals = argument.find('=');
    const auto once = find_once(argument.substr(0, equals));
    if (once == table.options().end()) {
      line += " " + ShellQuote(argument);
    } else if (!once->is_switch() && equals == std::string::npos) {
      ++i;  // skips the flag's value
    }
  }
  for (const Option& option : table.options()) {
    if (!option.spec.only_once || option.source != OptionSource::kFile) continue;
    const Json& value = option.default_value;
    if (option.is_switch()) {
      line += value == true ? " " + option.flag() : " --no-" + FlagName(option);
    } else {
      line += " " + option.flag() + " " +
              ShellQuote(value.is_string() ? value.get<std::string>() : value.dump());
    }
  }
  return line;
}

}  // namespace oscar
