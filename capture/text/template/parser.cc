// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
#include "capture/text/template/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "capture/files/quote.h"

namespace oscar::jinja {
namespace {

using Ends = std::initializer_list<std::string_view>;

constexpr std::string_view kRefusedTags[] = {"autoescape", "block", "call",   "do",      "extends",
                                             "filter",     "from",  "import", "include", "print",
                                             "raw",        "trans", "with"};

class Parser : public ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  Body Parse() { return ParseBody({}); }

 private:
  std::unique_ptr<Stmt> Statement(StmtKind kind) const {
    auto statement = std::make_unique<Stmt>();
    statement->kind = kind;
    statement->line = Current().line;
    return statement;
  }

  // Statements up to a tag whose name is one of `ends`; that name is the current token then.
  // Without ends: the whole template.
  Body ParseBody(Ends ends) {
    const Nesting nesting(*this);
    Body body;
    while (true) {
      if (Current().kind == TokenKind::kEnd) {
        if (ends.size() == 0) return body;
        Fail(fmt::format("the template ends here, but a block is open that needs \"{}\"",
                         *(ends.end() - 1)));
      }
      if (Current().kind == TokenKind::kText) {
        body.push_back(Statement(StmtKind::kText));
        body.back()->text = Next().text;
      } else if (SkipOperator("{{")) {
        body.push_back(Statement(StmtKind::kPrint));
        body.back()->expressions.push_back(ParseTuple({}));
        ExpectOperator("}}");
      } else {
        Next();  // {%
        if (Current().kind != TokenKind::kName) FailUnexpected("the name of a tag");
        if (std::ranges::find(ends, Current().text) != ends.end()) return body;
        body.push_back(ParseStatement(ends));
        ExpectOperator("%}");
      }
    }
  }

  // The rest of the opening tag, then its body; the closing name is consumed and returned.
  std::string ParseBlock(Ends ends, Body& body) {
    SkipOperator(":");
    ExpectOperator("%}");
    body = ParseBody(ends);
    return Next().text;
  }

  // A break in it cannot end a loop around it.
  void ParseOwnBlock(Ends ends, Body& body) {
    const int loops = std::exchange(open_loops_, 0);
    ParseBlock(ends, body);
    open_loops_ = loops;
  }

  std::unique_ptr<Stmt> ParseStatement(Ends ends) {
    using Method = std::unique_ptr<Stmt> (Parser::*)();
    static constexpr std::pair<std::string_view, Method> kTags[] = {
        {"for", &Parser::ParseFor},
        {"if", &Parser::ParseIf},
        {"set", &Parser::ParseSet},
        {"macro", &Parser::ParseMacro},
        {"generation", &Parser::ParseGeneration},
        {"break", &Parser::ParseLoopControl},
        {"continue", &Parser::ParseLoopControl}};
    const std::string& name = Current().text;
    const auto* tag = std::ranges::find(kTags, name, [](const auto& row) { return row.first; });
    if (tag != std::end(kTags)) return (this->*tag->second)();
    if (std::ranges::find(kRefusedTags, name) != std::end(kRefusedTags))
      Fail(NotSupported("tag", name));
    if (ends.size() == 0) Fail(fmt::format("unknown tag {}", Quoted(name)));
    Fail(fmt::format("unknown tag {}; the block that is open here needs \"{}\"", Quoted(name),
                     *(ends.end() - 1)));
  }

  void CheckTarget(const Expr& target, bool in_loop) const {
    if (target.kind == ExprKind::kTuple) {
      for (const ExprPtr& part : target.parts) CheckTarget(*part, in_loop);
      return;
    }
    if (target.kind != ExprKind::kName && target.kind != ExprKind::kNamespaceRef)
      FailSyntax(target.line, "this cannot be assigned to");
    if (in_loop && target.name == "loop")
      FailSyntax(target.line, "Can't assign to special loop variable in for-loop target");
  }

  std::unique_ptr<Stmt> ParseFor() {
    auto loop = Statement(StmtKind::kFor);
    Next();
    loop->target = ParseTuple({.simple = true});
    CheckTarget(*loop->target, true);
    if (!SkipName("in")) FailUnexpected("\"in\"");
    loop->expressions.push_back(ParseTuple({.conditional = false}));
    loop->expressions.push_back(SkipName("if") ? ParseExpression() : nullptr);
    if (IsName("recursive")) Fail(NotSupported("mark of a loop", "recursive"));
    ++open_loops_;
    const std::string end = ParseBlock({"else", "endfor"}, loop->body);
    --open_loops_;
    if (end == "else") ParseBlock({"endfor"}, loop->else_body);
    return loop;
  }

  std::unique_ptr<Stmt> ParseIf() {
    auto statement = Statement(StmtKind::kIf);
    std::string end;
    do {
      if (statement->branches.empty()) Next();
      statement->expressions.push_back(ParseTuple({.conditional = false}));
      statement->branches.emplace_back();
      end = ParseBlock({"elif", "else", "endif"}, statement->branches.back());
    } while (end == "elif");
    if (end == "else") ParseBlock({"endif"}, statement->else_body);
    return statement;
  }

  std::unique_ptr<Stmt> ParseSet() {
    auto statement = Statement(StmtKind::kSet);
    Next();
    statement->target = ParseTuple({.simple = true, .namespaces = true});
    CheckTarget(*statement->target, false);
    if (SkipOperator("=")) {
      statement->expressions.push_back(ParseTuple({}));
    } else {
      statement->kind = StmtKind::kSetBlock;
      statement->expressions.push_back(ParseFilters(nullptr));
      ParseOwnBlock({"endset"}, statement->body);
    }
    return statement;
  }

  std::vector<Parameter> ParseParameters() {
    std::vector<Parameter> parameters;
    ExpectOperator("(");
    while (!IsOperator(")")) {
      if (!parameters.empty()) ExpectOperator(",");
      Parameter parameter{ExpectName(), nullptr};
      if (SkipOperator("=")) {
        parameter.default_value = ParseExpression();
      } else if (!parameters.empty() && parameters.back().default_value != nullptr) {
        Fail("non-default argument follows default argument");
      }
      if (std::ranges::find(parameters, parameter.name, &Parameter::name) != parameters.end())
        Fail("duplicate argument " + Quoted(parameter.name));
      parameters.push_back(std::move(parameter));
    }
    Next();
    return parameters;
  }

  std::unique_ptr<Stmt> ParseMacro() {
    auto macro = Statement(StmtKind::kMacro);
    Next();
    macro->text = ExpectName();
    ++open_macros_;
    macro->parameters = ParseParameters();
    ParseOwnBlock({"endmacro"}, macro->body);
    --open_macros_;
    return macro;
  }

  std::unique_ptr<Stmt> ParseGeneration() {
    auto block = Statement(StmtKind::kGeneration);
    Next();
    ParseOwnBlock({"endgeneration"}, block->body);
    return block;
  }

  std::unique_ptr<Stmt> ParseLoopControl() {
    if (open_loops_ == 0) Fail(Quoted(Current().text) + " outside of a loop");
    auto statement = Statement(StmtKind::kBreak);
    if (Next().text == "continue") statement->kind = StmtKind::kContinue;
    return statement;
  }

  int open_loops_ = 0;
};

}  // namespace

Body ParseTemplate(std::string_view source) { return Parser(Tokenize(source)).Parse(); }

}  // namespace oscar::jinja
