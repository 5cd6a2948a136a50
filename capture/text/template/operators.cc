// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
#include "capture/text/template/operators.h"

#include <fmt/format.h>

#include <algorithm>

#include "capture/files/utf8.h"
#include "capture/text/template/functions.h"
#include "capture/text/template/objects.h"
#include "capture/text/template/unicode.h"
#include "capture/text/template/value_text.h"

namespace oscar::jinja {
namespace {

// Python's object_type_repr in Jinja's messages: "str object", "None".
std::string Describe(const Value& value) {
  return value.is_none() ? "None" : value.TypeName() + " object";
}

Value Missing(const Value& value, std::string_view name) {
  return Value::Undefined(fmt::format("'{}' has no attribute '{}'", Describe(value), name));
}

std::optional<Value> AttributeOf(Session& session, const Value& value, std::string_view name) {
  if (name.starts_with("__") && name.ends_with("__")) {
    return Value::Undefined(
        fmt::format("access to attribute '{}' of '{}' object is unsafe.", name, value.TypeName()));
  }
  return value.is_object() ? value.object().Attribute(session, name) : FindMethod(value, name);
}

// Whether Python can subscript the value; false for views of a dict.
bool HasPositions(const Value& value) {
  return value.is_sequence() || (value.is_items() && value.kind() == SequenceKind::kRange);
}

std::optional<Value> ItemOf(Session& session, const Value& value, const Value& key) {
  if (value.is_dict()) {
    if ((key.is_items() && !key.is_tuple()) || key.is_dict()) return std::nullopt;
    ChargeKey(session, key);
    const Value* found = value.dict().Find(key);
    if (found == nullptr) return std::nullopt;
    return *found;
  }
  if (!key.is_integral() || !(HasPositions(value) || value.is_string())) return std::nullopt;
  const int64_t size = *Length(session, value);
  const int64_t index = key.as_int() < 0 ? key.as_int() + size : key.as_int();
  if (index < 0 || index >= size) return std::nullopt;
  if (!value.is_string()) return value.items()[static_cast<size_t>(index)];
  const std::string& text = value.as_string();
  const size_t begin = ByteOffset(text, static_cast<size_t>(index));
  const size_t end = begin + ByteOffset(std::string_view(text).substr(begin), 1);
  return session.String(text.substr(begin, end - begin), value.is_markup());
}

struct SliceRange {
  int64_t start, step, count;
};

// Equals PySlice_AdjustIndices in CPython.
SliceRange Adjust(const Value& start, const Value& stop, const Value& step, int64_t size) {
  const auto index = [](const Value& value, int64_t fallback) {
    if (value.is_none()) return fallback;
    if (value.Known().is_integral()) return value.as_int();
    throw TemplateFailure("slice indices must be integers or None or have an __index__ method");
  };
  const int64_t by = index(step, 1);
  if (by == 0) throw TemplateFailure("slice step cannot be zero");
  const auto clamp = [&](int64_t at) {
    if (at < 0) at = std::max(at, -size - 1) + size;
    return by < 0 ? std::clamp<int64_t>(at, -1, size - 1) : std::clamp<int64_t>(at, 0, size);
  };
  const int64_t from = start.is_none() ? (by < 0 ? size - 1 : 0) : clamp(index(start, 0));
  const int64_t to = stop.is_none() ? (by < 0 ? -1 : size) : clamp(index(stop, 0));
  const int64_t span = by < 0 ? from - to : to - from;
  if (span <= 0) return {from, by, 0};
  // |by| may be 2^63, so the division is unsigned.
  const uint64_t stride = by < 0 ? -static_cast<uint64_t>(by) : static_cast<uint64_t>(by);
  return {from, by, static_cast<int64_t>((static_cast<uint64_t>(span) - 1) / stride) + 1};
}

}  // namespace

const std::string& TextOf(const Value& value, std::string_view what) {
  if (value.Known().is_string()) return value.as_string();
  throw TemplateFailure(fmt::format("{}: argument must be str, not {}", what, value.TypeName()));
}

int64_t IntegerOf(const Value& value, std::string_view what) {
  if (value.Known().is_integral()) return value.as_int();
  throw TemplateFailure(
      fmt::format("{}: '{}' object cannot be interpreted as an integer", what, value.TypeName()));
}

bool IsIterable(const Value& value) {
  return value.is_undefined() || value.is_items() || value.is_dict() || value.is_string() ||
         (value.is_object() && value.object().Iterate().has_value());
}

Cursor Iterate(Session& session, const Value& value) {
  if (value.is_undefined()) return [](Value*) { return false; };
  if (value.is_items() || value.is_dict()) {
    return [&session, value, i = size_t{0}](Value* item) mutable {
      session.Step();
      if (i == (value.is_dict() ? value.dict().items.size() : value.items().size())) return false;
      *item = value.is_dict() ? value.dict().items[i].first : value.items()[i];
      ++i;
      return true;
    };
  }
  if (value.is_string()) {
    return [&session, value, i = size_t{0}](Value* item) mutable {
      const std::string& text = value.as_string();
      if (i == text.size()) return false;
      const size_t begin = i;
      NextCodePoint(text, i);
      *item = session.String(text.substr(begin, i - begin));
      return true;
    };
  }
  if (value.is_object()) {
    if (auto cursor = value.object().Iterate()) return *std::move(cursor);
  }
  throw TemplateFailure(fmt::format("'{}' object is not iterable", value.TypeName()));
}

std::vector<Value> ToVector(Session& session, const Value& value) {
  std::vector<Value> items;
  const Cursor cursor = Iterate(session, value);
  for (Value item; cursor(&item);) {
    session.ChargeItems(1);
    items.push_back(item);
  }
  return items;
}

std::optional<int64_t> Length(Session& session, const Value& value) {
  if (value.is_undefined()) return 0;
  if (value.is_items()) return static_cast<int64_t>(value.items().size());
  if (value.is_dict()) return static_cast<int64_t>(value.dict().items.size());
  if (!value.is_string()) return std::nullopt;
  session.ChargeText(value.as_string().size());
  return static_cast<int64_t>(CodePointCount(value.as_string()));
}

Value GetAttribute(Session& session, const Value& value, std::string_view name) {
  session.Step();
  if (auto attribute = AttributeOf(session, value.Known(), name)) return *std::move(attribute);
  const Value* found = value.is_dict() ? value.dict().Find(name) : nullptr;
  return found != nullptr ? *found : Missing(value, name);
}

Value GetItem(Session& session, const Value& value, const Value& key) {
  session.Step();
  if (auto item = ItemOf(session, value.Known(), key)) return *std::move(item);
  if (key.is_string()) {
    session.ChargeMemory(key.as_string().size());  // the undefined value stores it in its reason
    auto attribute = AttributeOf(session, value, key.as_string());
    return attribute ? *std::move(attribute) : Missing(value, key.as_string());
  }
  return Value::Undefined(fmt::format("{} has no element {}", Describe(value), Repr(session, key)));
}

Value Slice(Session& session, const Value& value, const Value& start, const Value& stop,
            const Value& step) {
  session.Step();
  if (value.Known().is_string()) {
    session.ChargeWide(value.as_string().size());
    const std::u32string text = DecodeUtf8(value.as_string());
    const SliceRange range = Adjust(start, stop, step, static_cast<int64_t>(text.size()));
    std::u32string out;
    for (int64_t i = 0; i < range.count; ++i)
      out += text[static_cast<size_t>(range.start + i * range.step)];
    return session.String(EncodeUtf8(out), value.is_markup());
  }
  if (!HasPositions(value)) {
    throw TemplateFailure(
        fmt::format("'{}' object is not subscriptable by a slice", value.TypeName()));
  }
  const SliceRange range = Adjust(start, stop, step, static_cast<int64_t>(value.items().size()));
  session.ChargeItems(static_cast<size_t>(range.count));
  std::vector<Value> items;
  for (int64_t i = 0; i < range.count; ++i)
    items.push_back(value.items()[static_cast<size_t>(range.start + i * range.step)]);
  return Value::List(std::move(items), value.kind());
}

}  // namespace oscar::jinja
