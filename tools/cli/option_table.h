// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The table of a command's options, bound to the fields of its options struct. It defines the
// flags, the help, the keys of the configuration file, --print-config, and the configuration that
// artifacts store. Trap: the table points into the struct, which must outlive it and stay in place.
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
  // `command`: as typed, like "oscar-calibrate". `summary`: the first line of the help.
  OptionTable(std::string command, std::string summary);

  // Options that are added after this call get this heading.
  void Group(std::string heading) { group_ = std::move(heading); }
  // Adds a command line and an explanation to the end of the help.
  void Example(std::string line, std::string what);

  // Adds an option. The field's current value becomes the default. T: bool, an integer, double,
  // std::string, or a vector or optional of one of these.
  template <typename T>
  void Add(T* field, OptionSpec spec) {
    Insert(
        std::move(spec), FieldTraits<T>::Type(), [field] { return FieldToJson(*field); },
        [field](const Json& value) { FieldFromJson(value, field); });
  }

  // Adds an enum by its names. The default must be among them.
  template <typename E>
  void AddChoice(E* field, ChoiceNames<E> names, OptionSpec spec) {
    for (const auto& [name, value] : names) spec.choices.push_back(name);
    Insert(
        std::move(spec), FieldTraits<std::string>::Type(),
        [field, names] {
          Json found;  // if the default has no name, Insert refuses null
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
  const Option& Get(const std::string& name) const;  // aborts for an unknown name

  // Sets fields from the entries of a configuration file, called `file` in errors. Throws
  // UsageError, with the line, for an unknown key (naming the nearest), a wrong type, or a value
  // out of range.
  void ApplyConfig(const std::vector<ConfigEntry>& entries, const std::string& file);

  // Sets one field from its flags. Throws UsageError.
  void ApplyFlags(const std::string& name, const std::vector<std::string>& values);

  // Only these options are shown by --help, regardless of OptionSpec::main.
  void ShowFirst(const std::vector<std::string>& names);

  // Throws UsageError if a required option has no value.
  void CheckRequired() const;

  // Declares that the options `names` have an effect only if option `key` has `value`, or one of
  // several values if it is an array. If `value` is null, `key` must be on, or differ from its
  // default.
  void OnlyWith(const std::vector<std::string>& names, const std::string& key, Json value = {});
  // Declares that the options `names` have no effect if `key` has `value`; a null `value` means the
  // same as above. `why` ends the error message.
  void NotWith(const std::vector<std::string>& names, const std::string& key,
               const std::string& why = "", Json value = {});
  // Declares that the options `names` have no effect if `holds` is true for the value of `key`.
  void NotWhere(const std::vector<std::string>& names, const std::string& key,
                std::function<bool(const Json&)> holds, const std::string& why);
  // Throws UsageError if an option without effect was given as a flag, or in the file with a value
  // other than the default.
  void CheckEffects() const;

  // Returns the values of the options that decide the result, by key. Artifacts store them.
  Json Stored() const;

  // Returns all values as YAML, with a comment for each key. --config reads them back unchanged.
  std::string ToYaml() const;

 private:
  struct Effect {
    std::string name, key;
    Json value;
    bool with;  // true: OnlyWith, false: NotWith
    std::string why;
    std::function<bool(const Json&)> holds = {};  // replaces `value`
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
