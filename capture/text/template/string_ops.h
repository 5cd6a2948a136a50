// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What string methods and filters share: strip, split, lines, replace. Trap: views point into the
// text given.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capture/text/template/session.h"

namespace oscar::jinja {

// The text of `value`; TemplateFailure naming `what` if it is none.
const std::string& StringArgument(const Value& value, std::string_view what);

// Without `characters`, white space.
std::string_view StripText(std::string_view text, const std::optional<std::string>& characters,
                           bool left, bool right);
// At most `limit` cuts (negative: all), counted from the right if `from_right`.
std::vector<std::string_view> SplitAt(std::string_view text, std::string_view separator,
                                      int64_t limit, bool from_right);
std::vector<std::string_view> SplitAtSpace(std::string_view text, int64_t limit, bool from_right);
// str.splitlines: \n, \r, \r\n, \v, \f, \x1c to \x1e, \x85, U+2028, U+2029.
std::vector<std::string_view> Lines(std::string_view text, bool keep_ends);
// str.replace; an empty `old` stands between all characters.
std::string ReplaceText(Session& session, std::string_view text, std::string_view old,
                        std::string_view replacement, int64_t count);
bool IsLowerText(std::string_view text);  // str.islower
bool IsUpperText(std::string_view text);  // str.isupper

}  // namespace oscar::jinja
