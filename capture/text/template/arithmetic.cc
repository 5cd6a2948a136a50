// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of operators.h. Trap: // and % round towards minus infinity, / of two integers is
// a float.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "capture/text/template/format.h"
#include "capture/text/template/operators.h"
#include "capture/text/template/value_text.h"

namespace oscar::jinja {
namespace {

constexpr std::string_view kSymbols[] = {"+", "-", "*", "/", "//", "%", "** or pow()"};

[[noreturn]] void FailOverflow() {
  throw TemplateFailure("integers beyond 64 bits cannot be computed with here");
}

[[noreturn]] void FailKinds(BinaryOperator op, const Value& a, const Value& b) {
  if (op == BinaryOperator::kAdd && (a.is_string() || a.is_sequence())) {
    throw TemplateFailure(fmt::format("can only concatenate {} (not \"{}\") to {}", a.TypeName(),
                                      b.TypeName(), a.TypeName()));
  }
  throw TemplateFailure(fmt::format("unsupported operand type(s) for {}: '{}' and '{}'",
                                    kSymbols[static_cast<int>(op)], a.TypeName(), b.TypeName()));
}

double FloorMod(double a, double b) {
  const double rest = std::fmod(a, b);
  if (rest == 0.0) return std::copysign(0.0, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

// CPython float_floor_div: the quotient of what fmod leaves, rounded to an integer.
double FloorDiv(double a, double b) {
  const double quotient = (a - FloorMod(a, b)) / b;
  if (quotient == 0.0) return std::copysign(0.0, a / b);
  const double floor = std::floor(quotient);
  return quotient - floor > 0.5 ? floor + 1.0 : floor;
}

Value IntegerPower(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) throw TemplateFailure("0 cannot be raised to a negative power");
    return Value::Float(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) FailOverflow();
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) FailOverflow();
  }
  return Value::Int(result);
}

Value Integers(BinaryOperator op, int64_t a, int64_t b) {
  constexpr auto kMin = std::numeric_limits<int64_t>::min();
  int64_t out = 0;
  switch (op) {
    case BinaryOperator::kAdd:
      if (__builtin_add_overflow(a, b, &out)) FailOverflow();
      return Value::Int(out);
    case BinaryOperator::kSub:
      if (__builtin_sub_overflow(a, b, &out)) FailOverflow();
      return Value::Int(out);
    case BinaryOperator::kMul:
      if (__builtin_mul_overflow(a, b, &out)) FailOverflow();
      return Value::Int(out);
    case BinaryOperator::kPow:
      return IntegerPower(a, b);
    case BinaryOperator::kDiv:
    case BinaryOperator::kFloorDiv:
    case BinaryOperator::kMod:
      break;
  }
  if (b == 0) throw TemplateFailure("division by zero");
  if (op == BinaryOperator::kDiv)
    return Value::Float(static_cast<double>(a) / static_cast<double>(b));
  if (a == kMin && b == -1) FailOverflow();
  const int64_t rest = a % b;
  const bool down = rest != 0 && (rest < 0) != (b < 0);
  if (op == BinaryOperator::kMod) return Value::Int(down ? rest + b : rest);
  return Value::Int(down ? a / b - 1 : a / b);
}

Value Floats(BinaryOperator op, double a, double b) {
  switch (op) {
    case BinaryOperator::kAdd:
      return Value::Float(a + b);
    case BinaryOperator::kSub:
      return Value::Float(a - b);
    case BinaryOperator::kMul:
      return Value::Float(a * b);
    case BinaryOperator::kPow: {
      if (a == 0.0 && b < 0) throw TemplateFailure("0.0 cannot be raised to a negative power");
      if (a < 0 && std::floor(b) != b && std::isfinite(b))
        throw TemplateFailure("complex numbers are not supported");
      const double power = std::pow(a, b);
      if (std::isinf(power) && std::isfinite(a) && std::isfinite(b))
        throw TemplateFailure("(34, 'Numerical result out of range')");
      return Value::Float(power);
    }
    case BinaryOperator::kDiv:
    case BinaryOperator::kFloorDiv:
    case BinaryOperator::kMod:
      break;
  }
  if (b == 0.0) throw TemplateFailure("float division by zero");
  if (op == BinaryOperator::kDiv) return Value::Float(a / b);
  return Value::Float(op == BinaryOperator::kMod ? FloorMod(a, b) : FloorDiv(a, b));
}

Value Repeat(Session& session, const Value& value, int64_t times) {
  const auto count = static_cast<uint64_t>(std::max<int64_t>(times, 0));
  if (value.is_string()) {
    const std::string& text = value.as_string();
    if (!text.empty() && count > Session::kMaxTextBytes / text.size())
      session.ChargeText(Session::kMaxTextBytes + 1);
    std::string out;
    for (uint64_t i = 0; i < count && !text.empty(); ++i) out += text;
    return session.String(std::move(out), value.is_markup());
  }
  std::vector<Value> out;
  for (uint64_t i = 0; i < count && !value.items().empty(); ++i) {
    session.Step(value.items().size());
    out.insert(out.end(), value.items().begin(), value.items().end());
  }
  return value.is_list() ? Value::List(std::move(out)) : Value::Tuple(std::move(out));
}

Value Join(Session& session, const Value& a, const Value& b) {
  if (a.is_string()) {
    const bool markup = a.is_markup() || b.is_markup();
    const auto part = [&](const Value& v) {
      return markup && !v.is_markup() ? EscapeHtml(v.as_string()) : v.as_string();
    };
    session.ChargeText(a.as_string().size() + b.as_string().size());
    return session.String(part(a) + part(b), markup);
  }
  session.Step(a.items().size() + b.items().size());
  std::vector<Value> items = a.items();
  items.insert(items.end(), b.items().begin(), b.items().end());
  return a.is_list() ? Value::List(std::move(items)) : Value::Tuple(std::move(items));
}

}  // namespace

Value Binary(Session& session, BinaryOperator op, const Value& a, const Value& b) {
  session.Step();
  if (op == BinaryOperator::kMod && a.is_string()) return PercentFormat(session, a, b);
  for (const Value* value : {&a, &b}) {
    if (value->is_undefined()) throw TemplateFailure(value->undefined_reason());
  }
  if (a.is_integral() && b.is_integral()) return Integers(op, a.as_int(), b.as_int());
  if (a.is_number() && b.is_number()) return Floats(op, a.as_double(), b.as_double());
  if (a.is_big() || b.is_big()) FailOverflow();
  if (op == BinaryOperator::kAdd) {
    if ((a.is_string() && b.is_string()) || (a.is_list() && b.is_list()) ||
        (a.is_tuple() && b.is_tuple())) {
      return Join(session, a, b);
    }
  }
  if (op == BinaryOperator::kMul) {
    if ((a.is_string() || a.is_sequence()) && b.is_integral())
      return Repeat(session, a, b.as_int());
    if ((b.is_string() || b.is_sequence()) && a.is_integral())
      return Repeat(session, b, a.as_int());
  }
  FailKinds(op, a, b);
}

Value Negate(const Value& value) {
  if (value.is_undefined()) throw TemplateFailure(value.undefined_reason());
  if (value.is_integral()) return Integers(BinaryOperator::kSub, 0, value.as_int());
  if (value.is_float()) return Value::Float(-value.as_double());
  if (value.is_big()) {
    const std::string& digits = value.big_digits();
    if (digits == "9223372036854775808") return Value::Int(std::numeric_limits<int64_t>::min());
    return Value::Big(digits.starts_with('-') ? digits.substr(1) : "-" + digits);
  }
  throw TemplateFailure(fmt::format("bad operand type for unary -: '{}'", value.TypeName()));
}

Value Plus(const Value& value) {
  if (value.is_undefined()) throw TemplateFailure(value.undefined_reason());
  if (value.is_integral()) return Value::Int(value.as_int());
  if (value.is_float() || value.is_big()) return value;
  throw TemplateFailure(fmt::format("bad operand type for unary +: '{}'", value.TypeName()));
}

}  // namespace oscar::jinja
