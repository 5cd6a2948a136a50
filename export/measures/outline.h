// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Lists the members of a struct of fields.h for schema.md, with their own members indented.
#pragma once

#include <algorithm>
#include <typeindex>

#include "export/measures/fields.h"

namespace oscar::measures {

class Outline {
 public:
  template <HasFields T>
  static std::string Of() {
    Outline outline;
    outline.Add<T>("");
    return outline.text_;
  }

 private:
  template <HasFields T>
  void Add(const std::string& pointer) {
    ForEachField<T>([&](std::string_view name, auto member) {
      AddMember<std::remove_cvref_t<decltype(std::declval<T>().*member)>>(name, pointer);
    });
  }

  template <typename M>
  void AddMember(std::string_view name, const std::string& holder) {
    const auto depth = static_cast<size_t>(std::ranges::count(holder, '/'));
    text_ += std::string(2 * depth, ' ') + "- `" + std::string(name) + "`";
    const std::string pointer = holder + "/" + std::string(name);
    if constexpr (kIsOptional<M>) {
      text_ += " (opt): ";
      AddType(std::type_identity<typename M::value_type>(), pointer);
    } else {
      text_ += ": ";
      AddType(std::type_identity<M>(), pointer);
    }
  }

  // Adds the rest of a member's line and the lines below it. A struct is listed only once.
  void AddType(std::type_identity<double>, const std::string&) { text_ += "number\n"; }
  void AddType(std::type_identity<NonNegative>, const std::string&) { text_ += "number >= 0\n"; }
  void AddType(std::type_identity<Fraction>, const std::string&) { text_ += "fraction\n"; }
  void AddType(std::type_identity<int64_t>, const std::string&) { text_ += "count\n"; }
  void AddType(std::type_identity<bool>, const std::string&) { text_ += "bool\n"; }
  void AddType(std::type_identity<std::string>, const std::string&) { text_ += "text\n"; }
  void AddType(std::type_identity<Interval>, const std::string&) { text_ += "interval\n"; }
  void AddType(std::type_identity<AnyObject>, const std::string&) { text_ += "open object\n"; }
  template <typename T>
  void AddType(std::type_identity<std::vector<T>>, const std::string& pointer) {
    text_ += "list of ";
    AddType(std::type_identity<T>(), pointer + "[]");
  }
  template <typename T>
  void AddType(std::type_identity<std::map<std::string, T>>, const std::string& pointer) {
    text_ += "by name, ";
    AddType(std::type_identity<T>(), pointer + "/*");
  }
  template <HasFields T>
  void AddType(std::type_identity<T>, const std::string& pointer) {
    const auto [known, is_new] = places_.try_emplace(typeid(T), pointer);
    if (!is_new) {
      text_ += "object as `" + known->second + "`\n";
      return;
    }
    text_ += requires { T::kOpen; }
    ? "open object\n" : "object\n";
    Add<T>(pointer);
  }

  std::string text_;
  std::map<std::type_index, std::string> places_;
};

}  // namespace oscar::measures
