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
  if (token.kind == TokenKind::kText) return "text outside of tags";
  if (token.kind == TokenKind::kEnd) return "the end of the template";
  const bool ends_tag = token.text == "%}" || token.text == "}}";
  if (token.kind == TokenKind::kOperator && ends_tag) return "the end of the tag, " + token.text;
  return (token.kind == TokenKind::kString ? "the string " : "") + Quoted(token.text, 40);
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
  node->parts = std::move(parts);
  if (node->depth > kMaxTreeDepth)
    Fail(fmt::format("an expression of more than {} steps in a row", kMaxTreeDepth));
  return node;
}

ExprPtr ExpressionParser::ParseExpression(bool conditional) {
  const Nesting nesting(*this);
  ExprPtr value = ParseOr();
  while (conditional && IsName("if")) {
    const int line = Next().line;
    ExprPtr test = ParseOr();
    ExprPtr otherwise = SkipName("else") ? ParseExpression() : nullptr;
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
  ExprPtr left = ParseUnary();
  while (true) {
    if (IsOperator("**")) Fail(NotSupported("operator", "**"));
    const auto* op =
        std::ranges::find_if(kOperators, [&](const auto& row) { return IsOperator(row.first); });
    if (op == std::end(kOperators)) return left;
    const int line = Next().line;
    left = Make(ExprKind::kBinary, line, std::move(left), ParseUnary());
    left->op = op->second;
  }
}

ExprPtr ExpressionParser::ParseUnary(bool with_filter) {
  const Nesting nesting(*this);
  const int line = Current().line;
  if (IsOperator("+")) Fail(NotSupported("sign", "+"));
  ExprPtr value =
      SkipOperator("-") ? Make(ExprKind::kNegate, line, ParseUnary(false)) : ParsePrimary(false);
  value = ParsePostfix(std::move(value));
  return with_filter ? ParseFilterChain(std::move(value)) : std::move(value);
}

ExprPtr ExpressionParser::ParseName(bool namespaces) {
  const Token token = Next();
  ExprPtr node = Make(ExprKind::kConstant, token.line);
  if (token.text == "true" || token.text == "True") {
    node->constant = Value::Bool(true);
  } else if (token.text == "false" || token.text == "False") {
    node->constant = Value::Bool(false);
  } else if (token.text != "none" && token.text != "None") {
    node->kind = ExprKind::kName;
    node->name = token.text;
    if (namespaces && SkipOperator(".")) {
      node->kind = ExprKind::kNamespaceRef;
      node->attribute = ExpectName();
    }
    const bool is_implicit =
        token.text == "varargs" || token.text == "kwargs" || token.text == "caller";
    if (open_macros_ > 0 && is_implicit)
      FailSyntax(token.line, NotSupported("variable of macros", token.text));
  }
  return node;
}

ExprPtr ExpressionParser::ParsePrimary(bool namespaces) {
  const Token& token = Current();
  if (token.kind == TokenKind::kName) return ParseName(namespaces);
  ExprPtr node = Make(ExprKind::kConstant, token.line);
  if (token.kind == TokenKind::kString) {
    std::string text;
    while (Current().kind == TokenKind::kString) text += Next().text;
    node->constant = Value::String(std::move(text));
  } else if (token.kind == TokenKind::kNumber) {
    node->constant = Next().number;
  } else if (SkipOperator("(")) {
    const Nesting nesting(*this);
    node = ParseTuple({.in_parentheses = true});
    ExpectOperator(")");
  } else if (SkipOperator("[")) {
    node = Node(ExprKind::kList, node->line, ParseItems("]", false));
  } else if (SkipOperator("{")) {
    node = Node(ExprKind::kDict, node->line, ParseItems("}", true));
  } else {
    FailUnexpected("an expression");
  }
  return node;
}

ExprPtr ExpressionParser::ParseTuple(const TupleStyle& style) {
  const int line = Current().line;
  std::vector<ExprPtr> parts;
  bool is_tuple = false;
  while (true) {
    if (IsOperator("}}") || IsOperator("%}") || IsOperator(")") || (style.simple && IsName("in")))
      break;
    parts.push_back(style.simple ? ParsePrimary(style.namespaces)
                                 : ParseExpression(style.conditional));
    if (!SkipOperator(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && !parts.empty()) return std::move(parts[0]);
  if (parts.empty() && !style.in_parentheses) FailUnexpected("an expression");
  return Node(ExprKind::kTuple, line, std::move(parts));
}

// The items of a list, or the keys and values of a dict, and the bracket behind them.
std::vector<ExprPtr> ExpressionParser::ParseItems(std::string_view close, bool pairs) {
  std::vector<ExprPtr> parts;
  while (!IsOperator(close)) {
    parts.push_back(ParseExpression());
    if (pairs) {
      ExpectOperator(":");
      parts.push_back(ParseExpression());
    }
    if (!IsOperator(close)) ExpectOperator(",");
  }
  Next();
  return parts;
}

ExprPtr ExpressionParser::ParsePostfix(ExprPtr value) {
  while (true) {
    if (IsOperator(".")) {
      value = ParseAttribute(std::move(value));
    } else if (IsOperator("[")) {
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
      value = ParseFilters(std::move(value));
    } else if (IsName("is")) {
      value = ParseTest(std::move(value));
    } else if (IsOperator("(")) {
      value = ParseCall(std::move(value));
    } else {
      return value;
    }
  }
}

ExprPtr ExpressionParser::ParseAttribute(ExprPtr value) {
  const int line = Next().line;
  if (Current().kind == TokenKind::kNumber && Current().number.is_int()) {
    ExprPtr index = Make(ExprKind::kConstant, line);
    index->constant = Next().number;
    return Make(ExprKind::kItem, line, std::move(value), std::move(index));
  }
  ExprPtr node = Make(ExprKind::kAttribute, line, std::move(value));
  node->name = ExpectName();
  return node;
}

ExprPtr ExpressionParser::ParseSubscript(ExprPtr value) {
  const int line = Next().line;
  const auto part = [&] {
    return IsOperator(":") || IsOperator("]") ? nullptr : ParseExpression();
  };
  ExprPtr start = part();
  if (!IsOperator(":")) {
    if (start == nullptr) FailUnexpected("an expression");
    if (IsOperator(",")) Fail(NotSupported("separator of subscripts", ","));
    ExpectOperator("]");
    return Make(ExprKind::kItem, line, std::move(value), std::move(start));
  }
  Next();
  ExprPtr stop = part();
  ExprPtr step = SkipOperator(":") ? part() : nullptr;
  ExpectOperator("]");
  return Make(ExprKind::kSlice, line, std::move(value), std::move(start), std::move(stop),
              std::move(step));
}

ExprPtr ExpressionParser::ParseCall(ExprPtr callee) {
  ExprPtr node = Make(ExprKind::kCall, Current().line, std::move(callee));
  ParseArguments(*node);
  return node;
}

void ExpressionParser::ParseArguments(Expr& node) {
  const Nesting nesting(*this);
  ExpectOperator("(");
  while (!IsOperator(")")) {
    if (IsOperator("*") || IsOperator("**")) Fail(NotSupported("argument", Current().text));
    if (Current().kind == TokenKind::kName && Look().kind == TokenKind::kOperator &&
        Look().text == "=") {
      std::string name = Next().text;
      Next();
      for (const auto& [known, value] : node.call.named) {
        if (known == name) Fail("the argument " + Quoted(name) + " is given twice");
      }
      node.call.named.emplace_back(std::move(name), ParseExpression());
      node.depth = std::max(node.depth, node.call.named.back().second->depth + 1);
    } else {
      if (!node.call.named.empty()) Fail("an argument without a name behind one with a name");
      node.call.positional.push_back(ParseExpression());
      node.depth = std::max(node.depth, node.call.positional.back()->depth + 1);
    }
    if (!IsOperator(")")) ExpectOperator(",");
  }
  Next();
}

ExprPtr ExpressionParser::ParseFilters(ExprPtr value) {
  while (SkipOperator("|")) {
    ExprPtr node = Make(ExprKind::kFilter, Current().line, std::move(value));
    node->name = ExpectName();
    if (IsOperator("(")) ParseArguments(*node);
    value = std::move(node);
  }
  return value;
}

ExprPtr ExpressionParser::ParseTest(ExprPtr value) {
  const int line = Next().line;
  const bool negated = SkipName("not");
  ExprPtr node = Make(ExprKind::kTest, line, std::move(value));
  node->name = ExpectName();
  const TokenKind kind = Current().kind;
  const bool ends = IsName("else") || IsName("or") || IsName("and");
  if (IsOperator("(")) {
    ParseArguments(*node);
  } else if (kind == TokenKind::kString || kind == TokenKind::kNumber || IsOperator("[") ||
             IsOperator("{") || (kind == TokenKind::kName && !ends)) {
    if (IsName("is")) Fail("You cannot chain multiple tests with is");
    node->call.positional.push_back(ParsePostfix(ParsePrimary(false)));
  }
  return negated ? Make(ExprKind::kNot, line, std::move(node)) : std::move(node);
}

}  // namespace oscar::jinja
