// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "capture/files/quote.h"
#include "capture/text/template/parser.h"

namespace oscar::jinja {
namespace {

std::string Describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kData:
      return "text outside of tags";
    case TokenKind::kBlockBegin:
      return "{%";
    case TokenKind::kBlockEnd:
      return "the end of the tag, %}";
    case TokenKind::kVariableBegin:
      return "{{";
    case TokenKind::kVariableEnd:
      return "the end of the tag, }}";
    case TokenKind::kEnd:
      return "the end of the template";
    case TokenKind::kString:
      return "the string " + Quoted(token.text, 40);
    case TokenKind::kName:
    case TokenKind::kNumber:
    case TokenKind::kOperator:
      break;
  }
  return Quoted(token.text, 40);
}

}  // namespace

Token ExpressionParser::Next() {
  const Token token = tokens_[at_];
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}
bool ExpressionParser::IsName(std::string_view name) const {
  return Current().kind == TokenKind::kName && Current().text == name;
}
bool ExpressionParser::IsOperator(std::string_view op) const {
  return Current().kind == TokenKind::kOperator && Current().text == op;
}
bool ExpressionParser::SkipName(std::string_view name) {
  if (!IsName(name)) return false;
  Next();
  return true;
}
bool ExpressionParser::SkipOperator(std::string_view op) {
  if (!IsOperator(op)) return false;
  Next();
  return true;
}
void ExpressionParser::ExpectOperator(std::string_view op) {
  if (!SkipOperator(op)) FailUnexpected(fmt::format("\"{}\"", op));
}
std::string ExpressionParser::ExpectName() {
  if (Current().kind != TokenKind::kName) FailUnexpected("a name");
  return Next().text;
}
void ExpressionParser::Fail(const std::string& message) const {
  FailSyntax(Current().line, message);
}
void ExpressionParser::FailUnexpected(std::string_view expected) const {
  Fail(fmt::format("expected {}, found {}", expected, Describe(Current())));
}

ExpressionParser::Nesting::Nesting(ExpressionParser& parser) : parser_(parser) {
  if (++parser_.nesting_ > kMaxNesting) {
    --parser_.nesting_;
    parser_.Fail(fmt::format("brackets or blocks nested deeper than {} levels", kMaxNesting));
  }
}

ExprPtr ExpressionParser::Node(ExprKind kind, int line, std::vector<ExprPtr> parts) const {
  auto node = std::make_unique<Expr>();
  node->kind = kind;
  node->line = line;
  for (const ExprPtr& part : parts) {
    if (part != nullptr) node->depth = std::max(node->depth, part->depth + 1);
  }
  if (node->depth > kMaxTreeDepth)
    Fail(fmt::format("an expression of more than {} steps in a row", kMaxTreeDepth));
  node->parts = std::move(parts);
  return node;
}

ExprPtr ExpressionParser::ParseExpression(bool conditional) {
  const Nesting nesting(*this);
  return conditional ? ParseConditional() : ParseOr();
}

ExprPtr ExpressionParser::ParseConditional() {
  const Nesting nesting(*this);
  ExprPtr value = ParseOr();
  while (IsName("if")) {
    const int line = Next().line;
    ExprPtr test = ParseOr();
    ExprPtr otherwise = SkipName("else") ? ParseConditional() : nullptr;
    value =
        Make(ExprKind::kConditional, line, std::move(test), std::move(value), std::move(otherwise));
  }
  return value;
}

ExprPtr ExpressionParser::ParseOr() {
  ExprPtr left = ParseAnd();
  while (IsName("or")) {
    const int line = Next().line;
    left = Make(ExprKind::kOr, line, std::move(left), ParseAnd());
  }
  return left;
}

ExprPtr ExpressionParser::ParseAnd() {
  ExprPtr left = ParseNot();
  while (IsName("and")) {
    const int line = Next().line;
    left = Make(ExprKind::kAnd, line, std::move(left), ParseNot());
  }
  return left;
}

ExprPtr ExpressionParser::ParseNot() {
  if (!IsName("not")) return ParseCompare();
  const Nesting nesting(*this);
  const int line = Next().line;
  return Make(ExprKind::kNot, line, ParseNot());
}

ExprPtr ExpressionParser::ParseCompare() {
  static constexpr std::pair<std::string_view, Comparison> kOperators[] = {
      {"==", Comparison::kEq}, {"!=", Comparison::kNe}, {"<", Comparison::kLt},
      {"<=", Comparison::kLe}, {">", Comparison::kGt},  {">=", Comparison::kGe}};
  const int line = Current().line;
  std::vector<ExprPtr> parts;
  std::vector<Comparison> comparisons;
  parts.push_back(ParseSum());
  while (true) {
    const auto* op =
        std::ranges::find_if(kOperators, [&](const auto& row) { return IsOperator(row.first); });
    if (op != std::end(kOperators)) {
      Next();
      comparisons.push_back(op->second);
    } else if (SkipName("in")) {
      comparisons.push_back(Comparison::kIn);
    } else if (IsName("not") && Look().kind == TokenKind::kName && Look().text == "in") {
      Next();
      Next();
      comparisons.push_back(Comparison::kNotIn);
    } else {
      break;
    }
    parts.push_back(ParseSum());
  }
  if (comparisons.empty()) return std::move(parts[0]);
  ExprPtr node = Node(ExprKind::kCompare, line, std::move(parts));
  node->comparisons = std::move(comparisons);
  return node;
}

ExprPtr ExpressionParser::ParseSum() {
  ExprPtr left = ParseConcat();
  while (IsOperator("+") || IsOperator("-")) {
    const Token token = Next();
    left = Make(ExprKind::kBinary, token.line, std::move(left), ParseConcat());
    left->op = token.text == "+" ? BinaryOperator::kAdd : BinaryOperator::kSub;
  }
  return left;
}

ExprPtr ExpressionParser::ParseConcat() {
  const int line = Current().line;
  std::vector<ExprPtr> parts;
  parts.push_back(ParseProduct());
  while (SkipOperator("~")) parts.push_back(ParseProduct());
  if (parts.size() == 1) return std::move(parts[0]);
  return Node(ExprKind::kConcat, line, std::move(parts));
}

ExprPtr ExpressionParser::ParseProduct() {
  static constexpr std::pair<std::string_view, BinaryOperator> kOperators[] = {
      {"*", BinaryOperator::kMul},
      {"/", BinaryOperator::kDiv},
      {"//", BinaryOperator::kFloorDiv},
      {"%", BinaryOperator::kMod}};
  ExprPtr left = ParsePower();
  while (true) {
    const auto* op =
        std::ranges::find_if(kOperators, [&](const auto& row) { return IsOperator(row.first); });
    if (op == std::end(kOperators)) return left;
    const int line = Next().line;
    left = Make(ExprKind::kBinary, line, std::move(left), ParsePower());
    left->op = op->second;
  }
}

ExprPtr ExpressionParser::ParsePower() {
  ExprPtr left = ParseUnary(true);
  while (IsOperator("**")) {
    const int line = Next().line;
    left = Make(ExprKind::kBinary, line, std::move(left), ParseUnary(true));
    left->op = BinaryOperator::kPow;
  }
  return left;
}

ExprPtr ExpressionParser::ParseUnary(bool with_filter) {
  const Nesting nesting(*this);
  const int line = Current().line;
  ExprPtr value;
  if (SkipOperator("-")) {
    value = Make(ExprKind::kNegate, line, ParseUnary(false));
  } else if (SkipOperator("+")) {
    value = Make(ExprKind::kPlus, line, ParseUnary(false));
  } else {
    value = ParsePrimary(false);
  }
  value = ParsePostfix(std::move(value));
  return with_filter ? ParseFilterChain(std::move(value)) : std::move(value);
}

ExprPtr ExpressionParser::ParsePrimary(bool namespaces) {
  const Token token = Current();
  ExprPtr node = Node(ExprKind::kConstant, token.line, {});
  if (token.kind == TokenKind::kName) {
    Next();
    if (token.text == "true" || token.text == "True") {
      node->constant = Value::Bool(true);
    } else if (token.text == "false" || token.text == "False") {
      node->constant = Value::Bool(false);
    } else if (token.text == "none" || token.text == "None") {
      node->constant = Value::None();
    } else if (namespaces && SkipOperator(".")) {
      node->kind = ExprKind::kNamespaceRef;
      node->name = token.text;
      node->attribute = ExpectName();
    } else {
      node->kind = ExprKind::kName;
      node->name = token.text;
      names_read_.push_back(token.text);
    }
    return node;
  }
  if (token.kind == TokenKind::kString) {
    std::string text;
    while (Current().kind == TokenKind::kString) text += Next().text;
    node->constant = Value::String(std::move(text));
    return node;
  }
  if (token.kind == TokenKind::kNumber) {
    node->constant = Next().number;
    return node;
  }
  if (SkipOperator("(")) {
    const Nesting nesting(*this);
    node = ParseTuple({.in_parentheses = true});
    ExpectOperator(")");
    return node;
  }
  if (IsOperator("[")) return ParseList();
  if (IsOperator("{")) return ParseDict();
  FailUnexpected("an expression");
}

ExprPtr ExpressionParser::ParseTuple(const TupleStyle& style) {
  const int line = Current().line;
  const auto at_end = [&] {
    return Current().kind == TokenKind::kVariableEnd || Current().kind == TokenKind::kBlockEnd ||
           IsOperator(")") || (style.until_in && IsName("in")) ||
           (style.until_recursive && IsName("recursive"));
  };
  std::vector<ExprPtr> parts;
  bool is_tuple = false;
  while (true) {
    if (!parts.empty()) ExpectOperator(",");
    if (at_end()) break;
    parts.push_back(style.simple ? ParsePrimary(style.namespaces)
                                 : ParseExpression(style.conditional));
    if (!IsOperator(",")) break;
    is_tuple = true;
  }
  if (!is_tuple) {
    if (!parts.empty()) return std::move(parts[0]);
    if (!style.in_parentheses) FailUnexpected("an expression");
  }
  return Node(ExprKind::kTuple, line, std::move(parts));
}

ExprPtr ExpressionParser::ParseList() {
  const int line = Next().line;
  std::vector<ExprPtr> parts;
  while (!IsOperator("]")) {
    if (!parts.empty()) ExpectOperator(",");
    if (IsOperator("]")) break;
    parts.push_back(ParseExpression());
  }
  ExpectOperator("]");
  return Node(ExprKind::kList, line, std::move(parts));
}

ExprPtr ExpressionParser::ParseDict() {
  const int line = Next().line;
  std::vector<ExprPtr> parts;
  while (!IsOperator("}")) {
    if (!parts.empty()) ExpectOperator(",");
    if (IsOperator("}")) break;
    parts.push_back(ParseExpression());
    ExpectOperator(":");
    parts.push_back(ParseExpression());
  }
  ExpectOperator("}");
  return Node(ExprKind::kDict, line, std::move(parts));
}

}  // namespace oscar::jinja
