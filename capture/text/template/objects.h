// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The values of a template that are not plain data: functions (also methods and macros), generators
// (results of map and select), namespaces and the variable `loop`. Trap: as in Python, a generator
// can only be read once, has no length and is always true.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "capture/text/template/session.h"

namespace oscar::jinja {

// Arguments of a call.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

// By default, every operation fails as if Python's object did not support it.
class Object {
 public:
  virtual ~Object() = default;
  virtual std::string TypeName() const = 0;
  virtual std::optional<Value> Attribute(Session&, std::string_view) { return std::nullopt; }
  virtual std::optional<Cursor> Iterate() { return std::nullopt; }
  virtual int depth() const { return 1; }  // nesting of values
};

class Function : public Object {
 public:
  using Body = std::function<Value(Session&, const Arguments&)>;
  // `depth`: nesting depth of the values that it holds.
  explicit Function(Body body, int depth = 1) : body_(std::move(body)), depth_(depth) {}
  std::string TypeName() const override { return "function"; }
  std::optional<Value> Attribute(Session&, std::string_view name) override;  // or TemplateFailure
  Value Call(Session& session, const Arguments& arguments) { return body_(session, arguments); }
  int depth() const override { return depth_; }

 private:
  Body body_;
  int depth_;
};

class Generator : public Object {
 public:
  // `depth`: nesting depth of its source, because reading goes through all of it.
  Generator(Cursor next, int depth);
  std::string TypeName() const override { return "generator"; }
  std::optional<Cursor> Iterate() override;
  int depth() const override { return depth_; }

 private:
  std::shared_ptr<Cursor> next_;
  int depth_;
};

// The target of {% set ns.x = ... %}. A namespace may contain itself, and reference counting would
// then never free it, so the session clears it when the session ends.
class Namespace : public Object {
 public:
  std::string TypeName() const override { return "Namespace"; }
  std::optional<Value> Attribute(Session&, std::string_view name) override;

  Dict attributes;
};

// The variable `loop` of a for loop (Jinja2 runtime.py, LoopContext). Trap: `last` and `nextitem`
// read one item ahead, and `length`, `revindex` and `revindex0` read all items of a generator.
class Loop : public Object {
 public:
  // `length`: length of the iterable, if it has one.
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
