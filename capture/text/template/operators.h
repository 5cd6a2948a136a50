// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What Python's operators do with values: arithmetic, subscripts, attributes, iteration, calls.
// Trap: `m.role` looks for an attribute first and then for an item, `m['role']` the other way round
// (Jinja2 environment.py, getattr and getitem), and a slice does neither: it fails as Python does.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "capture/text/template/session.h"

namespace oscar::jinja {

enum class BinaryOperator { kAdd, kSub, kMul, kDiv, kFloorDiv, kMod, kPow };

// TemplateFailure for kinds that Python does not combine, division by zero, and integers that leave
// 64 bits.
Value Binary(Session& session, BinaryOperator op, const Value& a, const Value& b);
Value Negate(const Value& value);
Value Plus(const Value& value);

Cursor Iterate(Session& session, const Value& value);  // TemplateFailure: not iterable
std::vector<Value> ToVector(Session& session, const Value& value);
bool IsIterable(Session& session, const Value& value);
// len(value); nothing if it has none.
std::optional<int64_t> Length(Session& session, const Value& value);

Value GetAttribute(Session& session, const Value& value, std::string_view name);
Value GetItem(Session& session, const Value& value, const Value& key);
// value[start:stop:step], each an integer or None.
Value Slice(Session& session, const Value& value, const Value& start, const Value& stop,
            const Value& step);

Value Call(Session& session, const Value& callee, Arguments& arguments);

// The integer in `value`; TemplateFailure naming `what` if it is none.
int64_t IntegerOf(const Value& value, std::string_view what);

}  // namespace oscar::jinja
