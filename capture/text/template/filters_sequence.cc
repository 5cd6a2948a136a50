// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Filters over sequences that neither test nor order their items. Trap: several give a generator,
// which has no length and is read once, as in Jinja.
#include <fmt/format.h>

#include <algorithm>

#include "capture/files/utf8.h"
#include "capture/text/template/objects.h"
#include "capture/text/template/operators.h"
#include "capture/text/template/tables.h"
#include "capture/text/template/unicode.h"
#include "capture/text/template/value_text.h"

namespace oscar::jinja {
namespace {

Value GeneratorOf(std::vector<Value> items) {
  int depth = 0;
  for (const Value& item : items) depth = std::max(depth, item.depth());
  return Value::Of(std::make_shared<Generator>(
      [items = std::move(items), i = size_t{0}](Value* item) mutable {
        if (i == items.size()) return false;
        *item = items[i++];
        return true;
      },
      depth));
}

Value LengthFilter(Session& session, const Value& value, const Arguments& arguments) {
  arguments.Bind("length", {}, 0);
  const std::optional<int64_t> length = Length(session, value);
  if (length) return Value::Int(*length);
  throw TemplateFailure(fmt::format("object of type '{}' has no len()", value.TypeName()));
}

Value ListFilter(Session& session, const Value& value, const Arguments& arguments) {
  arguments.Bind("list", {}, 0);
  return Value::List(ToVector(session, value));
}

Value FirstFilter(Session& session, const Value& value, const Arguments& arguments) {
  arguments.Bind("first", {}, 0);
  Value item;
  if (Iterate(session, value)(&item)) return item;
  return Value::Undefined("No first item, sequence was empty.");
}

bool IsReversible(const Value& value) {
  return !value.is_object() || value.object().is_sequence() || value.As<DictView>() != nullptr;
}

Value LastFilter(Session& session, const Value& value, const Arguments& arguments) {
  arguments.Bind("last", {}, 0);
  if (!IsReversible(value) || value.is_none() || value.is_number())
    throw TemplateFailure(fmt::format("'{}' object is not reversible", value.TypeName()));
  const std::vector<Value> items = ToVector(session, value);
  return items.empty() ? Value::Undefined("No last item, sequence was empty.") : items.back();
}

Value ReverseFilter(Session& session, const Value& value, const Arguments& arguments) {
  arguments.Bind("reverse", {}, 0);
  if (value.is_string()) {
    std::u32string text = DecodeUtf8(value.as_string());
    std::reverse(text.begin(), text.end());
    return session.String(EncodeUtf8(text), value.is_markup());
  }
  std::vector<Value> items = ToVector(session, value);
  std::reverse(items.begin(), items.end());
  return IsReversible(value) ? GeneratorOf(std::move(items)) : Value::List(std::move(items));
}

Value JoinFilter(Session& session, const Value& value, const Arguments& arguments) {
  const auto bound = arguments.Bind("join", {"d", "attribute"}, 0);
  const std::string separator = bound[0] ? Str(session, *bound[0]) : std::string();
  std::optional<AttributePath> path;
  if (bound[1] && !bound[1]->is_none()) path.emplace(*bound[1]);
  std::string out;
  bool first = true;
  const Cursor cursor = Iterate(session, value);
  for (Value item; cursor(&item); first = false) {
    if (!first) out += separator;
    const std::string text = Str(session, path ? path->Read(session, item) : item);
    session.ChargeText(text.size() + separator.size());
    out += text;
    if (out.size() > Session::kMaxTextBytes) session.ChargeText(out.size());
  }
  return session.String(std::move(out), bound[0] && bound[0]->is_markup());
}

Value DefaultFilter(Session& session, const Value& value, const Arguments& arguments) {
  const auto bound = arguments.Bind("default", {"default_value", "boolean"}, 0);
  const bool falsy = bound[1] && bound[1]->Truthy(session) && !value.Truthy(session);
  if (value.is_undefined() || falsy) return bound[0].value_or(Value::String(""));
  return value;
}

Value ItemsFilter(Session&, const Value& value, const Arguments& arguments) {
  arguments.Bind("items", {}, 0);
  if (value.is_undefined()) return GeneratorOf({});
  if (!value.is_dict()) throw TemplateFailure("Can only get item pairs from a mapping.");
  std::vector<Value> pairs;
  for (const auto& [key, item] : value.dict().items) pairs.push_back(Value::Tuple({key, item}));
  return GeneratorOf(std::move(pairs));
}

Value BatchFilter(Session& session, const Value& value, const Arguments& arguments) {
  const auto bound = arguments.Bind("batch", {"linecount", "fill_with"}, 1);
  const int64_t size = IntegerOf(*bound[0], "batch");
  std::vector<Value> batches, batch;
  for (const Value& item : ToVector(session, value)) {
    if (static_cast<int64_t>(batch.size()) == size) {
      batches.push_back(Value::List(std::exchange(batch, {})));
    }
    batch.push_back(item);
  }
  if (!batch.empty()) {
    if (bound[1] && !bound[1]->is_none()) {
      while (static_cast<int64_t>(batch.size()) < size) {
        session.Step();
        batch.push_back(*bound[1]);
      }
    }
    batches.push_back(Value::List(std::move(batch)));
  }
  return GeneratorOf(std::move(batches));
}

Value SliceFilter(Session& session, const Value& value, const Arguments& arguments) {
  const auto bound = arguments.Bind("slice", {"slices", "fill_with"}, 1);
  const int64_t slices = IntegerOf(*bound[0], "slice");
  if (slices == 0) throw TemplateFailure("integer division or modulo by zero");
  const std::vector<Value> items = ToVector(session, value);
  const auto length = static_cast<int64_t>(items.size());
  std::vector<Value> out;
  int64_t begin = 0;
  for (int64_t i = 0; i < slices; ++i) {
    session.Step();
    const bool longer = i < length % slices;
    const int64_t end = begin + length / slices + (longer ? 1 : 0);
    std::vector<Value> part(items.begin() + begin, items.begin() + end);
    if (bound[1] && !bound[1]->is_none() && !longer) part.push_back(*bound[1]);
    out.push_back(Value::List(std::move(part)));
    begin = end;
  }
  return GeneratorOf(std::move(out));
}

Value SumFilter(Session& session, const Value& value, const Arguments& arguments) {
  const auto bound = arguments.Bind("sum", {"attribute", "start"}, 0);
  std::optional<AttributePath> path;
  if (bound[0] && !bound[0]->is_none()) path.emplace(*bound[0]);
  Value total = bound[1].value_or(Value::Int(0));
  if (total.is_string())
    throw TemplateFailure("sum() can't sum strings [use ''.join(seq) instead]");
  const Cursor cursor = Iterate(session, value);
  for (Value item; cursor(&item);) {
    total = Binary(session, BinaryOperator::kAdd, total, path ? path->Read(session, item) : item);
  }
  return total;
}

}  // namespace

std::span<const FilterRow> SequenceFilters() {
  static constexpr FilterRow kFilters[] = {
      {"length", LengthFilter}, {"count", LengthFilter},    {"list", ListFilter},
      {"first", FirstFilter},   {"last", LastFilter},       {"reverse", ReverseFilter},
      {"join", JoinFilter},     {"default", DefaultFilter}, {"d", DefaultFilter},
      {"items", ItemsFilter},   {"batch", BatchFilter},     {"slice", SliceFilter},
      {"sum", SumFilter},
  };
  return kFilters;
}

}  // namespace oscar::jinja
