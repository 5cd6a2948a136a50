// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The variable `loop` of a for loop (Jinja2 runtime.py, LoopContext). Trap: `last` and `nextitem`
// read one item ahead, `length` reads all of a generator; nothing else does.
#pragma once

#include <optional>

#include "capture/text/template/objects.h"

namespace oscar::jinja {

class Loop : public Object {
 public:
  // `length`: of the iterable, if it has one.
  Loop(Cursor cursor, std::optional<int64_t> length)
      : cursor_(std::move(cursor)), length_(length) {}

  bool Next(Value* item);

  std::string TypeName() const override { return "LoopContext"; }
  std::optional<Value> Attribute(Session& session, std::string_view name) override;

 private:
  const Value* Peek();  // null: no next item
  int64_t Length(Session& session);

  Cursor cursor_;
  std::optional<int64_t> length_;
  int64_t index0_ = -1;
  std::optional<Value> before_, current_, after_;
  bool exhausted_ = false;
};

}  // namespace oscar::jinja
