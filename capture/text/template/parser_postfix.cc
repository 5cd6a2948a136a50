// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What follows a value: attributes, subscripts, calls, filters, tests.
#include <fmt/format.h>

#include <algorithm>

#include "capture/text/template/parser.h"

namespace oscar::jinja {

ExprPtr ExpressionParser::ParsePostfix(ExprPtr value) {
  while (true) {
    if (IsOperator(".") || IsOperator("[")) {
      value = ParseSubscript(std::move(value));
    } else if (IsOperator("(")) {
      value = ParseCall(std::move(value));
    } else {
      return value;
    }
  }
}

ExprPtr ExpressionParser::ParseFilterChain(ExprPtr value) {
  while (true) {
    if (IsOperator("|")) {
      value = ParseFilters(std::move(value), false);
    } else if (IsName("is")) {
      value = ParseTest(std::move(value));
    } else if (IsOperator("(")) {
      value = ParseCall(std::move(value));
    } else {
      return value;
    }
  }
}

ExprPtr ExpressionParser::ParseSubscript(ExprPtr value) {
  const Token token = Next();
  if (token.text == ".") {
    const Token name = Next();
    if (name.kind == TokenKind::kName) {
      ExprPtr node = Make(ExprKind::kAttribute, token.line, std::move(value));
      node->name = name.text;
      return node;
    }
    if (name.kind != TokenKind::kNumber || !name.number.is_int())
      FailSyntax(name.line, "expected a name or a number behind \".\"");
    ExprPtr index = Make(ExprKind::kConstant, name.line);
    index->constant = name.number;
    return Make(ExprKind::kItem, token.line, std::move(value), std::move(index));
  }
  const auto ends = [&] { return IsOperator("]") || IsOperator(","); };
  std::vector<ExprPtr> keys;
  while (!IsOperator("]")) {
    if (!keys.empty()) ExpectOperator(",");
    ExprPtr start = IsOperator(":") ? nullptr : ParseExpression();
    if (!IsOperator(":")) {
      keys.push_back(std::move(start));
      continue;
    }
    Next();
    ExprPtr stop = IsOperator(":") || ends() ? nullptr : ParseExpression();
    ExprPtr step = SkipOperator(":") && !ends() ? ParseExpression() : nullptr;
    if (!keys.empty() || !IsOperator("]"))
      Fail("a slice among several subscripts is not supported");
    ExpectOperator("]");
    return Make(ExprKind::kSlice, token.line, std::move(value), std::move(start), std::move(stop),
                std::move(step));
  }
  ExpectOperator("]");
  ExprPtr key =
      keys.size() == 1 ? std::move(keys[0]) : Node(ExprKind::kTuple, token.line, std::move(keys));
  return Make(ExprKind::kItem, token.line, std::move(value), std::move(key));
}

CallArguments ExpressionParser::ParseArguments() {
  const Nesting nesting(*this);
  CallArguments call;
  ExpectOperator("(");
  const auto require = [&](bool condition) {
    if (!condition) Fail("invalid syntax for function call expression");
  };
  bool first = true;
  while (!IsOperator(")")) {
    if (!first) {
      ExpectOperator(",");
      if (IsOperator(")")) break;
    }
    first = false;
    if (SkipOperator("*")) {
      require(call.star == nullptr && call.star_star == nullptr);
      call.star = ParseExpression();
    } else if (SkipOperator("**")) {
      require(call.star_star == nullptr);
      call.star_star = ParseExpression();
    } else if (Current().kind == TokenKind::kName && Look().kind == TokenKind::kOperator &&
               Look().text == "=") {
      require(call.star_star == nullptr);
      std::string name = Next().text;
      Next();
      call.named.emplace_back(std::move(name), ParseExpression());
    } else {
      require(call.star == nullptr && call.star_star == nullptr && call.named.empty());
      call.positional.push_back(ParseExpression());
    }
  }
  ExpectOperator(")");
  return call;
}

ExprPtr ExpressionParser::ParseCall(ExprPtr callee) {
  ExprPtr node = Make(ExprKind::kCall, Current().line, std::move(callee));
  TakeArguments(*node);
  return node;
}

void ExpressionParser::TakeArguments(Expr& node) {
  node.call = ParseArguments();
  const auto deepen = [&](const ExprPtr& argument) {
    if (argument != nullptr) node.depth = std::max(node.depth, argument->depth + 1);
  };
  for (const ExprPtr& argument : node.call.positional) deepen(argument);
  for (const auto& [name, argument] : node.call.named) deepen(argument);
  deepen(node.call.star);
  deepen(node.call.star_star);
  if (node.depth > kMaxTreeDepth)
    Fail(fmt::format("an expression nested deeper than {} levels", kMaxTreeDepth));
}

std::string ExpressionParser::ParseDottedName() {
  std::string name = ExpectName();
  while (SkipOperator(".")) name += "." + ExpectName();
  return name;
}

ExprPtr ExpressionParser::ParseFilters(ExprPtr value, bool begins_without_pipe) {
  while (IsOperator("|") || begins_without_pipe) {
    if (!begins_without_pipe) Next();
    begins_without_pipe = false;
    ExprPtr node = Make(ExprKind::kFilter, Current().line, std::move(value));
    node->name = ParseDottedName();
    if (IsOperator("(")) TakeArguments(*node);
    value = std::move(node);
  }
  return value;
}

ExprPtr ExpressionParser::ParseTest(ExprPtr value) {
  const int line = Next().line;
  const bool negated = SkipName("not");
  ExprPtr node = Make(ExprKind::kTest, line, std::move(value));
  node->name = ParseDottedName();
  const TokenKind kind = Current().kind;
  if (IsOperator("(")) {
    TakeArguments(*node);
  } else if (kind == TokenKind::kString || kind == TokenKind::kNumber || IsOperator("[") ||
             IsOperator("{") ||
             (kind == TokenKind::kName && !IsName("else") && !IsName("or") && !IsName("and"))) {
    if (IsName("is")) Fail("You cannot chain multiple tests with is");
    node->call.positional.push_back(ParsePostfix(ParsePrimary(false)));
  }
  return negated ? Make(ExprKind::kNot, line, std::move(node)) : std::move(node);
}

}  // namespace oscar::jinja
