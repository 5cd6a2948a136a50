// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic and the comparisons that operators.h declares, by Python's rules. Trap: // and %
// round towards minus infinity, and dividing two integers by / gives a float.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "capture/text/template/operators.h"

namespace oscar::jinja {
namespace {

constexpr std::string_view kSymbols[] = {"+", "-", "*", "/", "//", "%"};
constexpr std::string_view kComparisons[] = {"==", "!=", "<", "<=", ">", ">=", "in", "not in"};

[[noreturn]] void FailOverflow() {
  throw TemplateFailure(
      "integers beyond 64 bits are not supported, because no known chat template uses them");
}

Value Integers(BinaryOperator op, int64_t a, int64_t b) {
  int64_t out = 0;
  if (op == BinaryOperator::kAdd || op == BinaryOperator::kSub || op == BinaryOperator::kMul) {
    const bool overflows = op == BinaryOperator::kAdd   ? __builtin_add_overflow(a, b, &out)
                           : op == BinaryOperator::kSub ? __builtin_sub_overflow(a, b, &out)
                                                        : __builtin_mul_overflow(a, b, &out);
    if (overflows) FailOverflow();
    return Value::Int(out);
  }
  if (b == 0) throw TemplateFailure("division by zero");
  if (op == BinaryOperator::kDiv)
    return Value::Float(static_cast<double>(a) / static_cast<double>(b));
  if (a == std::numeric_limits<int64_t>::min() && b == -1) FailOverflow();
  const int64_t rest = a % b;
  const bool down = rest != 0 && (rest < 0) != (b < 0);
  if (op == BinaryOperator::kMod) return Value::Int(down ? rest + b : rest);
  return Value::Int(down ? a / b - 1 : a / b);
}

Value Floats(BinaryOperator op, double a, double b) {
  if (op == BinaryOperator::kAdd) return Value::Float(a + b);
  if (op == BinaryOperator::kSub) return Value::Float(a - b);
  if (op == BinaryOperator::kMul) return Value::Float(a * b);
  if (op != BinaryOperator::kDiv)
    throw TemplateFailure(NotSupported("float operator", kSymbols[static_cast<int>(op)]));
  if (b == 0.0) throw TemplateFailure("float division by zero");
  return Value::Float(a / b);
}

Value Repeat(Session& session, const Value& value, int64_t times) {
  const auto count = static_cast<uint64_t>(std::max<int64_t>(times, 0));
  if (value.is_string()) {
    const std::string& text = value.as_string();
    if (!text.empty() && count > Session::kMaxTextBytes / text.size())
      session.ChargeText(Session::kMaxTextBytes + 1);
    session.ChargeMemory(text.size() * (text.empty() ? 0 : count));
    std::string out;
    out.reserve(text.size() * (text.empty() ? 0 : count));
    for (uint64_t i = 0; i < count && !text.empty(); ++i) out += text;
    return Value::String(std::move(out), value.is_markup());
  }
  std::vector<Value> out;
  for (uint64_t i = 0; i < count && !value.items().empty(); ++i) {
    session.ChargeItems(value.items().size());
    out.insert(out.end(), value.items().begin(), value.items().end());
  }
  return Value::List(std::move(out), value.kind());
}

Value Concatenate(Session& session, const Value& a, const Value& b) {
  if (a.is_string()) {
    const bool markup = a.is_markup() || b.is_markup();
    std::string out;
    for (const Value* part : {&a, &b}) {
      const bool escapes = markup && !part->is_markup();
      session.Append(escapes ? EscapeHtml(session, part->as_string()) : part->as_string(), out);
    }
    return Value::String(std::move(out), markup);
  }
  session.ChargeItems(a.items().size() + b.items().size());
  std::vector<Value> items = a.items();
  items.insert(items.end(), b.items().begin(), b.items().end());
  return Value::List(std::move(items), a.kind());
}

bool AreEqual(Session& session, const Value& a, const Value& b) {
  const Session::Level level(session);
  session.Step();
  if (a.is_number() && b.is_number()) {
    if (a.is_integral() && b.is_integral()) return a.as_int() == b.as_int();
    // A double beyond 64 bits does not equal any int.
    return a.as_double() == b.as_double() &&
           (a.is_float() == b.is_float() || std::abs(a.as_double()) < 9.2e18);
  }
  if (a.is_big() && b.is_big()) return a.big_digits() == b.big_digits();
  if (a.is_undefined() || b.is_undefined()) return a.is_undefined() && b.is_undefined();
  if (a.is_items() && b.is_items() && a.kind() == b.kind()) {
    if (a.kind() >= SequenceKind::kItems)
      throw TemplateFailure(NotSupported("comparison of values of type", a.TypeName()));
    return std::ranges::equal(a.items(), b.items(), [&](const Value& x, const Value& y) {
      return AreEqual(session, x, y);
    });
  }
  if (a.is_dict() && b.is_dict()) {
    return a.dict().items.size() == b.dict().items.size() &&
           std::ranges::all_of(a.dict().items, [&](const auto& member) {
             if (member.first.is_string()) session.ChargeText(member.first.as_string().size());
             const Value* other = b.dict().Find(member.first);
             return other != nullptr && AreEqual(session, member.second, *other);
           });
  }
  if (a.is_string()) session.ChargeText(a.as_string().size());
  return a.SameObject(b);
}

template <class T>
bool InOrder(Comparison comparison, const T& a, const T& b) {
  if (comparison == Comparison::kLt) return a < b;
  if (comparison == Comparison::kLe) return a <= b;
  return comparison == Comparison::kGt ? a > b : a >= b;
}

bool Ordered(Session& session, Comparison comparison, const Value& a, const Value& b) {
  const Session::Level level(session);
  session.Step();
  a.Known();
  b.Known();
  if (a.is_number() && b.is_number()) {
    if (a.is_integral() && b.is_integral()) return InOrder(comparison, a.as_int(), b.as_int());
    return InOrder(comparison, a.as_double(), b.as_double());
  }
  if (a.is_string() && b.is_string()) {
    session.ChargeText(a.as_string().size());
    return InOrder(comparison, a.as_string(), b.as_string());
  }
  if (a.is_sequence() && b.is_sequence() && a.kind() == b.kind()) {
    const size_t common = std::min(a.items().size(), b.items().size());
    for (size_t i = 0; i < common; ++i) {
      if (!AreEqual(session, a.items()[i], b.items()[i]))
        return Ordered(session, comparison, a.items()[i], b.items()[i]);
    }
    return InOrder(comparison, a.items().size(), b.items().size());
  }
  if (a.is_big() || b.is_big()) FailOverflow();
  throw TemplateFailure(fmt::format("'{}' not supported between instances of '{}' and '{}'",
                                    kComparisons[static_cast<int>(comparison)], a.TypeName(),
                                    b.TypeName()));
}

// Evaluates `item in container`.
bool Contains(Session& session, const Value& container, const Value& item) {
  if (container.is_string()) {
    if (!item.Known().is_string()) {
      throw TemplateFailure(
          fmt::format("'in <string>' requires string as left operand, not {}", item.TypeName()));
    }
    session.ChargeSearch(container.as_string().size(), item.as_string().size());
    return container.as_string().find(item.as_string()) != std::string::npos;
  }
  if (container.is_dict()) {
    if (item.is_string()) session.ChargeText(item.as_string().size());
    return container.dict().Find(item) != nullptr;
  }
  const Cursor cursor = Iterate(session, container);
  for (Value value; cursor(&value);) {
    if (value.SameObject(item) || AreEqual(session, value, item)) return true;
  }
  return false;
}

}  // namespace

Value Binary(Session& session, BinaryOperator op, const Value& a, const Value& b) {
  session.Step();
  if (op == BinaryOperator::kMod && a.is_string())
    throw TemplateFailure(NotSupported("text operator", "%"));
  a.Known();
  b.Known();
  if (a.is_number() && b.is_number()) {
    if (a.is_integral() && b.is_integral()) return Integers(op, a.as_int(), b.as_int());
    return Floats(op, a.as_double(), b.as_double());
  }
  if (a.is_big() || b.is_big()) FailOverflow();
  const auto repeats = [](const Value& value) { return value.is_string() || value.is_sequence(); };
  if (op == BinaryOperator::kMul && repeats(a) && b.is_integral())
    return Repeat(session, a, b.as_int());
  if (op == BinaryOperator::kMul && repeats(b) && a.is_integral())
    return Repeat(session, b, a.as_int());
  if (op == BinaryOperator::kAdd && repeats(a)) {
    if ((a.is_string() && b.is_string()) || (a.is_list() && b.is_list()) ||
        (a.is_tuple() && b.is_tuple()))
      return Concatenate(session, a, b);
    throw TemplateFailure(fmt::format("can only concatenate {} (not \"{}\") to {}", a.TypeName(),
                                      b.TypeName(), a.TypeName()));
  }
  throw TemplateFailure(fmt::format("unsupported operand type(s) for {}: '{}' and '{}'",
                                    kSymbols[static_cast<int>(op)], a.TypeName(), b.TypeName()));
}

Value Negate(const Value& value) {
  if (value.Known().is_integral()) return Integers(BinaryOperator::kSub, 0, value.as_int());
  if (value.is_float()) return Value::Float(-value.as_double());
  if (value.is_big()) FailOverflow();
  throw TemplateFailure(fmt::format("bad operand type for unary -: '{}'", value.TypeName()));
}

bool Holds(Session& session, Comparison comparison, const Value& a, const Value& b) {
  if (comparison == Comparison::kEq) return AreEqual(session, a, b);
  if (comparison == Comparison::kNe) return !AreEqual(session, a, b);
  if (comparison == Comparison::kIn) return Contains(session, b, a);
  if (comparison == Comparison::kNotIn) return !Contains(session, b, a);
  return Ordered(session, comparison, a, b);
}

std::string EscapeHtml(Session& session, std::string_view text) {
  static constexpr std::string_view kCharacters = "&<>'\"";
  static constexpr std::string_view kEntities[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
  const auto entities = static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return kCharacters.find(c) != kCharacters.npos; }));
  session.ChargeMemory(text.size() + kEntities[0].size() * entities);
  std::string out;
  for (const char c : text) {
    const size_t found = kCharacters.find(c);
    out += found == kCharacters.npos ? std::string_view(&c, 1) : kEntities[found];
  }
  return out;
}

}  // namespace oscar::jinja
