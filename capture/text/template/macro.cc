// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
#include "capture/text/template/macro.h"

#include <fmt/format.h>

#include <algorithm>

#include "capture/text/template/value_text.h"

namespace oscar::jinja {

std::string Macro::Repr(Session&) const { return fmt::format("<Macro {}>", StringRepr(name_)); }

std::optional<Value> Macro::Attribute(Session&, std::string_view name) {
  if (name == "name") return Value::String(name_);
  if (name == "catch_kwargs") return Value::Bool(statement_.reads_kwargs);
  if (name == "catch_varargs") return Value::Bool(statement_.reads_varargs);
  if (name == "caller") return Value::Bool(statement_.reads_caller);
  if (name != "arguments") return std::nullopt;
  std::vector<Value> names;
  for (const Parameter& parameter : statement_.parameters)
    names.push_back(Value::String(parameter.name));
  return Value::Tuple(std::move(names));
}

Value Macro::Call(Session& session, Arguments& arguments) {
  const Session::Level level(session);
  const int line = session.line;
  const std::vector<Parameter>& parameters = statement_.parameters;
  const auto inner = std::make_shared<Scope>();
  inner->outer = scope_;
  auto named = arguments.named;
  const auto take_named = [&](std::string_view name) -> std::optional<Value> {
    const auto found = std::ranges::find(named, name, [](const auto& row) { return row.first; });
    if (found == named.end()) return std::nullopt;
    Value value = found->second;
    named.erase(found);
    return value;
  };
  bool has_caller_parameter = false;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& parameter = parameters[i];
    has_caller_parameter = has_caller_parameter || parameter.name == "caller";
    std::optional<Value> value;
    if (i < arguments.positional.size()) {
      value = arguments.positional[i];
    } else {
      value = take_named(parameter.name);
    }
    if (!value && parameter.default_value != nullptr)
      value = interpreter_.Evaluate(*parameter.default_value, inner);
    if (!value)
      value = Value::Undefined(
          fmt::format("parameter {} was not provided", StringRepr(parameter.name)));
    inner->names.insert_or_assign(parameter.name, *std::move(value));
  }
  if (statement_.reads_caller && !has_caller_parameter) {
    inner->names.insert_or_assign(
        "caller", take_named("caller").value_or(Value::Undefined("No caller defined")));
  }
  if (statement_.reads_kwargs) {
    Dict rest;
    for (const auto& [name, value] : named) rest.Set(Value::String(name), value);
    inner->names.insert_or_assign("kwargs", Value::FromDict(std::move(rest)));
  } else if (!named.empty()) {
    throw TemplateFailure(fmt::format("macro {} takes no keyword argument {}", StringRepr(name_),
                                      StringRepr(named.front().first)));
  }
  const size_t taken = std::min(arguments.positional.size(), parameters.size());
  if (statement_.reads_varargs) {
    inner->names.insert_or_assign(
        "varargs", Value::Tuple({arguments.positional.begin() + static_cast<ptrdiff_t>(taken),
                                 arguments.positional.end()}));
  } else if (arguments.positional.size() > parameters.size()) {
    throw TemplateFailure(fmt::format("macro {} takes not more than {} argument(s)",
                                      StringRepr(name_), parameters.size()));
  }
  Value text = session.String(interpreter_.RunBody(statement_.body, inner));
  session.line = line;
  return text;
}

}  // namespace oscar::jinja
