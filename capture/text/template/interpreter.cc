// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Statements; expressions are in interpreter_expression.cc, macros in macro.cc.
#include "capture/text/template/interpreter.h"

#include <fmt/format.h>

#include <utility>

#include "capture/text/template/loop.h"
#include "capture/text/template/macro.h"
#include "capture/text/template/operators.h"
#include "capture/text/template/tables.h"
#include "capture/text/template/value_text.h"

namespace oscar::jinja {

Interpreter::~Interpreter() {
  for (const ScopePtr& scope : scopes_with_macros_) scope->names.clear();
  for (const auto& space : namespaces_) space->attributes = {};
}

void Interpreter::Define(std::string name, Value value) {
  root_->names.insert_or_assign(std::move(name), std::move(value));
}

std::string Interpreter::Run() {
  // What the template sets hides the caller's variables, but is not one of them.
  return RunBody(body_, Inner(root_));
}

ScopePtr Interpreter::Inner(const ScopePtr& scope) const {
  auto inner = std::make_shared<Scope>();
  inner->outer = scope;
  return inner;
}

std::shared_ptr<Namespace> Interpreter::MakeNamespace() {
  session_.Step(32);  // kept until the end
  namespaces_.push_back(std::make_shared<Namespace>());
  return namespaces_.back();
}

std::string Interpreter::RunBody(const Body& body, const ScopePtr& scope) {
  const Session::Level level(session_);
  std::string out;
  Execute(body, scope, out);
  return out;
}

Interpreter::Flow Interpreter::Execute(const Body& body, const ScopePtr& scope, std::string& out) {
  for (const auto& statement : body) {
    const Flow flow = ExecuteOne(*statement, scope, out);
    if (flow != Flow::kNormal) return flow;
  }
  return Flow::kNormal;
}

void Interpreter::Append(std::string_view text, std::string& out) {
  session_.ChargeText(out.size() + text.size() > Session::kMaxTextBytes ? out.size() + text.size()
                                                                        : text.size());
  out += text;
}

Interpreter::Flow Interpreter::ExecuteOne(const Stmt& statement, const ScopePtr& scope,
                                          std::string& out) {
  session_.line = statement.line;
  session_.Step();
  switch (statement.kind) {
    case StmtKind::kData:
      Append(statement.text, out);
      return Flow::kNormal;
    case StmtKind::kPrint:
      for (const ExprPtr& expr : statement.expressions)
        Append(Str(session_, Evaluate(*expr, scope)), out);
      return Flow::kNormal;
    case StmtKind::kIf:
      return ExecuteIf(statement, scope, out);
    case StmtKind::kFor:
      ExecuteFor(statement, scope, Evaluate(*statement.expressions[0], scope), 0, out);
      return Flow::kNormal;
    case StmtKind::kSet:
      Assign(*statement.target, Evaluate(*statement.expressions[0], scope), scope);
      return Flow::kNormal;
    case StmtKind::kSetBlock: {
      Value text = session_.String(RunBody(statement.body, Inner(scope)));
      text = ApplyFilters(statement.expressions[0].get(), std::move(text), scope);
      Assign(*statement.target, text, scope);
      return Flow::kNormal;
    }
    case StmtKind::kMacro:
      scope->names.insert_or_assign(statement.text, MakeMacro(statement, statement.text, scope));
      return Flow::kNormal;
    case StmtKind::kCallBlock:
      ExecuteCallBlock(statement, scope, out);
      return Flow::kNormal;
    case StmtKind::kFilterBlock: {
      const Value text = session_.String(RunBody(statement.body, Inner(scope)));
      Append(Str(session_, ApplyFilters(statement.expressions[0].get(), text, scope)), out);
      return Flow::kNormal;
    }
    case StmtKind::kWith:
      ExecuteWith(statement, scope, out);
      return Flow::kNormal;
    case StmtKind::kGeneration:
      Append(RunBody(statement.body, Inner(scope)), out);
      return Flow::kNormal;
    case StmtKind::kBreak:
      return Flow::kBreak;
    case StmtKind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::ExecuteIf(const Stmt& statement, const ScopePtr& scope,
                                         std::string& out) {
  const Session::Level level(session_);
  for (size_t i = 0; i < statement.expressions.size(); ++i) {
    if (Evaluate(*statement.expressions[i], scope).Truthy(session_))
      return Execute(statement.branches[i], scope, out);
  }
  return Execute(statement.else_body, scope, out);
}

void Interpreter::ExecuteFor(const Stmt& statement, const ScopePtr& scope, const Value& iterable,
                             int depth0, std::string& out) {
  const Session::Level level(session_);
  session_.line = statement.line;
  Cursor cursor = Iterate(session_, iterable);
  std::optional<int64_t> length = Length(session_, iterable);
  if (const ExprPtr& filter = statement.expressions[1]) {
    length.reset();
    // Reads on until the condition holds; the condition sees the target, but no loop variable.
    cursor = [this, &statement, &filter, scope, all = std::move(cursor)](Value* item) {
      while (all(item)) {
        const ScopePtr inner = Inner(scope);
        Assign(*statement.target, *item, inner);
        if (Evaluate(*filter, inner).Truthy(session_)) return true;
      }
      return false;
    };
  }
  Loop::Recurse recurse;
  if (statement.recursive) {
    recurse = [this, &statement, scope](const Value& inner, int depth) {
      std::string text;
      ExecuteFor(statement, scope, inner, depth, text);
      return session_.String(std::move(text));
    };
  }
  const auto loop = std::make_shared<Loop>(std::move(cursor), length, depth0, std::move(recurse));
  const Value loop_value = Value::Of(loop);
  // As Jinja compiles it: else runs unless one round got to its end without break or continue.
  bool completed = false;
  for (Value item; loop->Next(&item);) {
    const ScopePtr inner = Inner(scope);
    inner->names.emplace("loop", loop_value);
    Assign(*statement.target, item, inner);
    const Flow flow = Execute(statement.body, inner, out);
    if (flow == Flow::kBreak) break;
    completed = completed || flow == Flow::kNormal;
  }
  if (!completed) Execute(statement.else_body, Inner(scope), out);
}

void Interpreter::ExecuteWith(const Stmt& statement, const ScopePtr& scope, std::string& out) {
  const Session::Level level(session_);
  const ScopePtr inner = Inner(scope);
  const std::vector<Value> values = EvaluateAll(statement.expressions, scope);
  for (size_t i = 0; i < values.size(); ++i) Assign(*statement.targets[i], values[i], inner);
  Execute(statement.body, inner, out);
}

void Interpreter::ExecuteCallBlock(const Stmt& statement, const ScopePtr& scope, std::string& out) {
  const Expr& call = *statement.expressions[0];
  const Value callee = Evaluate(*call.parts[0], scope);
  Arguments arguments = EvaluateArguments(call.call, scope);
  arguments.named.emplace_back("caller", MakeMacro(statement, "caller", scope));
  session_.line = statement.line;
  Append(Str(session_, Call(session_, callee, arguments)), out);
}

void Interpreter::Assign(const Expr& target, const Value& value, const ScopePtr& scope) {
  session_.Step();
  if (target.kind == ExprKind::kName) {
    scope->names.insert_or_assign(target.name, value);
    return;
  }
  if (target.kind == ExprKind::kNamespaceRef) {
    const Value object = Lookup(target.name, scope);
    auto* space = object.As<Namespace>();
    if (space == nullptr) throw TemplateFailure("cannot assign attribute on non-namespace object");
    space->attributes.Set(Value::String(target.attribute), value);
    return;
  }
  std::vector<Value> items;
  const Cursor cursor = Iterate(session_, value);
  for (Value item; items.size() <= target.parts.size() && cursor(&item);) items.push_back(item);
  if (items.size() > target.parts.size()) {
    throw TemplateFailure(
        fmt::format("too many values to unpack (expected {})", target.parts.size()));
  }
  if (items.size() < target.parts.size()) {
    throw TemplateFailure(fmt::format("not enough values to unpack (expected {}, got {})",
                                      target.parts.size(), items.size()));
  }
  for (size_t i = 0; i < items.size(); ++i) Assign(*target.parts[i], items[i], scope);
}

Value Interpreter::MakeMacro(const Stmt& statement, std::string name, const ScopePtr& scope) {
  session_.Step(64);  // kept until the end
  if (scopes_with_macros_.empty() || scopes_with_macros_.back() != scope)
    scopes_with_macros_.push_back(scope);
  return Value::Of(std::make_shared<Macro>(*this, statement, std::move(name), scope));
}

Value Interpreter::ApplyFilters(const Expr* filters, Value text, const ScopePtr& scope) {
  if (filters == nullptr) return text;
  text = ApplyFilters(filters->parts[0].get(), std::move(text), scope);
  session_.line = filters->line;
  return CallFilter(session_, filters->name, text, EvaluateArguments(filters->call, scope));
}

}  // namespace oscar::jinja
