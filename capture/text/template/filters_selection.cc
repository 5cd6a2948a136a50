// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Filters that call other filters, tests and attributes: map, select, selectattr, and attr. Trap:
// they are lazy, so an error of an item shows when that item is read.
#include <fmt/format.h>

#include <algorithm>

#include "capture/text/template/objects.h"
#include "capture/text/template/operators.h"
#include "capture/text/template/string_ops.h"
#include "capture/text/template/tables.h"

namespace oscar::jinja {
namespace {

Value LazyOver(Session& session, const Value& value, std::function<bool(Value*)> transform) {
  if (!value.Truthy(session)) {
    return Value::Of(std::make_shared<Generator>([](Value*) { return false; }, 0));
  }
  // The iteration begins with the first item that is read.
  return Value::Of(std::make_shared<Generator>(
      [&session, value, transform = std::move(transform), cursor = Cursor()](Value* item) mutable {
        const Session::Level level(session);
        if (!cursor) cursor = Iterate(session, value);
        while (cursor(item)) {
          session.Step();
          if (transform(item)) return true;
        }
        return false;
      },
      value.depth()));
}

Value MapFilter(Session& session, const Value& value, const Arguments& arguments) {
  if (arguments.positional.empty()) {
    const auto bound = arguments.Bind("map", {"attribute", "default"}, 1);
    std::optional<Value> fallback;
    if (bound[1] && !bound[1]->is_none()) fallback = bound[1];
    return LazyOver(session, value,
                    [&session, path = AttributePath(*bound[0]), fallback](Value* item) {
                      *item = path.Read(session, *item, fallback);
                      return true;
                    });
  }
  const std::string name = StringArgument(arguments.positional[0], "map");
  Arguments rest = arguments;
  rest.positional.erase(rest.positional.begin());
  return LazyOver(session, value, [&session, name, rest](Value* item) {
    *item = CallFilter(session, name, *item, rest);
    return true;
  });
}

template <bool kKeep, bool kByAttribute>
Value Select(Session& session, const Value& value, const Arguments& arguments) {
  Arguments rest = arguments;
  std::optional<AttributePath> path;
  if (kByAttribute) {
    if (rest.positional.empty()) throw TemplateFailure("Missing parameter for attribute name");
    path.emplace(rest.positional[0]);
    rest.positional.erase(rest.positional.begin());
  }
  std::optional<std::string> test;
  if (!rest.positional.empty()) {
    test = StringArgument(rest.positional[0], "select");
    rest.positional.erase(rest.positional.begin());
  }
  return LazyOver(session, value, [&session, path, test, rest](Value* item) {
    const Value read = path ? path->Read(session, *item) : *item;
    return (test ? CallTest(session, *test, read, rest) : read.Truthy(session)) == kKeep;
  });
}

// Only an attribute, never an item.
Value AttrFilter(Session& session, const Value& value, const Arguments& arguments) {
  const auto bound = arguments.Bind("attr", {"name"}, 1);
  const std::string& name = StringArgument(*bound[0], "attr");
  if (value.is_dict() && value.dict().Find(name) != nullptr) {
    Dict without;
    return GetAttribute(session, Value::FromDict(std::move(without)), name);
  }
  return GetAttribute(session, value, name);
}

}  // namespace

AttributePath::AttributePath(const Value& attribute) {
  if (!attribute.is_string()) {
    parts_.push_back(attribute);
    return;
  }
  for (const std::string_view part : SplitAt(attribute.as_string(), ".", -1, false)) {
    const bool digits =
        !part.empty() && part.size() < 18 && part.find_first_not_of("0123456789") == part.npos;
    parts_.push_back(digits ? Value::Int(std::stoll(std::string(part)))
                            : Value::String(std::string(part)));
  }
}

Value AttributePath::Read(Session& session, Value item,
                          const std::optional<Value>& fallback) const {
  for (const Value& part : parts_) {
    item = GetItem(session, item, part);
    if (fallback && item.is_undefined()) item = *fallback;
  }
  return item;
}

std::span<const FilterRow> SelectionFilters() {
  static constexpr FilterRow kFilters[] = {
      {"map", MapFilter},
      {"select", Select<true, false>},
      {"reject", Select<false, false>},
      {"selectattr", Select<true, true>},
      {"rejectattr", Select<false, true>},
      {"attr", AttrFilter},
  };
  return kFilters;
}

}  // namespace oscar::jinja
