// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Finds filters (x | trim), tests (x is defined), methods (x.strip()) and global functions (range)
// by name. Each kind has a table in its own file; to add a function, add a row there. These files
// also list names that Jinja2 or Python has but no chat template uses; an error says that these are
// not supported.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "capture/text/template/objects.h"
#include "capture/text/template/session.h"

namespace oscar::jinja {

// One call of the function in a table row.
struct Call {
  Session& session;
  std::string_view name;   // name in the table row
  const Value& self;       // the value filtered, tested, or whose method this is; None for a global
                           // function
  const Arguments& given;  // arguments as passed
  std::vector<std::optional<Value>> bound;  // one per parameter

  bool Has(size_t i) const { return bound[i] && !bound[i]->is_none(); }
  bool Flag(size_t i) const { return bound[i] && bound[i]->Truthy(); }
  // These throw TemplateFailure for a value of the wrong type.
  const std::string& Text(size_t i) const;
  int64_t Integer(size_t i, int64_t fallback) const;
  // Returns a text that is marked as safe if `self` is.
  Value Like(std::string text) const { return session.String(std::move(text), self.is_markup()); }
};

template <class Result>
struct FunctionRow {
  std::string_view name;
  Result (*function)(const Call& call);
  // Names of the parameters, such as "old new -count". A call that gives a parameter marked with -
  // is refused. "*": the arguments are not bound to parameters.
  std::string_view parameters = "";
  size_t required = 0;  // number of arguments that must be given
};

// Binds a call's arguments. Throws TemplateFailure if they are too many, unknown or missing.
Call Bind(Session& session, std::string_view name, const Value& self, const Arguments& given,
          std::string_view parameters, size_t required);

template <class Result>
const FunctionRow<Result>* FindRow(std::span<const FunctionRow<Result>> rows,
                                   std::string_view name) {
  const auto found = std::ranges::find(rows, name, &FunctionRow<Result>::name);
  return found == rows.end() ? nullptr : &*found;
}

template <class Result>
Result Invoke(const FunctionRow<Result>& row, Session& session, const Value& self,
              const Arguments& given) {
  return row.function(Bind(session, row.name, self, given, row.parameters, row.required));
}

// Throws TemplateFailure naming a filter or test that is unknown or not supported.
Value CallFilter(Session& session, std::string_view name, const Value& value,
                 const Arguments& arguments);
bool CallTest(Session& session, std::string_view name, const Value& value,
              const Arguments& arguments);
// Returns a method of the Python type of `value`, bound to it; nothing if the type has no such
// method. Throws TemplateFailure for an unsupported method.
std::optional<Value> FindMethod(const Value& value, std::string_view name);
// Returns a function of Jinja's or transformers' environment; nothing if there is no such function.
std::optional<Value> FindGlobal(std::string_view name);

// Returns the characters that strip and trim remove, or null for white space. Charges the search.
const std::string* StripSet(const Call& c, std::string_view text);
// Charges for looking up or storing a key in a dict.
void ChargeKey(Session& session, const Value& key);

// Implements str.splitlines: at \n, \r, \r\n, \v, \f, \x1c to \x1e, \x85, U+2028, U+2029.
std::vector<Value> SplitLines(Session& session, const Value& text, bool keep_ends);
// Implements str.replace; a negative `count` means no limit.
std::string ReplaceText(Session& session, std::string_view text, std::string_view old,
                        std::string_view replacement, int64_t count);

}  // namespace oscar::jinja
