// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A template, compiled to functions. The parser composes them, and ChatTemplate calls the outermost
// one. Trap: scopes follow Jinja, not Python. A name that a loop, macro or block sets is gone when
// it ends (templates use a namespace to keep values), but `if` has no scope of its own.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "capture/text/template/objects.h"
#include "capture/text/template/session.h"

namespace oscar::jinja {

// Names in one block and, through `outer`, in the blocks around it.
struct Scope {
  std::unordered_map<std::string, Value> names;
  std::shared_ptr<Scope> outer;  // null: the caller's variables
};
using ScopePtr = std::shared_ptr<Scope>;

// The environment of an expression or statement.
struct Env {
  Session& session;
  ScopePtr scope;

  Env Inner() const { return {session, std::make_shared<Scope>(Scope{{}, scope})}; }
  Value Lookup(const std::string& name) const;
};

// A compiled expression: its parts, and a function that computes its value. Copies share one
// object.
class Expression {
 public:
  using Parts = std::vector<Expression>;
  using Run = std::function<Value(const Parts& parts, const Env& env)>;

  Expression() = default;  // no expression
  Expression(int line, Parts parts, Run run);
  explicit operator bool() const { return node_ != nullptr; }
  int depth() const { return node_ == nullptr ? 0 : node_->depth; }  // nested evaluations

  Value operator()(const Env& env) const;

 private:
  struct Node {
    int line;
    Parts parts;
    Run run;
    int depth = 1;
  };
  std::shared_ptr<const Node> node_;
};

enum class Flow { kNormal, kBreak, kContinue };

struct Statement {
  int line;
  std::function<Flow(const Env& env, std::string& out)> run;
};
using Block = std::shared_ptr<const std::vector<Statement>>;

Flow Run(const Block& block, const Env& env, std::string& out);
std::string RunToText(const Block& block, const Env& env);

// The target of an assignment: a name, an attribute of a namespace, or several targets.
struct Target {
  std::string name, attribute;
  std::vector<Target> parts;

  void Assign(const Value& value, const Env& env) const;
};

struct For {
  Target target;
  Expression iterable, filter;  // filter: condition for the items to keep, or none
  Block body, otherwise;

  void Run(const Env& env, std::string& out) const;
};

struct Macro {
  struct Parameter {
    std::string name;
    Expression fallback;  // may be empty
  };
  std::string name;
  std::vector<Parameter> parameters;
  Block body;
  bool reads_caller = false;

  Value Call(const Env& env, const Arguments& arguments) const;
};
// Returns the macro as a callable value, which holds the scope of `env`.
Value FunctionOf(const std::shared_ptr<const Macro>& macro, const Env& env);

// Throws TemplateFailure starting with "line N: " if the source is not a template, or if it uses a
// feature that is not supported, which the message names.
Block ParseTemplate(std::string_view source);

}  // namespace oscar::jinja
