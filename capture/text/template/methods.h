// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The methods of Python's built-in types: s.strip(), d.items(), l.index(x). Trap: methods that
// would change a list or dict exist but are unsafe: Jinja's sandbox gives an undefined value for
// them, which fails when it is called.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "capture/text/template/session.h"

namespace oscar::jinja {

// An attribute that Python's type of `value` has; nothing: it has none of that name.
std::optional<Value> BuiltinAttribute(const Value& value, std::string_view name);

// A method and the value it belongs to.
class BoundMethod : public Object {
 public:
  using Function = Value (*)(Session& session, const Value& self, const Arguments& arguments);
  BoundMethod(Value self, std::string_view name, Function function)
      : self_(std::move(self)), name_(name), function_(function) {}

  std::string TypeName() const override { return "builtin_function_or_method"; }
  bool callable() const override { return true; }
  Value Call(Session& session, Arguments& arguments) override {
    return function_(session, self_, arguments);
  }
  int depth() const override { return self_.depth(); }

 private:
  Value self_;
  std::string_view name_;  // of the table
  Function function_;
};

struct MethodRow {
  std::string_view name;
  BoundMethod::Function function;  // null: known to Python, not supported here
};
std::span<const MethodRow> StringMethods();     // that give or take text (string_methods.cc)
std::span<const MethodRow> StringPredicates();  // isdigit, find, ... (string_predicates.cc)

}  // namespace oscar::jinja
