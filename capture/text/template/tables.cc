// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Look-up by name, and the tests.
#include "capture/text/template/tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "capture/text/template/compare.h"
#include "capture/text/template/objects.h"
#include "capture/text/template/operators.h"
#include "capture/text/template/string_ops.h"
#include "capture/text/template/value_text.h"

namespace oscar::jinja {
namespace {

// Known to Jinja2 and of no use in a chat template, or random.
constexpr std::string_view kRefusedFilters[] = {"pprint", "random",   "striptags",
                                                "urlize", "wordwrap", "xmlattr"};

const FilterRow* FindFilter(std::string_view name) {
  for (const auto table :
       {TextFilters(), SequenceFilters(), SelectionFilters(), NumberFilters(), OrderFilters()}) {
    const auto found = std::ranges::find(table, name, &FilterRow::name);
    if (found != table.end()) return &*found;
  }
  return nullptr;
}

// A test of the value alone, or one that compares it with one argument.
struct TestRow {
  std::string_view name;
  bool (*alone)(Session& session, const Value& value);
  bool (*with)(Session& session, const Value& value, const Value& argument);
};

bool Defined(Session&, const Value& v) { return !v.is_undefined(); }
bool IsUndefined(Session&, const Value& v) { return v.is_undefined(); }
bool IsNone(Session&, const Value& v) { return v.is_none(); }
bool IsBoolean(Session&, const Value& v) { return v.is_bool(); }
bool IsTrue(Session&, const Value& v) { return v.is_bool() && v.as_bool(); }
bool IsFalse(Session&, const Value& v) { return v.is_bool() && !v.as_bool(); }
bool IsInteger(Session&, const Value& v) { return v.is_int() || v.is_big(); }
bool IsFloat(Session&, const Value& v) { return v.is_float(); }
bool IsNumber(Session&, const Value& v) { return v.is_number() || v.is_big(); }
bool IsString(Session&, const Value& v) { return v.is_string(); }
bool IsMapping(Session&, const Value& v) { return v.is_dict(); }
bool IsEscaped(Session&, const Value& v) { return v.is_markup(); }
bool IsCallable(Session&, const Value& v) {
  // Python's Undefined has __call__, so it counts as callable.
  return v.is_undefined() || (v.is_object() && v.object().callable());
}
bool IsSequence(Session&, const Value& v) {
  if (v.is_object()) return v.object().is_sequence();
  return v.is_string() || v.is_sequence() || v.is_dict() || v.is_undefined();
}
bool IsLowerTest(Session& session, const Value& v) { return IsLowerText(Str(session, v)); }
bool IsUpperTest(Session& session, const Value& v) { return IsUpperText(Str(session, v)); }

bool Remainder(Session& session, const Value& value, const Value& divisor, int64_t expected) {
  return Equal(session, Binary(session, BinaryOperator::kMod, value, divisor),
               Value::Int(expected));
}
bool IsOdd(Session& session, const Value& v) { return Remainder(session, v, Value::Int(2), 1); }
bool IsEven(Session& session, const Value& v) { return Remainder(session, v, Value::Int(2), 0); }
bool DivisibleBy(Session& session, const Value& v, const Value& by) {
  return Remainder(session, v, by, 0);
}
bool SameAs(Session&, const Value& v, const Value& other) { return v.SameObject(other); }
bool In(Session& session, const Value& v, const Value& sequence) {
  return Contains(session, sequence, v);
}
bool NotEqual(Session& session, const Value& a, const Value& b) { return !Equal(session, a, b); }
bool Greater(Session& session, const Value& a, const Value& b) {
  return Compare(session, a, b, ">") == 1;
}
bool GreaterOrEqual(Session& session, const Value& a, const Value& b) {
  const int order = Compare(session, a, b, ">=");
  return order == 0 || order == 1;
}
bool LessOrEqual(Session& session, const Value& a, const Value& b) {
  const int order = Compare(session, a, b, "<=");
  return order == 0 || order == -1;
}
bool NamesFilter(Session&, const Value& v) { return v.is_string() && HasFilter(v.as_string()); }
bool NamesTest(Session&, const Value& v) { return v.is_string() && HasTest(v.as_string()); }

constexpr TestRow kTests[] = {
    {"defined", Defined, nullptr},
    {"undefined", IsUndefined, nullptr},
    {"none", IsNone, nullptr},
    {"boolean", IsBoolean, nullptr},
    {"true", IsTrue, nullptr},
    {"false", IsFalse, nullptr},
    {"integer", IsInteger, nullptr},
    {"float", IsFloat, nullptr},
    {"number", IsNumber, nullptr},
    {"string", IsString, nullptr},
    {"mapping", IsMapping, nullptr},
    {"iterable", IsIterable, nullptr},
    {"sequence", IsSequence, nullptr},
    {"callable", IsCallable, nullptr},
    {"lower", IsLowerTest, nullptr},
    {"upper", IsUpperTest, nullptr},
    {"odd", IsOdd, nullptr},
    {"even", IsEven, nullptr},
    {"escaped", IsEscaped, nullptr},
    {"filter", NamesFilter, nullptr},
    {"test", NamesTest, nullptr},
    {"divisibleby", nullptr, DivisibleBy},
    {"sameas", nullptr, SameAs},
    {"in", nullptr, In},
    {"eq", nullptr, Equal},
    {"equalto", nullptr, Equal},
    {"==", nullptr, Equal},
    {"ne", nullptr, NotEqual},
    {"!=", nullptr, NotEqual},
    {"gt", nullptr, Greater},
    {"greaterthan", nullptr, Greater},
    {">", nullptr, Greater},
    {"ge", nullptr, GreaterOrEqual},
    {">=", nullptr, GreaterOrEqual},
    {"lt", nullptr, Less},
    {"lessthan", nullptr, Less},
    {"<", nullptr, Less},
    {"le", nullptr, LessOrEqual},
    {"<=", nullptr, LessOrEqual},
};

}  // namespace

bool HasFilter(std::string_view name) {
  return FindFilter(name) != nullptr ||
         std::ranges::find(kRefusedFilters, name) != std::end(kRefusedFilters);
}
bool HasTest(std::string_view name) {
  return std::ranges::find(kTests, name, &TestRow::name) != std::end(kTests);
}

Value CallFilter(Session& session, std::string_view name, const Value& value,
                 const Arguments& arguments) {
  session.Step();
  if (const FilterRow* row = FindFilter(name)) return row->function(session, value, arguments);
  if (HasFilter(name)) throw TemplateFailure(fmt::format("the filter '{}' is not supported", name));
  throw TemplateFailure(fmt::format("No filter named '{}'.", name));
}

bool CallTest(Session& session, std::string_view name, const Value& value,
              const Arguments& arguments) {
  session.Step();
  const auto* row = std::ranges::find(kTests, name, &TestRow::name);
  if (row == std::end(kTests)) throw TemplateFailure(fmt::format("No test named '{}'.", name));
  if (row->alone != nullptr) {
    arguments.Bind(name, {}, 0);
    return row->alone(session, value);
  }
  const auto bound = arguments.Bind(name,
                                    {name == "divisibleby" ? "num"
                                     : name == "in"        ? "seq"
                                                           : "other"},
                                    1);
  return row->with(session, value, *bound[0]);
}

}  // namespace oscar::jinja
