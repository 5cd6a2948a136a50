// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
#include "capture/text/template/parser.h"

#include <fmt/format.h>

#include <algorithm>

#include "capture/files/quote.h"

namespace oscar::jinja {
namespace {

using Ends = std::initializer_list<std::string_view>;

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
  void ExpectBlockEnd() {
    if (Current().kind != TokenKind::kBlockEnd) FailUnexpected("%}");
    Next();
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
      if (Current().kind == TokenKind::kData) {
        body.push_back(Statement(StmtKind::kData));
        body.back()->text = Next().text;
      } else if (Current().kind == TokenKind::kVariableBegin) {
        Next();
        body.push_back(Statement(StmtKind::kPrint));
        body.back()->expressions.push_back(ParseTuple({}));
        if (Current().kind != TokenKind::kVariableEnd) FailUnexpected("}}");
        Next();
      } else {
        Next();  // {%
        if (Current().kind != TokenKind::kName) FailUnexpected("the name of a tag");
        if (std::ranges::find(ends, Current().text) != ends.end()) return body;
        body.push_back(ParseStatement(ends));
        ExpectBlockEnd();
      }
    }
  }

  // The rest of the opening tag, then its body; the closing name is consumed.
  Body ParseBlock(Ends ends, std::string* ended_by = nullptr) {
    SkipOperator(":");
    ExpectBlockEnd();
    Body body = ParseBody(ends);
    const Token end = Next();
    if (ended_by != nullptr) *ended_by = end.text;
    return body;
  }

  std::unique_ptr<Stmt> ParseStatement(Ends ends) {
    using Method = std::unique_ptr<Stmt> (Parser::*)();
    static constexpr std::pair<std::string_view, Method> kTags[] = {
        {"for", &Parser::ParseFor},
        {"if", &Parser::ParseIf},
        {"set", &Parser::ParseSet},
        {"macro", &Parser::ParseMacro},
        {"call", &Parser::ParseCallBlock},
        {"filter", &Parser::ParseFilterBlock},
        {"with", &Parser::ParseWith},
        {"print", &Parser::ParsePrint},
        {"generation", &Parser::ParseGeneration},
        {"break", &Parser::ParseLoopControl},
        {"continue", &Parser::ParseLoopControl}};
    const std::string& name = Current().text;
    const auto* tag = std::ranges::find(kTags, name, [](const auto& row) { return row.first; });
    if (tag != std::end(kTags)) return (this->*tag->second)();
    static constexpr std::string_view kRefused[] = {"include", "import", "from",  "extends",
                                                    "block",   "do",     "trans", "autoescape"};
    if (std::ranges::find(kRefused, name) != std::end(kRefused)) {
      Fail(fmt::format("the tag \"{}\" is not supported: a chat template stands alone", name));
    }
    if (ends.size() > 0) {
      Fail(fmt::format("unknown tag {}; the block that is open here needs \"{}\"", Quoted(name),
                       *(ends.end() - 1)));
    }
    Fail(fmt::format("unknown tag {}", Quoted(name)));
  }

  void CheckTarget(const Expr& target) const {
    if (target.kind == ExprKind::kTuple) {
      for (const ExprPtr& part : target.parts) CheckTarget(*part);
      return;
    }
    if (target.kind == ExprKind::kName || target.kind == ExprKind::kNamespaceRef) return;
    FailSyntax(target.line, "this cannot be assigned to");
  }

  static void CheckNotLoop(const Expr& target) {
    for (const ExprPtr& part : target.parts) CheckNotLoop(*part);
    if (target.name == "loop")
      FailSyntax(target.line, "Can't assign to special loop variable in for-loop target");
  }

  ExprPtr ParseTarget(bool namespaces, bool until_in) {
    ExprPtr target = ParseTuple({.simple = true, .until_in = until_in, .namespaces = namespaces});
    CheckTarget(*target);
    return target;
  }

  std::unique_ptr<Stmt> ParseFor() {
    auto loop = Statement(StmtKind::kFor);
    Next();
    loop->target = ParseTarget(false, true);
    CheckNotLoop(*loop->target);
    if (!SkipName("in")) FailUnexpected("\"in\"");
    loop->expressions.push_back(ParseTuple({.conditional = false, .until_recursive = true}));
    loop->expressions.push_back(SkipName("if") ? ParseExpression() : nullptr);
    loop->recursive = SkipName("recursive");
    std::string ended_by;
    loop->body = ParseBlock({"else", "endfor"}, &ended_by);
    if (ended_by == "else") loop->else_body = ParseBlock({"endfor"});
    return loop;
  }

  std::unique_ptr<Stmt> ParseIf() {
    auto statement = Statement(StmtKind::kIf);
    Next();
    std::string ended_by;
    do {
      statement->expressions.push_back(ParseTuple({.conditional = false}));
      statement->branches.push_back(ParseBlock({"elif", "else", "endif"}, &ended_by));
    } while (ended_by == "elif");
    if (ended_by == "else") statement->else_body = ParseBlock({"endif"});
    return statement;
  }

  std::unique_ptr<Stmt> ParseSet() {
    auto statement = Statement(StmtKind::kSet);
    Next();
    statement->target = ParseTarget(true, false);
    if (SkipOperator("=")) {
      statement->expressions.push_back(ParseTuple({}));
      return statement;
    }
    statement->kind = StmtKind::kSetBlock;
    statement->expressions.push_back(ParseFilters(nullptr, false));
    statement->body = ParseBlock({"endset"});
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
    ExpectOperator(")");
    return parameters;
  }

  // The body of a macro, and which of the special names it reads.
  void ParseMacroBody(Stmt& macro, Ends ends) {
    const size_t before = names_read_.size();
    macro.body = ParseBlock(ends);
    const auto reads = [&](std::string_view name) {
      return std::find(names_read_.begin() + static_cast<ptrdiff_t>(before), names_read_.end(),
                       name) != names_read_.end();
    };
    macro.reads_varargs = reads("varargs");
    macro.reads_kwargs = reads("kwargs");
    macro.reads_caller = reads("caller");
  }

  std::unique_ptr<Stmt> ParseMacro() {
    auto macro = Statement(StmtKind::kMacro);
    Next();
    macro->text = ExpectName();
    macro->parameters = ParseParameters();
    ParseMacroBody(*macro, {"endmacro"});
    return macro;
  }

  std::unique_ptr<Stmt> ParseCallBlock() {
    auto block = Statement(StmtKind::kCallBlock);
    Next();
    if (IsOperator("(")) block->parameters = ParseParameters();
    block->expressions.push_back(ParseExpression());
    if (block->expressions[0]->kind != ExprKind::kCall) Fail("expected call");
    ParseMacroBody(*block, {"endcall"});
    return block;
  }

  std::unique_ptr<Stmt> ParseFilterBlock() {
    auto block = Statement(StmtKind::kFilterBlock);
    Next();
    block->expressions.push_back(ParseFilters(nullptr, true));
    block->body = ParseBlock({"endfilter"});
    return block;
  }

  std::unique_ptr<Stmt> ParseWith() {
    auto block = Statement(StmtKind::kWith);
    Next();
    while (Current().kind != TokenKind::kBlockEnd) {
      if (!block->targets.empty()) ExpectOperator(",");
      block->targets.push_back(ParseTarget(false, false));
      ExpectOperator("=");
      block->expressions.push_back(ParseExpression());
    }
    block->body = ParseBlock({"endwith"});
    return block;
  }

  std::unique_ptr<Stmt> ParsePrint() {
    auto statement = Statement(StmtKind::kPrint);
    Next();
    while (Current().kind != TokenKind::kBlockEnd) {
      if (!statement->expressions.empty()) ExpectOperator(",");
      statement->expressions.push_back(ParseExpression());
    }
    return statement;
  }

  std::unique_ptr<Stmt> ParseGeneration() {
    auto block = Statement(StmtKind::kGeneration);
    Next();
    block->body = ParseBlock({"endgeneration"});
    return block;
  }

  std::unique_ptr<Stmt> ParseLoopControl() {
    auto statement = Statement(StmtKind::kBreak);
    if (Next().text == "continue") statement->kind = StmtKind::kContinue;
    return statement;
  }
};

}  // namespace

Body ParseTemplate(std::string_view source) { return Parser(Tokenize(source)).Parse(); }

}  // namespace oscar::jinja
