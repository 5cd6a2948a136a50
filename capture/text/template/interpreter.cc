// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
#include "capture/text/template/interpreter.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "capture/text/template/functions.h"
#include "capture/text/template/loop.h"
#include "capture/text/template/operators.h"
#include "capture/text/template/value_text.h"

namespace oscar::jinja {
namespace {

ScopePtr Inner(const ScopePtr& scope) {
  auto inner = std::make_shared<Scope>();
  inner->outer = scope;
  return inner;
}

}  // namespace

void Interpreter::Define(std::string name, Value value) {
  root_->names.insert_or_assign(std::move(name), std::move(value));
}

std::string Interpreter::Run() {
  // What the template sets hides the caller's variables, but is not one of them.
  return RunBody(body_, Inner(root_));
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

Interpreter::Flow Interpreter::ExecuteOne(const Stmt& statement, const ScopePtr& scope,
                                          std::string& out) {
  session_.line = statement.line;
  session_.Step();
  switch (statement.kind) {
    case StmtKind::kText:
      session_.Append(statement.text, out);
      break;
    case StmtKind::kPrint:
      session_.Append(Str(session_, Evaluate(*statement.expressions[0], scope)), out);
      break;
    case StmtKind::kIf:
      return ExecuteIf(statement, scope, out);
    case StmtKind::kFor:
      ExecuteFor(statement, scope, out);
      break;
    case StmtKind::kSet:
      Assign(*statement.target, Evaluate(*statement.expressions[0], scope), scope);
      break;
    case StmtKind::kSetBlock: {
      const Value text = session_.String(RunBody(statement.body, Inner(scope)));
      Assign(*statement.target, ApplyFilters(statement.expressions[0].get(), text, scope), scope);
      break;
    }
    case StmtKind::kMacro:
      scope->names.insert_or_assign(statement.text, MakeMacro(statement, scope));
      break;
    case StmtKind::kGeneration:
      session_.Append(RunBody(statement.body, Inner(scope)), out);
      break;
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
    if (Evaluate(*statement.expressions[i], scope).Truthy())
      return Execute(statement.branches[i], scope, out);
  }
  return Execute(statement.else_body, scope, out);
}

void Interpreter::ExecuteFor(const Stmt& statement, const ScopePtr& scope, std::string& out) {
  const Session::Level level(session_);
  const Value iterable = Evaluate(*statement.expressions[0], scope);
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
        if (Evaluate(*filter, inner).Truthy()) return true;
      }
      return false;
    };
  }
  const auto loop = std::make_shared<Loop>(std::move(cursor), length);
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
  if (items.size() != target.parts.size()) {
    throw TemplateFailure(fmt::format(
        "{} values to unpack (expected {})",
        items.size() > target.parts.size() ? "too many" : "not enough", target.parts.size()));
  }
  for (size_t i = 0; i < items.size(); ++i) Assign(*target.parts[i], items[i], scope);
}

Value Interpreter::MakeMacro(const Stmt& statement, const ScopePtr& scope) {
  // The scope holds the macro, which holds the scope.
  session_.AtEnd([scope] { scope->names.clear(); });
  return Value::Of(
      std::make_shared<Function>([this, &statement, scope](Session&, const Arguments& arguments) {
        return CallMacro(statement, scope, arguments);
      }));
}

// Trap: an argument that is not given is an undefined value, not an error (Jinja2 runtime.py,
// Macro).
Value Interpreter::CallMacro(const Stmt& statement, const ScopePtr& scope,
                             const Arguments& arguments) {
  const Session::Level level(session_);
  const int line = session_.line;
  const std::string name = StringRepr(statement.text);
  const std::vector<Parameter>& parameters = statement.parameters;
  if (arguments.positional.size() > parameters.size()) {
    throw TemplateFailure(
        fmt::format("macro {} takes not more than {} argument(s)", name, parameters.size()));
  }
  const ScopePtr inner = Inner(scope);
  size_t taken = 0;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& parameter = parameters[i];
    const auto named = std::ranges::find(arguments.named, parameter.name,
                                         [](const auto& row) { return row.first; });
    Value value;
    if (i < arguments.positional.size()) {
      value = arguments.positional[i];
    } else if (named != arguments.named.end()) {
      value = named->second;
      ++taken;
    } else if (parameter.default_value != nullptr) {
      value = Evaluate(*parameter.default_value, inner);
    } else {
      value = Value::Undefined(
          fmt::format("parameter {} was not provided", StringRepr(parameter.name)));
    }
    inner->names.insert_or_assign(parameter.name, std::move(value));
  }
  if (taken < arguments.named.size()) {
    throw TemplateFailure(fmt::format(
        "macro {} takes no keyword argument of one of the names given, or takes it twice", name));
  }
  Value text = session_.String(RunBody(statement.body, inner));
  session_.line = line;
  return text;
}

Value Interpreter::ApplyFilters(const Expr* filters, Value text, const ScopePtr& scope) {
  if (filters == nullptr) return text;
  text = ApplyFilters(filters->parts[0].get(), std::move(text), scope);
  session_.line = filters->line;
  return CallFilter(session_, filters->name, text, EvaluateArguments(filters->call, scope));
}

Value Interpreter::Lookup(const std::string& name, const ScopePtr& scope) const {
  for (const Scope* at = scope.get(); at != nullptr; at = at->outer.get()) {
    const auto found = at->names.find(name);
    if (found != at->names.end()) return found->second;
  }
  if (auto global = FindGlobal(name)) return *std::move(global);
  return Value::Undefined(fmt::format("'{}' is undefined", name));
}

std::vector<Value> Interpreter::EvaluateAll(const std::vector<ExprPtr>& parts,
                                            const ScopePtr& scope) {
  std::vector<Value> values;
  for (const ExprPtr& part : parts)
    values.push_back(part != nullptr ? Evaluate(*part, scope) : Value::None());
  return values;
}

Value Interpreter::Evaluate(const Expr& expr, const ScopePtr& scope) {
  const Session::Level level(session_);
  session_.Step();
  session_.line = expr.line;
  const auto part = [&](size_t i) { return Evaluate(*expr.parts[i], scope); };
  switch (expr.kind) {
    case ExprKind::kConstant:
      return expr.constant;
    case ExprKind::kName:
      return Lookup(expr.name, scope);
    case ExprKind::kTuple:
      return Value::Tuple(EvaluateAll(expr.parts, scope));
    case ExprKind::kList:
      return Value::List(EvaluateAll(expr.parts, scope));
    case ExprKind::kDict: {
      const std::vector<Value> members = EvaluateAll(expr.parts, scope);
      Dict dict;
      for (size_t i = 0; i < members.size(); i += 2) dict.Set(members[i], members[i + 1]);
      return Value::FromDict(std::move(dict));
    }
    case ExprKind::kAnd:
    case ExprKind::kOr: {
      Value left = part(0);
      return left.Truthy() == (expr.kind == ExprKind::kAnd) ? part(1) : left;
    }
    case ExprKind::kNot:
      return Value::Bool(!part(0).Truthy());
    case ExprKind::kNegate:
      return Negate(part(0));
    case ExprKind::kBinary: {
      const std::vector<Value> sides = EvaluateAll(expr.parts, scope);
      session_.line = expr.line;
      return Binary(session_, expr.op, sides[0], sides[1]);
    }
    case ExprKind::kConcat: {
      std::string text;
      for (const Value& value : EvaluateAll(expr.parts, scope))
        session_.Append(Str(session_, value), text);
      return Value::String(std::move(text));
    }
    case ExprKind::kCompare:
      return EvaluateCompare(expr, scope);
    case ExprKind::kConditional:
      if (part(0).Truthy()) return part(1);
      if (expr.parts[2] != nullptr) return part(2);
      return Value::Undefined(
          fmt::format("the inline if-expression on line {} evaluated to false and no else section "
                      "was defined.",
                      expr.line));
    case ExprKind::kAttribute:
      return GetAttribute(session_, part(0), expr.name);
    case ExprKind::kItem: {
      const Value value = part(0);
      return GetItem(session_, value, part(1));
    }
    case ExprKind::kSlice: {
      const std::vector<Value> parts = EvaluateAll(expr.parts, scope);
      return Slice(session_, parts[0], parts[1], parts[2], parts[3]);
    }
    case ExprKind::kCall:
    case ExprKind::kFilter:
    case ExprKind::kTest:
      return EvaluateCall(expr, scope);
    case ExprKind::kNamespaceRef:
      break;
  }
  throw TemplateFailure("a target of an assignment has no value");
}

Value Interpreter::EvaluateCompare(const Expr& expr, const ScopePtr& scope) {
  Value left = Evaluate(*expr.parts[0], scope);
  for (size_t i = 0; i < expr.comparisons.size(); ++i) {
    Value right = Evaluate(*expr.parts[i + 1], scope);
    session_.line = expr.line;
    if (!Holds(session_, expr.comparisons[i], left, right)) return Value::Bool(false);
    left = std::move(right);
  }
  return Value::Bool(true);
}

Arguments Interpreter::EvaluateArguments(const CallArguments& call, const ScopePtr& scope) {
  Arguments arguments;
  arguments.positional = EvaluateAll(call.positional, scope);
  for (const auto& [name, expr] : call.named)
    arguments.named.emplace_back(name, Evaluate(*expr, scope));
  return arguments;
}

Value Interpreter::EvaluateCall(const Expr& expr, const ScopePtr& scope) {
  const Value value = Evaluate(*expr.parts[0], scope);
  const Arguments arguments = EvaluateArguments(expr.call, scope);
  session_.line = expr.line;
  if (expr.kind == ExprKind::kFilter) return CallFilter(session_, expr.name, value, arguments);
  if (expr.kind == ExprKind::kTest)
    return Value::Bool(CallTest(session_, expr.name, value, arguments));
  session_.Step();
  auto* function = value.Known().As<Function>();
  if (function == nullptr)
    throw TemplateFailure(fmt::format("'{}' object is not callable", value.TypeName()));
  return function->Call(session_, arguments);
}

}  // namespace oscar::jinja
