// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Lists the members of a struct of fields.h for schema.md. The members of a member are indented
// below it. Adjacent members of one type share a line if that type has no members.
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
    std::string text;
    for (const Line& line : outline.lines_)
      text += std::string(2 * line.depth, ' ') + line.names + ": " + line.type + "\n";
    return text;
  }

 private:
  template <typename T>
  using Type = std::type_identity<T>;
  struct Line {
    size_t depth = 0;
    std::string names, type;
  };
  static constexpr size_t kMaxNames = 80;  // characters

  template <HasFields T>
  void Add(const std::string& pointer) {
    ForEachField<T>([&](std::string_view name, auto member) {
      AddMember<std::remove_cvref_t<decltype(std::declval<T>().*member)>>(name, pointer);
    });
  }

  template <typename M>
  void AddMember(std::string_view name, const std::string& holder) {
    const auto depth = static_cast<size_t>(std::ranges::count(holder, '/'));
    const std::string pointer = holder + "/" + std::string(name);
    if constexpr (kIsOptional<M>) {
      AddType(Type<typename M::value_type>(), {depth, std::string(name) + "?", ""}, pointer);
    } else {
      AddType(Type<M>(), {depth, std::string(name), ""}, pointer);
    }
  }

  void AddLeaf(const Line& line, const std::string& type) {
    if (!lines_.empty()) {
      Line& last = lines_.back();
      if (last.depth == line.depth && last.type == line.type + type &&
          last.names.size() + line.names.size() < kMaxNames) {
        last.names += ", " + line.names;
        return;
      }
    }
    lines_.push_back({line.depth, line.names, line.type + type});
  }

  // Adds a member and, below it, the members of its type. A struct is listed only once.
  void AddType(Type<double>, const Line& line, const std::string&) { AddLeaf(line, "number"); }
  void AddType(Type<NonNegative>, const Line& line, const std::string&) {
    AddLeaf(line, "number>=0");
  }
  void AddType(Type<Fraction>, const Line& line, const std::string&) { AddLeaf(line, "fraction"); }
  void AddType(Type<int64_t>, const Line& line, const std::string&) { AddLeaf(line, "count"); }
  void AddType(Type<bool>, const Line& line, const std::string&) { AddLeaf(line, "bool"); }
  void AddType(Type<std::string>, const Line& line, const std::string&) { AddLeaf(line, "text"); }
  void AddType(Type<Interval>, const Line& line, const std::string&) { AddLeaf(line, "interval"); }
  void AddType(Type<AnyObject>, const Line& line, const std::string&) { AddLeaf(line, "open"); }
  template <typename T>
  void AddType(Type<std::vector<T>>, const Line& line, const std::string& pointer) {
    AddType(Type<T>(), {line.depth, line.names, line.type + "[]"}, pointer + "[]");
  }
  template <typename T>
  void AddType(Type<std::map<std::string, T>>, const Line& line, const std::string& pointer) {
    AddType(Type<T>(), {line.depth, line.names, line.type + "{}"}, pointer + "/*");
  }
  template <HasFields T>
  void AddType(Type<T>, const Line& line, const std::string& pointer) {
    const auto [known, is_new] = places_.try_emplace(typeid(T), pointer);
    if (!is_new) {
      AddLeaf(line, known->second);
      return;
    }
    constexpr bool kIsOpen = requires { T::kOpen; };
    lines_.push_back({line.depth, line.names, line.type + (kIsOpen ? "open" : "object")});
    Add<T>(pointer);
  }

  std::vector<Line> lines_;
  std::map<std::type_index, std::string> places_;
};

}  // namespace oscar::measures
