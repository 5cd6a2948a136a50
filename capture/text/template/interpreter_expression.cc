// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
#include <fmt/format.h>

#include <algorithm>

#include "capture/text/template/compare.h"
#include "capture/text/template/interpreter.h"
#include "capture/text/template/operators.h"
#include "capture/text/template/tables.h"
#include "capture/text/template/value_text.h"

namespace oscar::jinja {
namespace {

bool Holds(Session& session, Comparison comparison, const Value& a, const Value& b) {
  switch (comparison) {
    case Comparison::kEq:
      return Equal(session, a, b);
    case Comparison::kNe:
      return !Equal(session, a, b);
    case Comparison::kLt:
      return Compare(session, a, b, "<") == -1;
    case Comparison::kLe: {
      const int order = Compare(session, a, b, "<=");
      return order == -1 || order == 0;
    }
    case Comparison::kGt:
      return Compare(session, a, b, ">") == 1;
    case Comparison::kGe: {
      const int order = Compare(session, a, b, ">=");
      return order == 1 || order == 0;
    }
    case Comparison::kIn:
      return Contains(session, b, a);
    case Comparison::kNotIn:
      return !Contains(session, b, a);
  }
  return false;
}

}  // namespace

Value Interpreter::Lookup(const std::string& name, const ScopePtr& scope) const {
  for (const Scope* at = scope.get(); at != nullptr; at = at->outer.get()) {
    const auto found = at->names.find(name);
    if (found != at->names.end()) return found->second;
  }
  if (auto global = Global(const_cast<Interpreter&>(*this), name)) return *std::move(global);
  return Value::Undefined(fmt::format("'{}' is undefined", name));
}

std::vector<Value> Interpreter::EvaluateAll(const std::vector<ExprPtr>& parts,
                                            const ScopePtr& scope) {
  std::vector<Value> values;
  values.reserve(parts.size());
  for (const ExprPtr& part : parts) values.push_back(Evaluate(*part, scope));
  return values;
}

Value Interpreter::EvaluateOptional(const ExprPtr& expr, const ScopePtr& scope) {
  return expr == nullptr ? Value::None() : Evaluate(*expr, scope);
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
    case ExprKind::kDict:
      return EvaluateDict(expr, scope);
    case ExprKind::kAnd: {
      Value left = part(0);
      return left.Truthy(session_) ? part(1) : left;
    }
    case ExprKind::kOr: {
      Value left = part(0);
      return left.Truthy(session_) ? left : part(1);
    }
    case ExprKind::kNot:
      return Value::Bool(!part(0).Truthy(session_));
    case ExprKind::kNegate:
      return Negate(part(0));
    case ExprKind::kPlus:
      return Plus(part(0));
    case ExprKind::kBinary: {
      const Value left = part(0);
      const Value right = part(1);
      session_.line = expr.line;
      return Binary(session_, expr.op, left, right);
    }
    case ExprKind::kConcat:
      return EvaluateConcat(expr, scope);
    case ExprKind::kCompare:
      return EvaluateCompare(expr, scope);
    case ExprKind::kConditional:
      if (part(0).Truthy(session_)) return part(1);
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
      const Value value = part(0);
      const Value start = EvaluateOptional(expr.parts[1], scope);
      const Value stop = EvaluateOptional(expr.parts[2], scope);
      return Slice(session_, value, start, stop, EvaluateOptional(expr.parts[3], scope));
    }
    case ExprKind::kCall:
      return EvaluateCall(expr, scope);
    case ExprKind::kFilter: {
      const Value value = part(0);
      const Arguments arguments = EvaluateArguments(expr.call, scope);
      session_.line = expr.line;
      return CallFilter(session_, expr.name, value, arguments);
    }
    case ExprKind::kTest: {
      const Value value = part(0);
      const Arguments arguments = EvaluateArguments(expr.call, scope);
      return Value::Bool(CallTest(session_, expr.name, value, arguments));
    }
    case ExprKind::kNamespaceRef:
      break;
  }
  throw TemplateFailure("a target of an assignment has no value");
}

Value Interpreter::EvaluateDict(const Expr& expr, const ScopePtr& scope) {
  Dict dict;
  for (size_t i = 0; i < expr.parts.size(); i += 2) {
    const Value key = Evaluate(*expr.parts[i], scope);
    dict.Set(key, Evaluate(*expr.parts[i + 1], scope));
  }
  return Value::FromDict(std::move(dict));
}

Value Interpreter::EvaluateConcat(const Expr& expr, const ScopePtr& scope) {
  std::string text;
  for (const Value& value : EvaluateAll(expr.parts, scope)) Append(Str(session_, value), text);
  return session_.String(std::move(text));
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
  if (call.star != nullptr) {
    for (Value& value : ToVector(session_, Evaluate(*call.star, scope)))
      arguments.positional.push_back(std::move(value));
  }
  if (call.star_star != nullptr) {
    const Value more = Evaluate(*call.star_star, scope);
    if (!more.is_dict()) throw TemplateFailure("argument after ** must be a mapping");
    for (const auto& [key, value] : more.dict().items) {
      if (!key.is_string()) throw TemplateFailure("keywords must be strings");
      arguments.named.emplace_back(key.as_string(), value);
    }
  }
  const auto& named = arguments.named;
  for (auto at = named.begin(); at != named.end(); ++at) {
    if (std::find_if(named.begin(), at, [&](const auto& row) { return row.first == at->first; }) !=
        at)
      throw TemplateFailure(
          fmt::format("got multiple values for keyword argument '{}'", at->first));
  }
  return arguments;
}

Value Interpreter::EvaluateCall(const Expr& expr, const ScopePtr& scope) {
  const Value callee = Evaluate(*expr.parts[0], scope);
  Arguments arguments = EvaluateArguments(expr.call, scope);
  session_.line = expr.line;
  return Call(session_, callee, arguments);
}

}  // namespace oscar::jinja
