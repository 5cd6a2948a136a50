// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The tests (x is defined). Trap: True is a number but not an integer here, and text is a sequence.
#include <fmt/format.h>

#include "capture/text/template/functions.h"
#include "capture/text/template/operators.h"

namespace oscar::jinja {
namespace {

template <Comparison kComparison>
bool Compares(const Call& c) {
  return Holds(c.session, kComparison, c.self, *c.bound[0]);
}

bool HasRest(const Call& c, const Value& divisor, int64_t rest) {
  return Equal(c.session, Binary(c.session, BinaryOperator::kMod, c.self, divisor),
               Value::Int(rest));
}

bool IsSequence(const Call& c) {
  return c.self.is_string() || c.self.is_dict() || c.self.is_undefined() ||
         (c.self.is_items() && c.self.kind() <= SequenceKind::kRange);
}

constexpr FunctionRow<bool> kTests[] = {
    {"defined", [](const Call& c) { return !c.self.is_undefined(); }},
    {"undefined", [](const Call& c) { return c.self.is_undefined(); }},
    {"none", [](const Call& c) { return c.self.is_none(); }},
    {"boolean", [](const Call& c) { return c.self.is_bool(); }},
    {"true", [](const Call& c) { return c.self.is_bool() && c.self.as_bool(); }},
    {"false", [](const Call& c) { return c.self.is_bool() && !c.self.as_bool(); }},
    {"integer", [](const Call& c) { return c.self.is_int() || c.self.is_big(); }},
    {"float", [](const Call& c) { return c.self.is_float(); }},
    {"number", [](const Call& c) { return c.self.is_number() || c.self.is_big(); }},
    {"string", [](const Call& c) { return c.self.is_string(); }},
    {"mapping", [](const Call& c) { return c.self.is_dict(); }},
    {"iterable", [](const Call& c) { return IsIterable(c.self); }},
    {"sequence", IsSequence},
    // Python's Undefined has a __call__ method, so it counts as callable.
    {"callable",
     [](const Call& c) { return c.self.is_undefined() || c.self.As<Function>() != nullptr; }},
    {"odd", [](const Call& c) { return HasRest(c, Value::Int(2), 1); }},
    {"even", [](const Call& c) { return HasRest(c, Value::Int(2), 0); }},
    {"divisibleby", [](const Call& c) { return HasRest(c, *c.bound[0], 0); }, "num", 1},
    {"sameas", [](const Call& c) { return c.self.SameObject(*c.bound[0]); }, "other", 1},
    {"in", Compares<Comparison::kIn>, "seq", 1},
    {"eq", Compares<Comparison::kEq>, "other", 1},
    {"equalto", Compares<Comparison::kEq>, "other", 1},
    {"==", Compares<Comparison::kEq>, "other", 1},
    {"ne", Compares<Comparison::kNe>, "other", 1},
    {"!=", Compares<Comparison::kNe>, "other", 1},
    {"gt", Compares<Comparison::kGt>, "other", 1},
    {"greaterthan", Compares<Comparison::kGt>, "other", 1},
    {">", Compares<Comparison::kGt>, "other", 1},
    {"ge", Compares<Comparison::kGe>, "other", 1},
    {">=", Compares<Comparison::kGe>, "other", 1},
    {"lt", Compares<Comparison::kLt>, "other", 1},
    {"lessthan", Compares<Comparison::kLt>, "other", 1},
    {"<", Compares<Comparison::kLt>, "other", 1},
    {"le", Compares<Comparison::kLe>, "other", 1},
    {"<=", Compares<Comparison::kLe>, "other", 1},
};
constexpr std::string_view kRefusedTests[] = {"escaped", "filter", "lower", "test", "upper"};

}  // namespace

bool CallTest(Session& session, std::string_view name, const Value& value,
              const Arguments& arguments) {
  session.Step();
  if (const auto* row = FindRow<bool>(kTests, name)) return Invoke(*row, session, value, arguments);
  if (std::ranges::find(kRefusedTests, name) != std::end(kRefusedTests))
    throw TemplateFailure(NotSupported("test", name));
  throw TemplateFailure(fmt::format("No test named '{}'.", name));
}

}  // namespace oscar::jinja
