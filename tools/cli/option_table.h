// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The one table of a command's options, bound to the fields of its options struct. The flags, the
// help, the strict configuration file, --print-config and the configuration stored in artifacts all
// come from it. Trap: the table points into the struct; use both or neither.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tools/cli/config_file.h"
#include "tools/cli/option.h"

namespace oscar {

template <typename E>
using ChoiceNames = std::vector<std::pair<std::string, E>>;

class OptionTable {
 public:
  // `command` as typed, "oscar-calibrate"; `summary` is the first line of the help.
  OptionTable(std::string command, std::string summary);

  // Puts the options that are added from here on under this heading.
  void Group(std::string heading) { group_ = std::move(heading); }
  // Adds a command line and its effect to the end of the help.
  void Example(std::string line, std::string what);

  // The field's value at this moment is the default. T: bool, an integer, double, std::string, or a
  // vector or optional of one.
  template <typename T>
  void Add(T* field, OptionSpec spec) {
    Insert(
        std::move(spec), FieldTraits<T>::Type(), [field] { return FieldToJson(*field); },
        [field](const Json& value) { FieldFromJson(value, field); });
  }

  // An enum by its names; the default must be among them.
  template <typename E>
  void AddChoice(E* field, ChoiceNames<E> names, OptionSpec spec) {
    for (const auto& [name, value] : names) spec.choices.push_back(name);
    Insert(
        std::move(spec), FieldTraits<std::string>::Type(),
        [field, names] {
          Json found;  // null, refused by Insert, if the default has no name
          for (const auto& [name, value] : names)
            if (value == *field) found = name;
          return found;
        },
        [field, names](const Json& text) {
          for (const auto& [name, value] : names)
            if (name == text.get_ref<const std::string&>()) *field = value;
        });
  }

  const std::string& command() const { return command_; }
  const std::string& summary() const { return summary_; }
  const std::vector<std::pair<std::string, std::string>>& examples() const { return examples_; }
  const std::vector<Option>& options() const { return options_; }
  bool Has(const std::string& name) const;
  const Option& Get(const std::string& name) const;  // a name that is not there is our bug

  // Sets fields from the entries of a configuration file called `file` in errors. Throws UsageError
  // with file and line: an unknown key (naming the nearest), a wrong type, a value out of range.
  void ApplyConfig(const std::vector<ConfigEntry>& entries, const std::string& file);

  // Sets one field from its flags. Throws UsageError.
  void ApplyFlags(const std::string& name, const std::vector<std::string>& values);

  // Only these are on the screen of --help, whatever their specifications say.
  void ShowFirst(const std::vector<std::string>& names);

  // Throws UsageError if a required option has no value.
  void CheckRequired() const;

  // The options `names` have an effect only if option `key` has `value`, or one of an array of
  // them; null: only if `key` is on, or is not its default.
  void OnlyWith(const std::vector<std::string>& names, const std::string& key, Json value = {});
  // They have no effect if `key` has a value, or has this one; `why` ends the sentence.
  void NotWith(const std::vector<std::string>& names, const std::string& key,
               const std::string& why = "", Json value = {});
  // They have no effect if `holds` is true for the value of `key`.
  void NotWhere(const std::vector<std::string>& names, const std::string& key,
                std::function<bool(const Json&)> holds, const std::string& why);
  // Throws UsageError for a flag, or a key of the file whose value is not the default, that would
  // do nothing.
  void CheckEffects() const;

  // The resolved values of the options that decide the result, by key: what artifacts store.
  Json Stored() const;

  // The resolved configuration with a comment for each key; --config reads it back to equal values.
  std::string ToYaml() const;

 private:
  struct Effect {
    std::string name, key;
    Json value;
    bool with;  // only with, or not with
    std::string why;
    std::function<bool(const Json&)> holds = {};  // instead of `value`
  };
  void Insert(OptionSpec spec, ValueType type, std::function<Json()> get,
              std::function<void(const Json&)> set);
  Json ValueOfEntry(const Option& option, const ConfigEntry& entry, const std::string& where) const;

  std::string command_, summary_, group_;
  std::vector<std::pair<std::string, std::string>> examples_;
  std::vector<Option> options_;  // in the order they were added
  std::vector<Effect> effects_;
};

}  // namespace oscar
