// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
#include "capture/text/template/methods.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "capture/text/template/compare.h"
#include "capture/text/template/objects.h"
#include "capture/text/template/operators.h"
#include "capture/text/template/value_text.h"

namespace oscar::jinja {
namespace {

constexpr std::string_view kDictMutators[] = {"clear", "pop", "popitem", "setdefault", "update"};
constexpr std::string_view kListMutators[] = {"append", "clear", "pop",    "reverse",
                                              "insert", "sort",  "extend", "remove"};

Value DictGet(Session&, const Value& self, const Arguments& arguments) {
  const auto bound = arguments.Bind("get", {"key", "default"}, 1);
  const Value* found = self.dict().Find(*bound[0]);
  if (found != nullptr) return *found;
  return bound[1].value_or(Value::None());
}

template <DictView::Part kPart>
Value DictPart(Session&, const Value& self, const Arguments& arguments) {
  arguments.Bind("items", {}, 0);
  return Value::Of(std::make_shared<DictView>(self, kPart));
}

Value Copy(Session&, const Value& self, const Arguments&) { return self; }

constexpr MethodRow kDictMethods[] = {
    {"get", DictGet},
    {"items", DictPart<DictView::Part::kItems>},
    {"keys", DictPart<DictView::Part::kKeys>},
    {"values", DictPart<DictView::Part::kValues>},
    {"copy", Copy},
    {"fromkeys", nullptr},
};

Value SequenceCount(Session& session, const Value& self, const Arguments& arguments) {
  const auto bound = arguments.Bind("count", {"value"}, 1);
  int64_t count = 0;
  for (const Value& item : self.items()) count += Equal(session, item, *bound[0]) ? 1 : 0;
  return Value::Int(count);
}

Value SequenceIndex(Session& session, const Value& self, const Arguments& arguments) {
  const auto bound = arguments.Bind("index", {"value", "start", "stop"}, 1);
  const auto size = static_cast<int64_t>(self.items().size());
  const auto at = [&](size_t which, int64_t fallback) {
    if (!bound[which]) return fallback;
    const int64_t index = IntegerOf(*bound[which], "index()");
    return std::clamp<int64_t>(index < 0 ? index + size : index, 0, size);
  };
  for (int64_t i = at(1, 0), stop = at(2, size); i < stop; ++i) {
    if (Equal(session, self.items()[static_cast<size_t>(i)], *bound[0])) return Value::Int(i);
  }
  throw TemplateFailure(
      fmt::format("{} is not in the {}", Repr(session, *bound[0]), self.TypeName()));
}

constexpr MethodRow kSequenceMethods[] = {
    {"count", SequenceCount},
    {"index", SequenceIndex},
};
constexpr MethodRow kListCopy[] = {{"copy", Copy}};

Value IsInteger(Session&, const Value& self, const Arguments&) {
  return Value::Bool(std::isfinite(self.as_double()) &&
                     std::floor(self.as_double()) == self.as_double());
}
Value BitLength(Session&, const Value& self, const Arguments&) {
  const int64_t value = self.as_int();
  uint64_t magnitude = value < 0 ? -static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  int64_t bits = 0;
  for (; magnitude != 0; magnitude >>= 1) ++bits;
  return Value::Int(bits);
}
Value Conjugate(Session&, const Value& self, const Arguments&) { return self; }

constexpr MethodRow kFloatMethods[] = {
    {"is_integer", IsInteger}, {"conjugate", Conjugate}, {"as_integer_ratio", nullptr},
    {"hex", nullptr},          {"fromhex", nullptr},
};
constexpr MethodRow kIntMethods[] = {
    {"bit_length", BitLength}, {"conjugate", Conjugate}, {"as_integer_ratio", nullptr},
    {"bit_count", nullptr},    {"to_bytes", nullptr},    {"from_bytes", nullptr},
};

std::optional<Value> FindMethod(const Value& self, std::string_view name,
                                std::span<const MethodRow> table) {
  for (const MethodRow& row : table) {
    if (row.name != name) continue;
    if (row.function == nullptr) {
      throw TemplateFailure(
          fmt::format("the method {} of '{}' is not supported", name, self.TypeName()));
    }
    return Value::Of(std::make_shared<BoundMethod>(self, row.name, row.function));
  }
  return std::nullopt;
}

std::optional<Value> Unsafe(const Value& self, std::string_view name,
                            std::span<const std::string_view> mutators) {
  if (std::ranges::find(mutators, name) == mutators.end()) return std::nullopt;
  return Value::Undefined(
      fmt::format("access to attribute '{}' of '{}' object is unsafe.", name, self.TypeName()));
}

std::optional<Value> NumberAttribute(const Value& value, std::string_view name) {
  if (name == "real") return Plus(value);
  if (name == "imag") return value.is_float() ? Value::Float(0.0) : Value::Int(0);
  if (value.is_float()) return FindMethod(value, name, kFloatMethods);
  if (name == "numerator") return Plus(value);
  if (name == "denominator") return Value::Int(1);
  return FindMethod(value, name, kIntMethods);
}

}  // namespace

std::optional<Value> BuiltinAttribute(const Value& value, std::string_view name) {
  if (value.is_string()) {
    if (auto method = FindMethod(value, name, StringMethods())) return method;
    return FindMethod(value, name, StringPredicates());
  }
  if (value.is_dict()) {
    if (auto method = FindMethod(value, name, kDictMethods)) return method;
    return Unsafe(value, name, kDictMutators);
  }
  if (value.is_list()) {
    if (auto method = FindMethod(value, name, kSequenceMethods)) return method;
    if (auto method = FindMethod(value, name, kListCopy)) return method;
    return Unsafe(value, name, kListMutators);
  }
  if (value.is_tuple()) {
    if (value.sequence().is_group && name == "grouper") return value.items()[0];
    if (value.sequence().is_group && name == "list") return value.items()[1];
    return FindMethod(value, name, kSequenceMethods);
  }
  if (value.is_number()) return NumberAttribute(value, name);
  return std::nullopt;
}

}  // namespace oscar::jinja
