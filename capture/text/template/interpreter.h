// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs a parsed template. Trap: scopes are Jinja's, not Python's: what a loop, macro or block sets
// is gone when it ends (hence namespace), while `if` has no scope of its own.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "capture/text/template/ast.h"
#include "capture/text/template/objects.h"
#include "capture/text/template/session.h"

namespace oscar::jinja {

// Names of one block, then those around it.
struct Scope {
  std::unordered_map<std::string, Value> names;
  std::shared_ptr<Scope> outer;  // null: the template itself
};
using ScopePtr = std::shared_ptr<Scope>;

class Interpreter {
 public:
  // Both must outlive it.
  Interpreter(const Body& body, Session& session) : body_(body), session_(session) {}
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  // Variables of the caller; they hide globals of the same name.
  void Define(std::string name, Value value);
  std::string Run();

 private:
  enum class Flow { kNormal, kBreak, kContinue };

  std::string RunBody(const Body& body, const ScopePtr& scope);
  Flow Execute(const Body& body, const ScopePtr& scope, std::string& out);
  Flow ExecuteOne(const Stmt& statement, const ScopePtr& scope, std::string& out);
  Flow ExecuteIf(const Stmt& statement, const ScopePtr& scope, std::string& out);
  void ExecuteFor(const Stmt& statement, const ScopePtr& scope, std::string& out);
  void Assign(const Expr& target, const Value& value, const ScopePtr& scope);
  Value MakeMacro(const Stmt& statement, const ScopePtr& scope);
  Value CallMacro(const Stmt& statement, const ScopePtr& scope, const Arguments& arguments);

  Value Lookup(const std::string& name, const ScopePtr& scope) const;
  Value Evaluate(const Expr& expr, const ScopePtr& scope);
  Value EvaluateCompare(const Expr& expr, const ScopePtr& scope);
  Value EvaluateCall(const Expr& expr, const ScopePtr& scope);
  // A part that is null, one of a slice, is None.
  std::vector<Value> EvaluateAll(const std::vector<ExprPtr>& parts, const ScopePtr& scope);
  Arguments EvaluateArguments(const CallArguments& call, const ScopePtr& scope);
  // The filters of a block over its text; null: none.
  Value ApplyFilters(const Expr* filters, Value text, const ScopePtr& scope);

  const Body& body_;
  Session& session_;
  ScopePtr root_ = std::make_shared<Scope>();
};

}  // namespace oscar::jinja
