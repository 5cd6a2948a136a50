// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Filters (x | trim), tests (x is defined) and global functions (range) by name. To add one, add a
// row to the table of its file. Trap: tojson is the one of transformers, not Jinja's own, which
// escapes HTML.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "capture/text/template/session.h"

namespace oscar::jinja {

class Interpreter;

struct FilterRow {
  std::string_view name;
  Value (*function)(Session& session, const Value& value, const Arguments& arguments);
};
std::span<const FilterRow> TextFilters();
std::span<const FilterRow> NumberFilters();
std::span<const FilterRow> SequenceFilters();
std::span<const FilterRow> SelectionFilters();  // that call tests, filters or look up attributes
std::span<const FilterRow> OrderFilters();

// TemplateFailure naming it for a filter or test that is not known.
Value CallFilter(Session& session, std::string_view name, const Value& value,
                 const Arguments& arguments);
bool CallTest(Session& session, std::string_view name, const Value& value,
              const Arguments& arguments);
bool HasFilter(std::string_view name);
bool HasTest(std::string_view name);

// A function of Jinja's or of transformers' environment; nothing: no such name.
std::optional<Value> Global(Interpreter& interpreter, std::string_view name);

// What "a.0.b" or an integer reads from an item (Jinja2 filters.py, make_attrgetter).
class AttributePath {
 public:
  explicit AttributePath(const Value& attribute);
  // `fallback`, where given, stands for an undefined value on the way.
  Value Read(Session& session, Value item, const std::optional<Value>& fallback = {}) const;

 private:
  std::vector<Value> parts_;
};

// Lower case of text, other values as they are: what sorting compares.
Value IgnoreCase(Session& session, const Value& value);

}  // namespace oscar::jinja
