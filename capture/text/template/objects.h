// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The objects of a template that are not plain data: range, views of a dict, generators (what map
// and select give), namespace, and functions of the program. Trap: a generator is used up by
// reading it once, has no length and is always true, as in Python.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "capture/text/template/session.h"

namespace oscar::jinja {

class Range : public Object {
 public:
  static constexpr int64_t kMaxLength = 100'000;     // the sandbox of Jinja2 has the same
  Range(int64_t start, int64_t stop, int64_t step);  // TemplateFailure: too long, or step 0

  std::string TypeName() const override { return "range"; }
  std::string Repr(Session&) const override;
  std::optional<Cursor> Iterate(Session& session) override;
  std::optional<int64_t> Length(Session&) override { return length_; }
  std::optional<Value> Attribute(Session& session, std::string_view name) override;
  std::optional<Value> Item(Session&, const Value& index) override;
  bool is_sequence() const override { return true; }

 private:
  int64_t start_, stop_, step_, length_;
};

class DictView : public Object {
 public:
  enum class Part { kItems, kKeys, kValues };
  DictView(Value dict, Part part) : dict_(std::move(dict)), part_(part) {}

  std::string TypeName() const override;
  std::string Repr(Session& session) const override;
  std::optional<Cursor> Iterate(Session& session) override;
  std::optional<int64_t> Length(Session&) override;
  int depth() const override { return dict_.depth() + 1; }

 private:
  Value At(size_t i) const;
  Value dict_;
  Part part_;
};

class Generator : public Object {
 public:
  // `depth`: of what it reads from, since reading goes through all of it.
  Generator(Cursor next, int depth);

  std::string TypeName() const override { return "generator"; }
  std::optional<Cursor> Iterate(Session&) override;
  int depth() const override { return depth_; }

 private:
  std::shared_ptr<Cursor> next_;
  int depth_;
};

// {% set ns.x = ... %} assigns here. Sessions clear them at the end, since they can hold
// themselves.
class Namespace : public Object {
 public:
  std::string TypeName() const override { return "Namespace"; }
  std::string Repr(Session& session) const override;
  std::optional<Value> Attribute(Session&, std::string_view name) override;

  Dict attributes;
};

class Function : public Object {
 public:
  using Body = std::function<Value(Session&, const Arguments&)>;
  explicit Function(Body body) : body_(std::move(body)) {}
  std::string TypeName() const override { return "function"; }
  bool callable() const override { return true; }
  Value Call(Session& session, Arguments& arguments) override { return body_(session, arguments); }

 private:
  Body body_;
};

// cycler("odd", "even") and joiner(", ") of Jinja.
class Cycler : public Object {
 public:
  explicit Cycler(std::vector<Value> items) : items_(std::move(items)) {}
  std::string TypeName() const override { return "Cycler"; }
  std::optional<Value> Attribute(Session&, std::string_view name) override;

 private:
  std::vector<Value> items_;
  std::shared_ptr<size_t> position_ = std::make_shared<size_t>(0);
};

class Joiner : public Object {
 public:
  explicit Joiner(Value separator) : separator_(std::move(separator)) {}
  std::string TypeName() const override { return "Joiner"; }
  bool callable() const override { return true; }
  Value Call(Session&, Arguments&) override;

 private:
  Value separator_;
  bool used_ = false;
};

}  // namespace oscar::jinja
