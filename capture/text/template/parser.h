// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// From tokens to a tree, by the grammar of Jinja2 3.1 (parser.py): expressions here, statements in
// parser.cc. Trap: a filter binds tighter than any operator and `~` tighter than `+`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "capture/text/template/ast.h"
#include "capture/text/template/lexer.h"

namespace oscar::jinja {

// The tokens and the expressions in them.
class ExpressionParser {
 public:
  explicit ExpressionParser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

 protected:
  static constexpr int kMaxNesting = 100;    // of brackets and blocks
  static constexpr int kMaxTreeDepth = 400;  // of an expression

  const Token& Current() const { return tokens_[at_]; }
  const Token& Look() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  Token Next();
  bool IsName(std::string_view name) const;
  bool IsOperator(std::string_view op) const;
  bool SkipName(std::string_view name);
  bool SkipOperator(std::string_view op);
  void ExpectOperator(std::string_view op);
  std::string ExpectName();
  [[noreturn]] void Fail(const std::string& message) const;
  [[noreturn]] void FailUnexpected(std::string_view expected) const;

  struct TupleStyle {
    bool simple = false;          // names and literals only: a target
    bool conditional = true;      // `a if b else c` is allowed
    bool in_parentheses = false;  // may be empty
    bool namespaces = false;      // name.attribute is a target
  };
  ExprPtr ParseTuple(const TupleStyle& style);
  ExprPtr ParseExpression(bool conditional = true);
  ExprPtr ParseFilters(ExprPtr value);

  int open_macros_ = 0;

  class Nesting {
   public:
    explicit Nesting(ExpressionParser& parser);
    ~Nesting() { --parser_.nesting_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    ExpressionParser& parser_;
  };

 private:
  ExprPtr Node(ExprKind kind, int line, std::vector<ExprPtr> parts) const;
  template <class... Parts>
  ExprPtr Make(ExprKind kind, int line, Parts... parts) const {
    std::vector<ExprPtr> list;
    (list.push_back(std::move(parts)), ...);
    return Node(kind, line, std::move(list));
  }
  ExprPtr ParseOr();
  ExprPtr ParseAnd();
  ExprPtr ParseNot();
  ExprPtr ParseCompare();
  ExprPtr ParseSum();
  ExprPtr ParseConcat();
  ExprPtr ParseProduct();
  ExprPtr ParseUnary(bool with_filter = true);
  ExprPtr ParsePrimary(bool namespaces);
  ExprPtr ParseName(bool namespaces);
  std::vector<ExprPtr> ParseItems(std::string_view close, bool pairs);
  ExprPtr ParsePostfix(ExprPtr value);
  ExprPtr ParseFilterChain(ExprPtr value);
  ExprPtr ParseAttribute(ExprPtr value);
  ExprPtr ParseSubscript(ExprPtr value);
  ExprPtr ParseCall(ExprPtr callee);
  ExprPtr ParseTest(ExprPtr value);
  void ParseArguments(Expr& node);

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int nesting_ = 0;
};

}  // namespace oscar::jinja
