// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Parses tokens into expressions, by the grammar of Jinja2 3.1 (parser.py). Trap: a filter binds
// tighter than any operator and `~` tighter than `+`.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "capture/text/template/lexer.h"
#include "capture/text/template/objects.h"
#include "capture/text/template/program.h"

namespace oscar::jinja {

class ExpressionParser {
 public:
  explicit ExpressionParser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

 protected:
  static constexpr int kMaxNesting = 100;    // for brackets and blocks
  static constexpr int kMaxTreeDepth = 400;  // for an expression

  const Token& Current() const { return tokens_[at_]; }
  const Token& Look() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  Token Next();
  bool Is(std::string_view name_or_operator) const;
  bool Skip(std::string_view name_or_operator);
  void Expect(std::string_view name_or_operator);
  std::string ExpectName();
  [[noreturn]] void Fail(const std::string& message) const;
  [[noreturn]] void FailUnexpected(std::string_view expected) const;

  // Accepts `a if b else c` only if `conditional`.
  Expression ParseExpression(bool conditional = true);
  Expression ParseTuple(bool conditional = true, bool may_be_empty = false);
  Expression ParseFilters(Expression value);

  // Parses a variable, or a constant with that name.
  Expression ParseName();
  // A function of the value of parts[0] and of the arguments in parentheses, if there are any.
  using Called = std::function<Value(const Env&, const Value&, const Arguments&)>;
  Expression ParseCall(const Expression& value, Called called);
  static Value CallValue(const Env& env, const Value& value, const Arguments& arguments);

  int open_macros_ = 0;
  bool reads_caller_ = false;  // whether it did so since this was last cleared

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
  Expression Make(int line, Expression::Parts parts, Expression::Run run) const;
  Expression ParseLogic(std::string_view op);
  Expression ParseNot();
  Expression ParseCompare();
  Expression ParseArithmetic(bool products);
  Expression ParseConcat();
  Expression ParseUnary(bool with_filter = true);
  Expression ParsePrimary();
  Expression ParseItems(bool is_dict);
  Expression ParsePostfix(Expression value, bool with_filter);
  Expression ParseAttribute(const Expression& value);
  Expression ParseSubscript(const Expression& value);
  Expression ParseTest(const Expression& value);

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int nesting_ = 0;
};

}  // namespace oscar::jinja
