// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Equality, order and membership of values, as in Python. Trap: 1, 1.0 and True are equal and are
// one key of a dict; text and numbers are never equal and cannot be ordered.
#pragma once

#include <string>
#include <string_view>

#include "capture/text/template/session.h"

namespace oscar::jinja {

// Equal for keys that Python takes for one; TemplateFailure for lists and dicts.
std::string HashKey(const Value& key);
std::string StringHashKey(std::string_view key);

bool Equal(Session& session, const Value& a, const Value& b);
// -1, 0, 1; TemplateFailure naming `op` ("<") if the kinds have no order. With NaN: 2.
int Compare(Session& session, const Value& a, const Value& b, std::string_view op);
bool Less(Session& session, const Value& a, const Value& b);
// item in container
bool Contains(Session& session, const Value& container, const Value& item);

}  // namespace oscar::jinja
