// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The variable `loop` of a for loop (Jinja2 runtime.py, LoopContext). Trap: `last` and `nextitem`
// read one item ahead, `length` reads all of a generator; nothing else does.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "capture/text/template/session.h"

namespace oscar::jinja {

class Loop : public Object {
 public:
  using Recurse = std::function<Value(const Value& iterable, int depth0)>;
  // `recurse` is empty for a loop that is not recursive. `length`: of the iterable, if it has one.
  Loop(Cursor cursor, std::optional<int64_t> length, int depth0, Recurse recurse)
      : cursor_(std::move(cursor)),
        length_(length),
        depth0_(depth0),
        recurse_(std::move(recurse)) {}

  bool Next(Value* item);

  std::string TypeName() const override { return "LoopContext"; }
  std::string Repr(Session&) const override;
  std::optional<Value> Attribute(Session& session, std::string_view name) override;
  bool callable() const override { return true; }
  Value Call(Session& session, Arguments& arguments) override;
  std::optional<int64_t> Length(Session& session) override;

 private:
  const Value* Peek();  // null: no next item

  Cursor cursor_;
  std::optional<int64_t> length_;
  int depth0_;
  Recurse recurse_;
  int64_t index0_ = -1;
  std::optional<Value> before_, current_, after_;
  bool exhausted_ = false;
  // loop.changed(...) compares with its last arguments; shared with the bound method.
  std::shared_ptr<std::optional<Value>> last_changed_ = std::make_shared<std::optional<Value>>();
};

}  // namespace oscar::jinja
