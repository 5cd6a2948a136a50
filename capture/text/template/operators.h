// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Python's operators on values: arithmetic and comparison (arithmetic.cc), attributes, subscripts,
// slices and iteration (operators.cc). Trap: `m.role` looks for an attribute first and then for an
// item; `m['role']` does the reverse (Jinja2 environment.py, getattr and getitem). A slice of a
// value that Python cannot slice is an error, not an undefined value.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capture/text/template/session.h"

namespace oscar::jinja {

enum class BinaryOperator { kAdd, kSub, kMul, kDiv, kFloorDiv, kMod };
enum class Comparison { kEq, kNe, kLt, kLe, kGt, kGe, kIn, kNotIn };

// Throws TemplateFailure for operand types that Python does not combine, for division by zero, and
// for results beyond 64 bits.
Value Binary(Session& session, BinaryOperator op, const Value& a, const Value& b);
Value Negate(const Value& value);

// Throws TemplateFailure for operand types that Python does not order. Trap: text and numbers are
// never equal.
bool Holds(Session& session, Comparison comparison, const Value& a, const Value& b);
inline bool Equal(Session& session, const Value& a, const Value& b) {
  return Holds(session, Comparison::kEq, a, b);
}
inline bool Less(Session& session, const Value& a, const Value& b) {
  return Holds(session, Comparison::kLt, a, b);
}

bool IsIterable(const Value& value);
Cursor Iterate(Session& session, const Value& value);  // throws TemplateFailure if not iterable
std::vector<Value> ToVector(Session& session, const Value& value);
// Returns len(value); nothing if the value has no length.
std::optional<int64_t> Length(Session& session, const Value& value);

Value GetAttribute(Session& session, const Value& value, std::string_view name);
Value GetItem(Session& session, const Value& value, const Value& key);
// Returns value[start:stop:step]; each bound is an integer or None.
Value Slice(Session& session, const Value& value, const Value& start, const Value& stop,
            const Value& step);

// Return the text or integer in `value`. Throw TemplateFailure naming `what` for another type.
const std::string& TextOf(const Value& value, std::string_view what);
int64_t IntegerOf(const Value& value, std::string_view what);

// Replaces & < > ' " with HTML entities.
std::string EscapeHtml(Session& session, std::string_view text);

}  // namespace oscar::jinja
