// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
#include "capture/text/template/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "capture/text/template/operators.h"

namespace oscar::jinja {
namespace {

// Exact: a double that is not an integer, or lies beyond 64 bits, equals no int.
bool NumbersEqual(const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral()) return a.as_int() == b.as_int();
  return a.as_double() == b.as_double() &&
         (a.is_float() == b.is_float() || std::abs(a.as_double()) < 9.2e18);
}

int Sign(auto a, auto b) {
  if (a < b) return -1;
  return b < a ? 1 : 0;
}

int CompareBig(const Value& a, const Value& b) {
  const auto parts = [](const Value& v) {
    std::string digits = v.is_big() ? v.big_digits() : std::to_string(v.as_int());
    const bool negative = digits.starts_with('-');
    return std::pair(negative, negative ? digits.substr(1) : digits);
  };
  const auto [a_negative, a_digits] = parts(a);
  const auto [b_negative, b_digits] = parts(b);
  if (a_negative != b_negative) return a_negative ? -1 : 1;
  const int sign = a_digits.size() != b_digits.size() ? Sign(a_digits.size(), b_digits.size())
                                                      : Sign(a_digits, b_digits);
  return a_negative ? -sign : sign;
}

}  // namespace

std::string StringHashKey(std::string_view key) {
  std::string out = "s";
  out += key;
  return out;
}

std::string HashKey(const Value& key) {
  if (key.is_string()) return StringHashKey(key.as_string());
  if (key.is_integral()) return "i" + std::to_string(key.as_int());
  if (key.is_big()) return "i" + key.big_digits();
  if (key.is_float()) {
    const double value = key.as_double();
    if (std::floor(value) == value && std::abs(value) < 9.2e18)
      return "i" + std::to_string(static_cast<int64_t>(value));
    return fmt::format("f{}", value);
  }
  if (key.is_none()) return "n";
  if (key.is_undefined()) return "u";
  if (key.is_tuple()) {
    std::string out = "t";
    for (const Value& item : key.items()) {
      const std::string inner = HashKey(item);
      out += fmt::format("{}:{}", inner.size(), inner);
    }
    return out;
  }
  if (key.is_object()) return fmt::format("o{}", static_cast<const void*>(&key.object()));
  throw TemplateFailure(fmt::format("unhashable type: '{}'", key.TypeName()));
}

bool Equal(Session& session, const Value& a, const Value& b) {
  const Session::Level level(session);
  session.Step();
  if (a.is_number() && b.is_number()) return NumbersEqual(a, b);
  if (a.is_big() || b.is_big()) return a.is_big() && b.is_big() && a.big_digits() == b.big_digits();
  if (a.is_string() && b.is_string()) return a.as_string() == b.as_string();
  if (a.is_none() || b.is_none()) return a.is_none() && b.is_none();
  if (a.is_undefined() || b.is_undefined()) return a.is_undefined() && b.is_undefined();
  if ((a.is_list() && b.is_list()) || (a.is_tuple() && b.is_tuple())) {
    const std::vector<Value>& left = a.items();
    const std::vector<Value>& right = b.items();
    if (left.size() != right.size()) return false;
    for (size_t i = 0; i < left.size(); ++i) {
      if (!Equal(session, left[i], right[i])) return false;
    }
    return true;
  }
  if (a.is_dict() && b.is_dict()) {
    if (a.dict().items.size() != b.dict().items.size()) return false;
    for (const auto& [key, value] : a.dict().items) {
      const Value* other = b.dict().Find(key);
      if (other == nullptr || !Equal(session, value, *other)) return false;
    }
    return true;
  }
  return a.is_object() && b.is_object() && &a.object() == &b.object();
}

int Compare(Session& session, const Value& a, const Value& b, std::string_view op) {
  const Session::Level level(session);
  session.Step();
  if (a.is_undefined()) throw TemplateFailure(a.undefined_reason());
  if (b.is_undefined()) throw TemplateFailure(b.undefined_reason());
  if (a.is_integral() && b.is_integral()) return Sign(a.as_int(), b.as_int());
  if (a.is_number() && b.is_number()) {
    if (std::isnan(a.as_double()) || std::isnan(b.as_double())) return 2;
    return Sign(a.as_double(), b.as_double());
  }
  if ((a.is_big() || a.is_integral()) && (b.is_big() || b.is_integral())) return CompareBig(a, b);
  if (a.is_string() && b.is_string()) return Sign(a.as_string().compare(b.as_string()), 0);
  if ((a.is_list() && b.is_list()) || (a.is_tuple() && b.is_tuple())) {
    const std::vector<Value>& left = a.items();
    const std::vector<Value>& right = b.items();
    for (size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
      if (!Equal(session, left[i], right[i])) return Compare(session, left[i], right[i], op);
    }
    return Sign(left.size(), right.size());
  }
  throw TemplateFailure(fmt::format("'{}' not supported between instances of '{}' and '{}'", op,
                                    a.TypeName(), b.TypeName()));
}

bool Less(Session& session, const Value& a, const Value& b) {
  return Compare(session, a, b, "<") == -1;
}

bool Contains(Session& session, const Value& container, const Value& item) {
  if (container.is_string()) {
    if (item.is_undefined()) throw TemplateFailure(item.undefined_reason());
    if (!item.is_string()) {
      throw TemplateFailure(
          fmt::format("'in <string>' requires string as left operand, not {}", item.TypeName()));
    }
    session.ChargeText(container.as_string().size());
    return container.as_string().find(item.as_string()) != std::string::npos;
  }
  if (container.is_dict()) return container.dict().Find(item) != nullptr;
  Cursor cursor = Iterate(session, container);
  for (Value value; cursor(&value);) {
    if (value.SameObject(item) || Equal(session, value, item)) return true;
  }
  return false;
}

}  // namespace oscar::jinja
