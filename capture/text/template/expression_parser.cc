// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
#include "capture/text/template/expression_parser.h"

#include <fmt/format.h>

#include <algorithm>

#include "capture/files/quote.h"
#include "capture/text/template/functions.h"
#include "capture/text/template/operators.h"
#include "capture/text/template/value_text.h"

namespace oscar::jinja {
namespace {

using Parts = Expression::Parts;

Expression Constant(int line, Value value) {
  return {line, {}, [value = std::move(value)](const Parts&, const Env&) { return value; }};
}

std::vector<Value> All(const Parts& parts, const Env& env) {
  std::vector<Value> values;
  // A missing part of a slice becomes None.
  for (const Expression& part : parts) values.push_back(part ? part(env) : Value::None());
  return values;
}

}  // namespace

Token ExpressionParser::Next() {
  const Token token = tokens_[at_];
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}
bool ExpressionParser::Is(std::string_view name_or_operator) const {
  const TokenKind kind = Current().kind;
  return (kind == TokenKind::kName || kind == TokenKind::kOperator) &&
         Current().text == name_or_operator;
}
bool ExpressionParser::Skip(std::string_view name_or_operator) {
  const bool is = Is(name_or_operator);
  if (is) Next();
  return is;
}
void ExpressionParser::Expect(std::string_view name_or_operator) {
  if (!Skip(name_or_operator)) FailUnexpected(fmt::format("\"{}\"", name_or_operator));
}
std::string ExpressionParser::ExpectName() {
  if (Current().kind != TokenKind::kName) FailUnexpected("a name");
  return Next().text;
}
void ExpressionParser::Fail(const std::string& message) const {
  FailSyntax(Current().line, message);
}
void ExpressionParser::FailUnexpected(std::string_view expected) const {
  Fail(fmt::format("expected {}, found {}", expected, Quoted(Current().text, 40)));
}

ExpressionParser::Nesting::Nesting(ExpressionParser& parser) : parser_(parser) {
  if (++parser_.nesting_ > kMaxNesting) {
    --parser_.nesting_;
    parser_.Fail(fmt::format("brackets or blocks nested deeper than {} levels", kMaxNesting));
  }
}

Expression ExpressionParser::Make(int line, Parts parts, Expression::Run run) const {
  Expression made(line, std::move(parts), std::move(run));
  if (made.depth() > kMaxTreeDepth)
    Fail(fmt::format("an expression of more than {} steps in a row", kMaxTreeDepth));
  return made;
}

Expression ExpressionParser::ParseExpression(bool conditional) {
  const Nesting nesting(*this);
  Expression value = ParseLogic("or");
  while (conditional && Is("if")) {
    const int line = Next().line;
    Expression test = ParseLogic("or");
    Expression otherwise = Skip("else") ? ParseExpression() : Expression();
    value = Make(line, {test, value, otherwise}, [line](const Parts& parts, const Env& env) {
      if (parts[0](env).Truthy()) return parts[1](env);
      if (parts[2]) return parts[2](env);
      return Value::Undefined(
          fmt::format("the inline if-expression on line {} evaluated to false and no else section "
                      "was defined.",
                      line));
    });
  }
  return value;
}

Expression ExpressionParser::ParseLogic(std::string_view op) {
  const bool is_or = op == "or";
  const auto side = [&] { return is_or ? ParseLogic("and") : ParseNot(); };
  Expression left = side();
  while (Is(op)) {
    const int line = Next().line;
    left = Make(line, {left, side()}, [is_or](const Parts& parts, const Env& env) {
      Value value = parts[0](env);
      return value.Truthy() == is_or ? value : parts[1](env);
    });
  }
  return left;
}

Expression ExpressionParser::ParseNot() {
  if (!Is("not")) return ParseCompare();
  const Nesting nesting(*this);
  const int line = Next().line;
  return Make(line, {ParseNot()}, [](const Parts& parts, const Env& env) {
    return Value::Bool(!parts[0](env).Truthy());
  });
}

Expression ExpressionParser::ParseCompare() {
  static constexpr std::pair<std::string_view, Comparison> kOperators[] = {
      {"==", Comparison::kEq}, {"!=", Comparison::kNe},    {"<", Comparison::kLt},
      {"<=", Comparison::kLe}, {">", Comparison::kGt},     {">=", Comparison::kGe},
      {"in", Comparison::kIn}, {"not", Comparison::kNotIn}};
  const int line = Current().line;
  Parts parts = {ParseArithmetic(false)};
  std::vector<Comparison> comparisons;
  while (true) {
    const auto* op =
        std::ranges::find_if(kOperators, [&](const auto& row) { return Is(row.first); });
    if (op == std::end(kOperators) || (op->first == "not" && Look().text != "in")) break;
    Next();
    if (op->first == "not") Next();
    comparisons.push_back(op->second);
    parts.push_back(ParseArithmetic(false));
  }
  if (comparisons.empty()) return parts[0];
  return Make(line, std::move(parts), [line, comparisons](const Parts& sides, const Env& env) {
    Value left = sides[0](env);
    for (size_t i = 0; i < comparisons.size(); ++i) {
      Value right = sides[i + 1](env);
      env.session.line = line;
      if (!Holds(env.session, comparisons[i], left, right)) return Value::Bool(false);
      left = std::move(right);
    }
    return Value::Bool(true);
  });
}

// Parses a sum or, if `products`, a product.
Expression ExpressionParser::ParseArithmetic(bool products) {
  struct Row {
    std::string_view symbol;
    BinaryOperator op;
    bool is_product;
  };
  static constexpr Row kOperators[] = {
      {"+", BinaryOperator::kAdd, false}, {"-", BinaryOperator::kSub, false},
      {"*", BinaryOperator::kMul, true},  {"/", BinaryOperator::kDiv, true},
      {"%", BinaryOperator::kMod, true},  {"//", BinaryOperator::kFloorDiv, true}};
  const auto side = [&] { return products ? ParseUnary() : ParseConcat(); };
  Expression left = side();
  while (true) {
    if (Is("**")) Fail(NotSupported("operator", "**"));
    const auto* found = std::ranges::find_if(
        kOperators, [&](const Row& row) { return row.is_product == products && Is(row.symbol); });
    if (found == std::end(kOperators)) return left;
    const int line = Next().line;
    left = Make(line, {left, side()}, [line, op = found->op](const Parts& parts, const Env& env) {
      const Value a = parts[0](env);
      const Value b = parts[1](env);
      env.session.line = line;
      return Binary(env.session, op, a, b);
    });
  }
}

Expression ExpressionParser::ParseConcat() {
  const int line = Current().line;
  Parts parts = {ParseArithmetic(true)};
  while (Skip("~")) parts.push_back(ParseArithmetic(true));
  if (parts.size() == 1) return parts[0];
  return Make(line, std::move(parts), [](const Parts& sides, const Env& env) {
    std::string text;
    for (const Value& value : All(sides, env)) env.session.Append(Str(env.session, value), text);
    return Value::String(std::move(text));
  });
}

Expression ExpressionParser::ParseUnary(bool with_filter) {
  const Nesting nesting(*this);
  const int line = Current().line;
  if (Is("+")) Fail(NotSupported("sign", "+"));
  Expression value;
  if (Skip("-")) {
    value = Make(line, {ParseUnary(false)},
                 [](const Parts& parts, const Env& env) { return Negate(parts[0](env)); });
  } else {
    value = ParsePrimary();
  }
  return ParsePostfix(std::move(value), with_filter);
}

Expression ExpressionParser::ParseName() {
  const auto [kind, name, number, line] = Next();
  if (name == "true" || name == "True") return Constant(line, Value::Bool(true));
  if (name == "false" || name == "False") return Constant(line, Value::Bool(false));
  if (name == "none" || name == "None") return Constant(line, Value::None());
  if (open_macros_ > 0 && (name == "varargs" || name == "kwargs"))
    FailSyntax(line, NotSupported("macro variable", name));
  reads_caller_ = reads_caller_ || name == "caller";
  return Make(line, {},
              [variable = name](const Parts&, const Env& env) { return env.Lookup(variable); });
}

Expression ExpressionParser::ParsePrimary() {
  const int line = Current().line;
  if (Current().kind == TokenKind::kName) return ParseName();
  if (Current().kind == TokenKind::kNumber) return Constant(line, Next().number);
  if (Current().kind == TokenKind::kString) {
    std::string text;
    while (Current().kind == TokenKind::kString) text += Next().text;
    return Constant(line, Value::String(std::move(text)));
  }
  if (Is("[") || Is("{")) return ParseItems(Is("{"));
  if (!Skip("(")) FailUnexpected("an expression");
  const Nesting nesting(*this);
  Expression inner = ParseTuple(true, true);
  Expect(")");
  return inner;
}

Expression ExpressionParser::ParseTuple(bool conditional, bool may_be_empty) {
  const int line = Current().line;
  Parts parts;
  bool is_tuple = false;
  while (!Is("}}") && !Is("%}") && !Is(")")) {
    parts.push_back(ParseExpression(conditional));
    if (!Skip(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && !parts.empty()) return parts[0];
  if (parts.empty() && !may_be_empty) FailUnexpected("an expression");
  return Make(line, std::move(parts),
              [](const Parts& items, const Env& env) { return Value::Tuple(All(items, env)); });
}

// Parses a list, or a dict whose parts alternate between keys and values.
Expression ExpressionParser::ParseItems(bool is_dict) {
  const int line = Next().line;
  const std::string_view close = is_dict ? "}" : "]";
  Parts parts;
  while (!Is(close)) {
    parts.push_back(ParseExpression());
    if (is_dict) {
      Expect(":");
      parts.push_back(ParseExpression());
    }
    if (!Is(close)) Expect(",");
  }
  Next();
  return Make(line, std::move(parts), [is_dict](const Parts& items, const Env& env) {
    std::vector<Value> values = All(items, env);
    if (!is_dict) return Value::List(std::move(values));
    Dict dict;
    for (size_t i = 0; i < values.size(); i += 2) dict.Set(values[i], values[i + 1]);
    return Value::FromDict(std::move(dict));
  });
}

Expression ExpressionParser::ParsePostfix(Expression value, bool with_filter) {
  bool filtered = false;  // if true, only calls, filters and tests may follow
  while (true) {
    if (Is("(")) {
      value = ParseCall(value, CallValue);
    } else if (Is(".") && !filtered) {
      value = ParseAttribute(value);
    } else if (Is("[") && !filtered) {
      value = ParseSubscript(value);
    } else if (with_filter && (Is("|") || Is("is"))) {
      value = Is("|") ? ParseFilters(value) : ParseTest(value);
      filtered = true;
    } else {
      return value;
    }
  }
}

Expression ExpressionParser::ParseAttribute(const Expression& value) {
  const int line = Next().line;
  if (Current().kind == TokenKind::kNumber && Current().number.is_int()) {
    return Make(line, {value}, [index = Next().number](const Parts& parts, const Env& env) {
      return GetItem(env.session, parts[0](env), index);
    });
  }
  return Make(line, {value}, [name = ExpectName()](const Parts& parts, const Env& env) {
    return GetAttribute(env.session, parts[0](env), name);
  });
}

Expression ExpressionParser::ParseSubscript(const Expression& value) {
  const int line = Next().line;
  const auto part = [&] { return Is(":") || Is("]") ? Expression() : ParseExpression(); };
  Parts parts = {value, part()};
  if (!Is(":")) {
    if (!parts[1]) FailUnexpected("an expression");
    if (Is(",")) Fail(NotSupported("subscript separator", ","));
    Expect("]");
    return Make(line, std::move(parts), [](const Parts& sides, const Env& env) {
      const Value from = sides[0](env);
      return GetItem(env.session, from, sides[1](env));
    });
  }
  Next();
  parts.push_back(part());
  parts.push_back(Skip(":") ? part() : Expression());
  Expect("]");
  return Make(line, std::move(parts), [](const Parts& sides, const Env& env) {
    const std::vector<Value> values = All(sides, env);
    return Slice(env.session, values[0], values[1], values[2], values[3]);
  });
}

Value ExpressionParser::CallValue(const Env& env, const Value& value, const Arguments& arguments) {
  env.session.Step();
  if (auto* function = value.Known().As<Function>()) return function->Call(env.session, arguments);
  throw TemplateFailure(fmt::format("'{}' object is not callable", value.TypeName()));
}

Expression ExpressionParser::ParseCall(const Expression& value, Called called) {
  const Nesting nesting(*this);
  const int line = Current().line;
  Parts parts = {value};
  std::vector<std::string> names;  // keyword names of the last parts
  if (Skip("(")) {
    while (!Is(")")) {
      if (Is("*") || Is("**")) Fail(NotSupported("argument", Current().text));
      if (Current().kind == TokenKind::kName && Look().text == "=" &&
          Look().kind == TokenKind::kOperator) {
        if (std::ranges::find(names, Current().text) != names.end())
          Fail("the argument " + Quoted(Current().text) + " is given twice");
        names.push_back(Next().text);
        Next();
      } else if (!names.empty()) {
        Fail("an argument without a name comes after one with a name");
      }
      parts.push_back(ParseExpression());
      if (!Is(")")) Expect(",");
    }
    Next();
  }
  return Make(line, std::move(parts),
              [line, names, called = std::move(called)](const Parts& all, const Env& env) {
                std::vector<Value> values = All(all, env);
                const size_t positional = values.size() - names.size();
                Arguments arguments;
                for (size_t i = 1; i < values.size(); ++i) {
                  if (i < positional) {
                    arguments.positional.push_back(std::move(values[i]));
                  } else {
                    arguments.named.emplace_back(names[i - positional], std::move(values[i]));
                  }
                }
                env.session.line = line;
                return called(env, values[0], arguments);
              });
}

Expression ExpressionParser::ParseFilters(Expression value) {
  while (Skip("|")) {
    value = ParseCall(value, [name = ExpectName()](const Env& env, const Value& input,
                                                   const Arguments& arguments) {
      return CallFilter(env.session, name, input, arguments);
    });
  }
  return value;
}

Expression ExpressionParser::ParseTest(const Expression& value) {
  const int line = Next().line;
  const bool holds = !Skip("not");
  const std::string name = ExpectName();
  const Called test = [name, holds](const Env& env, const Value& input, const Arguments& given) {
    return Value::Bool(CallTest(env.session, name, input, given) == holds);
  };
  const TokenKind kind = Current().kind;
  if (Is("(") ||
      !(kind == TokenKind::kString || kind == TokenKind::kNumber || Is("[") || Is("{") ||
        kind == TokenKind::kName) ||
      Is("else") || Is("or") || Is("and")) {
    return ParseCall(value, test);
  }
  if (Is("is")) Fail("You cannot chain multiple tests with is");
  // The parentheses may be omitted around a single argument.
  return Make(line, {value, ParsePostfix(ParsePrimary(), false)},
              [test](const Parts& parts, const Env& env) {
                const Value input = parts[0](env);
                return test(env, input, {{parts[1](env)}, {}});
              });
}

}  // namespace oscar::jinja
