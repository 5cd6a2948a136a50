// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A parsed template. One struct for all expressions and one for all statements: which members mean
// something depends on the kind. Trap: trees are destroyed and evaluated recursively, so the parser
// bounds their depth.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "capture/text/template/operators.h"
#include "capture/text/template/session.h"

namespace oscar::jinja {

struct Expr;
struct Stmt;
using ExprPtr = std::unique_ptr<Expr>;
using Body = std::vector<std::unique_ptr<Stmt>>;

enum class ExprKind {
  kConstant,      // constant
  kName,          // name
  kNamespaceRef,  // name.attribute, as the target of set
  kTuple,         // parts
  kList,          // parts
  kDict,          // parts: key, value, key, value
  kAnd,           // parts: two
  kOr,            // parts: two
  kNot,           // parts: one
  kNegate,        // parts: one
  kBinary,        // op; parts: two
  kConcat,        // parts, joined as text
  kCompare,       // parts, and one comparison between each two
  kConditional,   // parts: test, then, else (null: undefined)
  kAttribute,     // parts[0].name
  kItem,          // parts[0][parts[1]]
  kSlice,         // parts: value, start, stop, step; null where not given
  kCall,          // parts[0](call)
  kFilter,        // parts[0] | name(call); parts[0] is null for the text of a block
  kTest           // parts[0] is name(call)
};

struct CallArguments {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
};

struct Expr {
  ExprKind kind;
  int line;
  std::vector<ExprPtr> parts;
  std::string name, attribute;
  Value constant;
  BinaryOperator op = BinaryOperator::kAdd;
  std::vector<Comparison> comparisons;
  CallArguments call;
  int depth = 1;
};

enum class StmtKind {
  kText,        // text
  kPrint,       // expressions: one
  kFor,         // target, expressions: iterable and filter (may be null); body, else_body
  kIf,          // expressions: tests; branches: bodies; else_body
  kSet,         // target, expressions: one
  kSetBlock,    // target, expressions: filters (may be null); body
  kMacro,       // name, parameters, body
  kGeneration,  // body
  kBreak,
  kContinue
};

struct Parameter {
  std::string name;
  ExprPtr default_value;  // null: none
};

struct Stmt {
  StmtKind kind;
  int line;
  std::string text;  // of kText; name of kMacro
  ExprPtr target;
  std::vector<ExprPtr> expressions;
  std::vector<Parameter> parameters;
  Body body, else_body;
  std::vector<Body> branches;
};

// TemplateFailure with "line N: " in front for what is no template, or for what chat templates do
// not use, by its name.
Body ParseTemplate(std::string_view source);

}  // namespace oscar::jinja
