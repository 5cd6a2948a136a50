// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A macro, or the body of a call block (Jinja2 runtime.py, Macro). Trap: an argument that is not
// given is an undefined value, not an error; one too many is an error unless the body reads
// varargs.
#pragma once

#include <string>

#include "capture/text/template/interpreter.h"

namespace oscar::jinja {

class Macro : public Object {
 public:
  // `statement` (kMacro or kCallBlock) and `interpreter` outlive it.
  Macro(Interpreter& interpreter, const Stmt& statement, std::string name, ScopePtr scope)
      : interpreter_(interpreter),
        statement_(statement),
        name_(std::move(name)),
        scope_(std::move(scope)) {}

  std::string TypeName() const override { return "Macro"; }
  std::string Repr(Session&) const override;
  std::optional<Value> Attribute(Session&, std::string_view name) override;
  bool callable() const override { return true; }
  Value Call(Session& session, Arguments& arguments) override;

 private:
  Interpreter& interpreter_;
  const Stmt& statement_;
  std::string name_;
  ScopePtr scope_;  // where it was defined
};

}  // namespace oscar::jinja
