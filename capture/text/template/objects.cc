// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
#include "capture/text/template/objects.h"

#include <fmt/format.h>

namespace oscar::jinja {

std::optional<Value> Function::Attribute(Session&, std::string_view name) {
  throw TemplateFailure(NotSupported("function attribute", name));
}

Generator::Generator(Cursor next, int depth)
    : next_(std::make_shared<Cursor>(std::move(next))), depth_(depth + 1) {
  if (depth_ > Value::kMaxDepth) {
    throw TemplateFailure(
        fmt::format("chained filters are nested deeper than {} levels", Value::kMaxDepth));
  }
}

std::optional<Cursor> Generator::Iterate() {
  return [next = next_](Value* out) { return (*next)(out); };
}

std::optional<Value> Namespace::Attribute(Session&, std::string_view name) {
  const Value* found = attributes.Find(name);
  return found == nullptr ? std::nullopt : std::optional(*found);
}

bool Loop::Next(Value* item) {
  if (Peek() == nullptr) return false;
  ++index0_;
  before_ = std::move(current_);
  current_ = *item = *std::move(after_);
  after_.reset();
  return true;
}

const Value* Loop::Peek() {
  Value next;
  if (!after_ && !exhausted_) {
    exhausted_ = !cursor_(&next);
    if (!exhausted_) after_ = std::move(next);
  }
  return after_ ? &*after_ : nullptr;
}

int64_t Loop::Length(Session& session) {
  if (!length_) {
    std::vector<Value> rest;
    for (Value item; !exhausted_ && cursor_(&item);) {
      session.ChargeItems(1);
      rest.push_back(item);
    }
    length_ = static_cast<int64_t>(rest.size()) + index0_ + 1 + (after_ ? 1 : 0);
    cursor_ = [rest = std::move(rest), i = size_t{0}](Value* item) mutable {
      if (i == rest.size()) return false;
      *item = rest[i++];
      return true;
    };
  }
  return *length_;
}

std::optional<Value> Loop::Attribute(Session& session, std::string_view name) {
  if (name == "index0") return Value::Int(index0_);
  if (name == "index") return Value::Int(index0_ + 1);
  if (name == "first") return Value::Bool(index0_ == 0);
  if (name == "last") return Value::Bool(Peek() == nullptr);
  if (name == "length") return Value::Int(Length(session));
  if (name == "revindex") return Value::Int(Length(session) - index0_);
  if (name == "revindex0") return Value::Int(Length(session) - index0_ - 1);
  if (name == "depth") return Value::Int(1);  // recursion depth
  if (name == "depth0") return Value::Int(0);
  if (name == "previtem")
    return index0_ > 0 ? *before_ : Value::Undefined("there is no previous item");
  if (name == "nextitem") {
    const Value* next = Peek();
    return next != nullptr ? *next : Value::Undefined("there is no next item");
  }
  if (name == "cycle") {
    return Value::Of(
        std::make_shared<Function>([index = index0_](Session&, const Arguments& arguments) {
          const std::vector<Value>& items = arguments.positional;
          if (items.empty()) throw TemplateFailure("no items for cycling given");
          return items[static_cast<size_t>(index) % items.size()];
        }));
  }
  if (name == "changed") throw TemplateFailure(NotSupported("loop attribute", name));
  return std::nullopt;
}

}  // namespace oscar::jinja
