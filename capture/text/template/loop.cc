// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
#include "capture/text/template/loop.h"

#include <fmt/format.h>

#include "capture/text/template/compare.h"
#include "capture/text/template/objects.h"

namespace oscar::jinja {

bool Loop::Next(Value* item) {
  Value next;
  if (after_) {
    next = *std::move(after_);
    after_.reset();
  } else if (exhausted_ || !cursor_(&next)) {
    exhausted_ = true;
    return false;
  }
  ++index0_;
  before_ = std::move(current_);
  current_ = next;
  *item = std::move(next);
  return true;
}

const Value* Loop::Peek() {
  if (!after_ && !exhausted_) {
    Value next;
    if (cursor_(&next)) {
      after_ = std::move(next);
    } else {
      exhausted_ = true;
    }
  }
  return after_ ? &*after_ : nullptr;
}

std::optional<int64_t> Loop::Length(Session& session) {
  if (length_) return length_;
  std::vector<Value> rest;
  for (Value item; !exhausted_ && cursor_(&item);) {
    session.Step();
    rest.push_back(item);
  }
  length_ = static_cast<int64_t>(rest.size()) + index0_ + 1 + (after_ ? 1 : 0);
  exhausted_ = false;
  cursor_ = [rest = std::move(rest), i = size_t{0}](Value* item) mutable {
    if (i == rest.size()) return false;
    *item = rest[i++];
    return true;
  };
  return length_;
}

std::string Loop::Repr(Session& session) const {
  return fmt::format("<LoopContext {}/{}>", index0_ + 1, *const_cast<Loop*>(this)->Length(session));
}

std::optional<Value> Loop::Attribute(Session& session, std::string_view name) {
  if (name == "index0") return Value::Int(index0_);
  if (name == "index") return Value::Int(index0_ + 1);
  if (name == "first") return Value::Bool(index0_ == 0);
  if (name == "last") return Value::Bool(Peek() == nullptr);
  if (name == "length") return Value::Int(*Length(session));
  if (name == "revindex") return Value::Int(*Length(session) - index0_);
  if (name == "revindex0") return Value::Int(*Length(session) - index0_ - 1);
  if (name == "depth") return Value::Int(depth0_ + 1);
  if (name == "depth0") return Value::Int(depth0_);
  if (name == "previtem")
    return before_ && index0_ > 0 ? *before_ : Value::Undefined("there is no previous item");
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
  if (name == "changed") {
    return Value::Of(std::make_shared<Function>(
        [last = last_changed_](Session& inner, const Arguments& arguments) {
          const Value now = Value::Tuple(arguments.positional);
          if (*last && Equal(inner, **last, now)) return Value::Bool(false);
          *last = now;
          return Value::Bool(true);
        }));
  }
  return std::nullopt;
}

Value Loop::Call(Session&, Arguments& arguments) {
  if (!recurse_) {
    throw TemplateFailure("The loop must have the 'recursive' marker to be called recursively.");
  }
  const auto bound = arguments.Bind("loop", {"iterable"}, 1);
  return recurse_(*bound[0], depth0_ + 1);
}

}  // namespace oscar::jinja
