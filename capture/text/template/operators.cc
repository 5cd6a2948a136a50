// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
#include "capture/text/template/operators.h"

#include <fmt/format.h>

#include <algorithm>

#include "capture/files/utf8.h"
#include "capture/text/template/methods.h"
#include "capture/text/template/unicode.h"
#include "capture/text/template/value_text.h"

namespace oscar::jinja {
namespace {

// Python's object_type_repr in messages of Jinja: "str object", "None".
std::string Describe(const Value& value) {
  return value.is_none() ? "None" : value.TypeName() + " object";
}

Value MissingAttribute(const Value& value, std::string_view name) {
  return Value::Undefined(fmt::format("'{}' has no attribute '{}'", Describe(value), name));
}

std::optional<Value> AttributeOf(Session& session, const Value& value, std::string_view name) {
  if (value.is_undefined()) throw TemplateFailure(value.undefined_reason());
  if (name.starts_with("__") && name.ends_with("__")) {
    return Value::Undefined(
        fmt::format("access to attribute '{}' of '{}' object is unsafe.", name, value.TypeName()));
  }
  if (value.is_object()) return value.object().Attribute(session, name);
  return BuiltinAttribute(value, name);
}

// Position `index` of a sequence of `size`, counted from the end if negative.
std::optional<size_t> Position(int64_t index, size_t size) {
  if (index < 0) index += static_cast<int64_t>(size);
  if (index < 0 || index >= static_cast<int64_t>(size)) return std::nullopt;
  return static_cast<size_t>(index);
}

std::optional<Value> ItemOf(Session& session, const Value& value, const Value& key) {
  if (value.is_undefined()) throw TemplateFailure(value.undefined_reason());
  if (value.is_dict()) {
    if (key.is_sequence() || key.is_dict()) {
      if (!key.is_tuple()) return std::nullopt;  // not hashable: a TypeError, which is caught
    }
    const Value* found = value.dict().Find(key);
    if (found == nullptr) return std::nullopt;
    return *found;
  }
  if (value.is_object()) return value.object().Item(session, key);
  if (!key.is_integral()) return std::nullopt;
  if (value.is_sequence()) {
    const auto at = Position(key.as_int(), value.items().size());
    if (!at) return std::nullopt;
    return value.items()[*at];
  }
  if (!value.is_string()) return std::nullopt;
  const std::string& text = value.as_string();
  session.Step(text.size() / Session::kBytesPerStep);
  const auto at = Position(key.as_int(), CodePointCount(text));
  if (!at) return std::nullopt;
  size_t byte = 0;
  for (size_t i = 0; i < *at; ++i) NextCodePoint(text, byte);
  const size_t begin = byte;
  NextCodePoint(text, byte);
  return session.String(text.substr(begin, byte - begin), value.is_markup());
}

struct SliceRange {
  int64_t start, step, count;
};

// CPython PySlice_AdjustIndices.
SliceRange Adjust(const Value& start, const Value& stop, const Value& step, int64_t size) {
  const auto index = [](const Value& value, int64_t fallback) {
    if (value.is_none()) return fallback;
    if (value.is_undefined()) throw TemplateFailure(value.undefined_reason());
    if (value.is_integral()) return value.as_int();
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
  // |by| may be anything up to 2^63: divide as unsigned.
  const uint64_t stride = by < 0 ? -static_cast<uint64_t>(by) : static_cast<uint64_t>(by);
  return {from, by, static_cast<int64_t>((static_cast<uint64_t>(span) - 1) / stride) + 1};
}

}  // namespace

int64_t IntegerOf(const Value& value, std::string_view what) {
  if (value.is_undefined()) throw TemplateFailure(value.undefined_reason());
  if (value.is_integral()) return value.as_int();
  throw TemplateFailure(
      fmt::format("{}: '{}' object cannot be interpreted as an integer", what, value.TypeName()));
}

Cursor Iterate(Session& session, const Value& value) {
  if (value.is_undefined()) return [](Value*) { return false; };
  if (value.is_sequence()) {
    return [&session, value, i = size_t{0}](Value* item) mutable {
      session.Step();
      if (i == value.items().size()) return false;
      *item = value.items()[i++];
      return true;
    };
  }
  if (value.is_dict()) {
    return [&session, value, i = size_t{0}](Value* item) mutable {
      session.Step();
      if (i == value.dict().items.size()) return false;
      *item = value.dict().items[i++].first;
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
    if (auto cursor = value.object().Iterate(session)) return *std::move(cursor);
  }
  throw TemplateFailure(fmt::format("'{}' object is not iterable", value.TypeName()));
}

bool IsIterable(Session& session, const Value& value) {
  if (value.is_undefined() || value.is_sequence() || value.is_dict() || value.is_string())
    return true;
  return value.is_object() && value.object().Iterate(session).has_value();
}

std::vector<Value> ToVector(Session& session, const Value& value) {
  if (value.is_sequence()) {
    session.Step(value.items().size());
    return value.items();
  }
  std::vector<Value> items;
  const Cursor cursor = Iterate(session, value);
  for (Value item; cursor(&item);) {
    session.Step();
    items.push_back(item);
  }
  return items;
}

std::optional<int64_t> Length(Session& session, const Value& value) {
  if (value.is_undefined()) return 0;
  if (value.is_string()) {
    session.Step(value.as_string().size() / Session::kBytesPerStep);
    return static_cast<int64_t>(CodePointCount(value.as_string()));
  }
  if (value.is_sequence()) return static_cast<int64_t>(value.items().size());
  if (value.is_dict()) return static_cast<int64_t>(value.dict().items.size());
  if (value.is_object()) return value.object().Length(session);
  return std::nullopt;
}

Value GetAttribute(Session& session, const Value& value, std::string_view name) {
  session.Step();
  if (auto attribute = AttributeOf(session, value, name)) return *std::move(attribute);
  if (value.is_dict()) {
    const Value* found = value.dict().Find(name);
    return found != nullptr ? *found : MissingAttribute(value, name);
  }
  if (value.is_object()) {
    if (auto item = value.object().Item(session, Value::String(std::string(name))))
      return *std::move(item);
  }
  return MissingAttribute(value, name);
}

Value GetItem(Session& session, const Value& value, const Value& key) {
  session.Step();
  if (auto item = ItemOf(session, value, key)) return *std::move(item);
  if (key.is_string()) {
    if (auto attribute = AttributeOf(session, value, key.as_string())) return *std::move(attribute);
    return MissingAttribute(value, key.as_string());
  }
  return Value::Undefined(fmt::format("{} has no element {}", Describe(value), Repr(session, key)));
}

Value Slice(Session& session, const Value& value, const Value& start, const Value& stop,
            const Value& step) {
  session.Step();
  if (value.is_undefined()) throw TemplateFailure(value.undefined_reason());
  if (value.is_sequence()) {
    const auto size = static_cast<int64_t>(value.items().size());
    const SliceRange range = Adjust(start, stop, step, size);
    session.Step(static_cast<uint64_t>(range.count));
    std::vector<Value> items;
    items.reserve(static_cast<size_t>(range.count));
    for (int64_t i = 0; i < range.count; ++i)
      items.push_back(value.items()[static_cast<size_t>(range.start + i * range.step)]);
    return value.is_list() ? Value::List(std::move(items)) : Value::Tuple(std::move(items));
  }
  if (value.is_string()) {
    session.ChargeText(value.as_string().size());
    const std::u32string text = DecodeUtf8(value.as_string());
    const SliceRange range = Adjust(start, stop, step, static_cast<int64_t>(text.size()));
    std::u32string out;
    for (int64_t i = 0; i < range.count; ++i)
      out += text[static_cast<size_t>(range.start + i * range.step)];
    return session.String(EncodeUtf8(out), value.is_markup());
  }
  if (value.is_dict()) throw TemplateFailure("unhashable type: 'slice'");
  if (value.is_object() && value.object().is_sequence()) {
    return Slice(session, Value::List(ToVector(session, value)), start, stop, step);
  }
  throw TemplateFailure(fmt::format("'{}' object is not subscriptable", value.TypeName()));
}

Value Call(Session& session, const Value& callee, Arguments& arguments) {
  session.Step();
  if (callee.is_undefined()) throw TemplateFailure(callee.undefined_reason());
  if (callee.is_object()) return callee.object().Call(session, arguments);
  throw TemplateFailure(fmt::format("'{}' object is not callable", callee.TypeName()));
}

}  // namespace oscar::jinja
