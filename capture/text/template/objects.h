// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The values of a template that are not plain data: functions (methods and macros too), generators
// (what map and select give), namespaces and the variable `loop`. Trap: a generator is used up by
// reading it once, has no length and is always true, as in Python.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "capture/text/template/session.h"

namespace oscar::jinja {

// What a call passes.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

// The default of each operation is that Python's object has it not.
class Object {
 public:
  virtual ~Object() = default;
  virtual std::string TypeName() const = 0;
  virtual std::optional<Value> Attribute(Session&, std::string_view) { return std::nullopt; }
  virtual std::optional<Cursor> Iterate() { return std::nullopt; }
  virtual int depth() const { return 1; }  // of nesting of values
};

class Function : public Object {
 public:
  using Body = std::function<Value(Session&, const Arguments&)>;
  // `depth`: of the values it holds.
  explicit Function(Body body, int depth = 1) : body_(std::move(body)), depth_(depth) {}
  std::string TypeName() const override { return "function"; }
  std::optional<Value> Attribute(Session&, std::string_view name) override;  // TemplateFailure
  Value Call(Session& session, const Arguments& arguments) { return body_(session, arguments); }
  int depth() const override { return depth_; }

 private:
  Body body_;
  int depth_;
};

class Generator : public Object {
 public:
  // `depth`: of what it reads from, since reading goes through all of it.
  Generator(Cursor next, int depth);
  std::string TypeName() const override { return "generator"; }
  std::optional<Cursor> Iterate() override;
  int depth() const override { return depth_; }

 private:
  std::shared_ptr<Cursor> next_;
  int depth_;
};

// {% set ns.x = ... %} assigns here. It may hold itself, so the session clears it at its end.
class Namespace : public Object {
 public:
  std::string TypeName() const override { return "Namespace"; }
  std::optional<Value> Attribute(Session&, std::string_view name) override;

  Dict attributes;
};

// The variable of a for loop (Jinja2 runtime.py, LoopContext). Trap: `last` and `nextitem` read one
// item ahead, `length` reads all of a generator; nothing else does.
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
