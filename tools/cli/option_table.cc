// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/option_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "capture/files/nearest.h"
#include "capture/files/quote.h"  // Quoted, Escaped
#include "capture/files/removed_names.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"
#include "tools/cli/console.h"  // AppendWrapped

namespace oscar {
namespace {

// Quoted JSON strings are valid YAML. Only unambiguous words are written without quotes.
std::string YamlText(const std::string& text) {
  const auto is_safe = [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '-' || c == '.' || c == '/' || c == '@';
  };
  static constexpr std::string_view kWords[] = {"null", "true", "false", "yes", "no",
                                                "on",   "off",  "y",     "n"};
  std::string lower = text;
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const bool bare = !text.empty() && std::isalpha(static_cast<unsigned char>(text[0])) &&
                    std::all_of(text.begin(), text.end(), is_safe) &&
                    std::find(std::begin(kWords), std::end(kWords), lower) == std::end(kWords);
  return bare ? text : Json(text).dump();
}

std::string YamlValue(const Json& value) {
  if (value.is_string()) return YamlText(value.get_ref<const std::string&>());
  if (!value.is_array()) return value.dump();
  std::string list;
  for (const Json& element : value) list += (list.empty() ? "" : ", ") + YamlValue(element);
  return "[" + list + "]";
}

bool IsEmpty(const Json& value) {
  return value.is_null() || (value.is_string() && value.get_ref<const std::string&>().empty()) ||
         (value.is_array() && value.empty());
}

}  // namespace

OptionTable::OptionTable(std::string command, std::string summary)
    : command_(std::move(command)), summary_(std::move(summary)) {}

void OptionTable::Example(std::string line, std::string what) {
  examples_.emplace_back(std::move(line), std::move(what));
}

void OptionTable::Insert(OptionSpec spec, ValueType type, std::function<Json()> get,
                         std::function<void(const Json&)> set) {
  OSCAR_CHECK(!spec.name.empty() && !spec.help.empty());
  OSCAR_CHECK(std::all_of(spec.name.begin(), spec.name.end(), [](unsigned char c) {
    return std::islower(c) || std::isdigit(c) || c == '_';
  }));
  for (const Option& other : options_) OSCAR_CHECK(other.spec.name != spec.name);
  OSCAR_CHECK(spec.choices.empty() || type.kind == ValueKind::kText);
  OSCAR_CHECK(!spec.verbatim || type.list);
  OSCAR_CHECK(!spec.path || type.kind == ValueKind::kText);
  OSCAR_CHECK(!spec.only_once || (!spec.positional && !type.list && !type.optional));
  Json default_value = get();
  Option option{.spec = std::move(spec),
                .type = type,
                .group = group_,
                .default_value = std::move(default_value),
                .get = std::move(get),
                .set = std::move(set)};
  OSCAR_CHECK(!option.default_value.is_null() || type.optional);
  options_.push_back(std::move(option));
}

bool OptionTable::Has(const std::string& name) const {
  return std::any_of(options_.begin(), options_.end(),
                     [&](const Option& option) { return option.spec.name == name; });
}

const Option& OptionTable::Get(const std::string& name) const {
  const auto found = std::find_if(options_.begin(), options_.end(),
                                  [&](const Option& option) { return option.spec.name == name; });
  OSCAR_CHECK(found != options_.end());
  return *found;
}

Json OptionTable::ValueOfEntry(const Option& option, const ConfigEntry& entry,
                               const std::string& where) const {
  const auto fail = [&](const std::string& found) -> Json {
    throw UsageError(fmt::format("{}: found {}, expected {}", where, found, ExpectedValue(option)));
  };
  const auto scalar = [&](const ConfigScalar& given) -> Json {
    if (given.IsNull()) return fail("nothing");
    if (given.quoted && option.type.kind != ValueKind::kText)
      return fail("the quoted text " + Quoted(given.text) + " (remove the quotes)");
    std::optional<Json> value = ParseScalar(option, given.text);
    return value ? *std::move(value) : fail(Quoted(given.text));
  };
  Json value;
  if (entry.list && !option.type.list) {
    fail("a list");
  } else if (option.type.list) {
    value = Json::array();
    for (const ConfigScalar& element : entry.values) {
      if (element.quoted || element.IsNull()) {
        value.push_back(scalar(element));
      } else {
        for (std::string& part : SplitList(option, element.text))
          value.push_back(scalar({.text = std::move(part)}));
      }
    }
  } else if (!option.type.optional || !entry.values[0].IsNull()) {
    value = scalar(entry.values[0]);
  }
  if (const std::string problem = ValueProblem(option, value); !problem.empty())
    throw UsageError(where + ": " + problem);
  return value;
}

void OptionTable::ApplyConfig(const std::vector<ConfigEntry>& entries, const std::string& file) {
  for (const ConfigEntry& entry : entries) {
    const std::string where = fmt::format("{}:{}: {}", file, entry.line, Escaped(entry.key));
    const auto option = std::find_if(options_.begin(), options_.end(),
                                     [&](const Option& o) { return o.spec.name == entry.key; });
    if (option == options_.end()) {
      std::string flag = "--" + entry.key;
      std::ranges::replace(flag, '_', '-');
      if (const std::string hint = RemovedHint(flag); !hint.empty())
        throw UsageError(fmt::format("{} {}", where, hint));
      std::vector<std::string> known;
      for (const Option& o : options_)
        if (o.spec.scope != OptionScope::kCommandLine) known.push_back(o.spec.name);
      throw UsageError(fmt::format("{}: {} has no such key; the nearest is {}", where, command_,
                                   Nearest(entry.key, known)));
    }
    if (option->spec.scope == OptionScope::kCommandLine)
      throw UsageError(fmt::format("{}: can only be given as the flag {}", where, option->flag()));
    option->set(WithoutTrailingSlashes(*option, ValueOfEntry(*option, entry, where)));
    option->source = OptionSource::kFile;
  }
}

void OptionTable::ApplyFlags(const std::string& name, const std::vector<std::string>& values) {
  for (Option& option : options_) {
    if (option.spec.name != name) continue;
    option.set(WithoutTrailingSlashes(option, ValueOfFlags(option, values)));
    option.source = OptionSource::kFlag;
    return;
  }
  OSCAR_CHECK(false);
}

void OptionTable::OnlyWith(const std::vector<std::string>& names, const std::string& key,
                           Json value) {
  for (const std::string& name : names) effects_.push_back({name, key, value, /*with=*/true, ""});
}

void OptionTable::NotWith(const std::vector<std::string>& names, const std::string& key,
                          const std::string& why, Json value) {
  for (const std::string& name : names) effects_.push_back({name, key, value, /*with=*/false, why});
}

void OptionTable::NotWhere(const std::vector<std::string>& names, const std::string& key,
                           std::function<bool(const Json&)> holds, const std::string& why) {
  for (const std::string& name : names)
    effects_.push_back({name, key, {}, /*with=*/false, why, holds});
}

void OptionTable::CheckEffects() const {
  const auto is_set = [](const Option& option, const Effect& effect) {
    const Json value = option.get();
    if (effect.holds) return effect.holds(value);
    const Json& wanted = effect.value;
    if (wanted.is_array()) return std::ranges::find(wanted, value) != wanted.end();
    if (!wanted.is_null()) return value == wanted;
    return option.is_switch() ? value == true : value != option.default_value;
  };
  for (const Effect& effect : effects_) {
    const Option& option = Get(effect.name);
    const Json value = option.get();
    // --print-config writes every key, so a key in a file counts as given only if its value is not
    // the default.
    const bool given = option.source == OptionSource::kFlag ||
                       (option.source == OptionSource::kFile && value != option.default_value);
    const Option& other = Get(effect.key);
    if (!given || is_set(other, effect) == effect.with) continue;
    // A flag may turn off an option whose details the file sets.
    if (option.source == OptionSource::kFile && other.source == OptionSource::kFlag) continue;
    const std::string flag = option.flag(), off = "--no-" + other.flag().substr(2);
    const std::string why = effect.why.empty() ? "" : ": " + effect.why;
    const std::string wanted =
        effect.value.is_null()     ? ""
        : effect.value.is_string() ? " " + effect.value.get<std::string>()
        : effect.value.is_array()
            ? fmt::format(" {}", fmt::join(effect.value.get<std::vector<std::string>>(), " or "))
            : " " + effect.value.dump();
    if (!effect.with) {
      throw UsageError(
          fmt::format("{} has no effect with {}{}{}", flag, other.flag(), wanted, why));
    } else if (other.is_switch() && other.default_value == true) {
      throw UsageError(fmt::format("{} has no effect with {}", flag, off));
    }
    throw UsageError(fmt::format("{} has no effect without {}{}", flag, other.flag(), wanted));
  }
}

void OptionTable::ShowFirst(const std::vector<std::string>& names) {
  for (const std::string& name : names) OSCAR_CHECK(Has(name));
  for (Option& option : options_)
    option.spec.main = std::ranges::find(names, option.spec.name) != names.end();
}

void OptionTable::CheckRequired() const {
  for (const Option& option : options_) {
    if (!option.spec.required || !IsEmpty(option.get())) continue;
    throw UsageError(
        fmt::format("{} is missing: {}; give it on the command line or as '{}:' in the "
                    "configuration file",
                    option.flag(), option.spec.help, option.spec.name));
  }
}

Json OptionTable::Stored() const {
  Json stored = Json::object();
  for (const Option& option : options_)
    if (option.spec.scope == OptionScope::kResult) stored[option.spec.name] = option.get();
  return stored;
}

std::string OptionTable::ToYaml() const {
  std::string yaml = fmt::format("# {}: every key and its value\n", command_);
  std::string group;
  for (const Option& option : options_) {
    if (option.spec.scope == OptionScope::kCommandLine) continue;
    if (option.group != group) {
      group = option.group;
      yaml += fmt::format("\n# ---- {} ----\n", group);
    }
    yaml += "\n# ";
    AppendWrapped(fmt::format("{} ({})", option.spec.help, ExpectedValue(option)), "# ", 100,
                  &yaml);
    const Json value = option.get();
    yaml += fmt::format("{}: {}\n", option.spec.name,
                        option.has_auto() ? ValueWord(option, value) : YamlValue(value));
  }
  return yaml;
}

}  // namespace oscar
