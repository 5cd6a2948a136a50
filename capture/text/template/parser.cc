// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Parses the statements of a template; program.cc executes them.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "capture/files/quote.h"
#include "capture/text/template/expression_parser.h"
#include "capture/text/template/value_text.h"

namespace oscar::jinja {
namespace {

using Ends = std::initializer_list<std::string_view>;

constexpr std::string_view kRefusedTags[] = {"autoescape", "block", "do",     "extends",
                                             "filter",     "from",  "import", "include",
                                             "print",      "raw",   "trans",  "with"};

class Parser : public ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  Block Parse() { return ParseBody({}); }

 private:
  // Parses statements up to a tag whose name is in `ends`; that name is then the current token. If
  // `ends` is empty, it parses the whole template.
  Block ParseBody(Ends ends) {
    const Nesting nesting(*this);
    std::vector<Statement> body;
    while (true) {
      const int line = Current().line;
      if (Current().kind == TokenKind::kEnd) {
        if (ends.size() == 0) break;
        Fail(fmt::format("the template ends here, but a block is open that needs \"{}\"",
                         *(ends.end() - 1)));
      }
      if (Current().kind == TokenKind::kText) {
        body.push_back({line, [text = Next().text](const Env& env, std::string& out) {
                          env.session.Append(text, out);
                          return Flow::kNormal;
                        }});
      } else if (Skip("{{")) {
        body.push_back({line, [value = ParseTuple()](const Env& env, std::string& out) {
                          env.session.Append(Str(env.session, value(env)), out);
                          return Flow::kNormal;
                        }});
        Expect("}}");
      } else {
        Next();  // {%
        if (Current().kind != TokenKind::kName) FailUnexpected("the name of a tag");
        if (std::ranges::find(ends, Current().text) != ends.end()) break;
        body.push_back({Current().line, ParseStatement(ends)});
        Expect("%}");
      }
    }
    return std::make_shared<const std::vector<Statement>>(std::move(body));
  }

  // Parses the rest of the opening tag and its body; consumes and returns the closing name.
  std::string ParseBlock(Ends ends, Block& body) {
    Skip(":");
    Expect("%}");
    body = ParseBody(ends);
    return Next().text;
  }

  // Parses a block in which a break cannot end an enclosing loop.
  Block ParseOwnBlock(std::string_view end) {
    const int loops = std::exchange(open_loops_, 0);
    Block body;
    ParseBlock({end}, body);
    open_loops_ = loops;
    return body;
  }

  using Run = std::function<Flow(const Env&, std::string&)>;

  Run ParseStatement(Ends ends) {
    using Method = Run (Parser::*)();
    static constexpr std::pair<std::string_view, Method> kTags[] = {
        {"for", &Parser::ParseFor},           {"if", &Parser::ParseIf},
        {"set", &Parser::ParseSet},           {"macro", &Parser::ParseMacro},
        {"call", &Parser::ParseCallBlock},    {"generation", &Parser::ParseGeneration},
        {"break", &Parser::ParseLoopControl}, {"continue", &Parser::ParseLoopControl}};
    const std::string& name = Current().text;
    const auto* tag = std::ranges::find(kTags, name, [](const auto& row) { return row.first; });
    if (tag != std::end(kTags)) return (this->*tag->second)();
    if (std::ranges::find(kRefusedTags, name) != std::end(kRefusedTags))
      Fail(NotSupported("tag", name));
    if (ends.size() == 0) Fail(fmt::format("unknown tag {}", Quoted(name)));
    Fail(fmt::format("unknown tag {}; the block that is open here needs \"{}\"", Quoted(name),
                     *(ends.end() - 1)));
  }

  Target ParseTarget(bool in_loop) {
    std::vector<Target> parts;
    bool is_tuple = false;
    do {
      if (!parts.empty() && (Is("in") || Is("=") || Is(")") || Is("%}"))) break;
      const Nesting nesting(*this);
      if (Skip("(")) {
        parts.push_back(ParseTarget(in_loop));
        Expect(")");
      } else {
        if (in_loop && Is("loop")) Fail("Can't assign to special loop variable in for-loop target");
        parts.push_back({ExpectName(), "", {}});
        if (!in_loop && Skip(".")) parts.back().attribute = ExpectName();
      }
      is_tuple = is_tuple || Is(",");
    } while (Skip(","));
    if (!is_tuple) return parts[0];
    return {"", "", std::move(parts)};
  }

  Run ParseFor() {
    For loop;
    Next();
    loop.target = ParseTarget(true);
    Expect("in");
    loop.iterable = ParseTuple(false);
    if (Skip("if")) loop.filter = ParseExpression();
    if (Is("recursive")) Fail(NotSupported("loop modifier", "recursive"));
    ++open_loops_;
    const std::string end = ParseBlock({"else", "endfor"}, loop.body);
    --open_loops_;
    loop.otherwise = std::make_shared<const std::vector<Statement>>();
    if (end == "else") ParseBlock({"endfor"}, loop.otherwise);
    return [loop = std::move(loop)](const Env& env, std::string& out) {
      loop.Run(env, out);
      return Flow::kNormal;
    };
  }

  Run ParseIf() {
    std::vector<std::pair<Expression, Block>> branches;  // the branch for else has no expression
    std::string end;
    Next();
    do {
      const bool is_else = end == "else";
      branches.emplace_back(is_else ? Expression() : ParseTuple(false), nullptr);
      end = is_else ? ParseBlock({"endif"}, branches.back().second)
                    : ParseBlock({"elif", "else", "endif"}, branches.back().second);
    } while (end != "endif");
    return [branches](const Env& env, std::string& out) {
      const Session::Level level(env.session);
      for (const auto& [test, body] : branches) {
        if (!test || test(env).Truthy()) return jinja::Run(body, env, out);
      }
      return Flow::kNormal;
    };
  }

  Run ParseSet() {
    Next();
    Target target = ParseTarget(false);
    Expression value;
    if (Skip("=")) {
      value = ParseTuple();
    } else {
      const auto text = std::make_shared<Block>();
      value = ParseFilters(
          Expression(Current().line, {}, [text](const Expression::Parts&, const Env& env) {
            return env.session.String(RunToText(*text, env.Inner()));
          }));
      *text = ParseOwnBlock("endset");
    }
    return [target = std::move(target), value](const Env& env, std::string&) {
      target.Assign(value(env), env);
      return Flow::kNormal;
    };
  }

  // Starts after the opening parenthesis.
  void ParseParameters(Macro& macro) {
    std::vector<Macro::Parameter>& known = macro.parameters;
    while (!Skip(")")) {
      if (!known.empty()) Expect(",");
      Macro::Parameter parameter{ExpectName(), Expression()};
      if (Skip("=")) {
        parameter.fallback = ParseExpression();
      } else if (!known.empty() && known.back().fallback) {
        Fail("non-default argument follows default argument");
      }
      if (std::ranges::find(known, parameter.name, &Macro::Parameter::name) != known.end())
        Fail("duplicate argument " + Quoted(parameter.name));
      known.push_back(std::move(parameter));
    }
  }

  void ParseMacroBody(Macro& macro, std::string_view end) {
    ++open_macros_;
    const bool outer_reads_caller = std::exchange(reads_caller_, false);
    macro.body = ParseOwnBlock(end);
    const bool is_parameter = std::ranges::find(macro.parameters, "caller",
                                                &Macro::Parameter::name) != macro.parameters.end();
    macro.reads_caller = reads_caller_ && !is_parameter;
    reads_caller_ = reads_caller_ || outer_reads_caller;
    --open_macros_;
  }

  Run ParseMacro() {
    const auto macro = std::make_shared<Macro>();
    Next();
    macro->name = ExpectName();
    Expect("(");
    ParseParameters(*macro);
    ParseMacroBody(*macro, "endmacro");
    return [macro](const Env& env, std::string&) {
      // The scope holds the macro, which holds the scope. The session breaks that cycle at its end.
      env.session.AtEnd([scope = env.scope] { scope->names.clear(); });
      env.scope->names.insert_or_assign(macro->name, FunctionOf(macro, env));
      return Flow::kNormal;
    };
  }

  // {% call m(x) %} calls the macro m, in which caller() returns the text of the block.
  Run ParseCallBlock() {
    const auto caller = std::make_shared<Macro>();
    caller->name = Next().text;
    if (Skip("(")) ParseParameters(*caller);
    const Expression callee = ParseName();
    if (!Is("(")) FailUnexpected("a call");
    const Expression call =
        ParseCall(callee, [caller](const Env& env, const Value& value, const Arguments& given) {
          Arguments arguments = given;
          arguments.named.emplace_back("caller", FunctionOf(caller, env));
          return CallValue(env, value, arguments);
        });
    ParseMacroBody(*caller, "endcall");
    return [call](const Env& env, std::string& out) {
      env.session.Append(Str(env.session, call(env)), out);
      return Flow::kNormal;
    };
  }

  Run ParseGeneration() {
    Next();
    return [body = ParseOwnBlock("endgeneration")](const Env& env, std::string& out) {
      env.session.Append(RunToText(body, env.Inner()), out);
      return Flow::kNormal;
    };
  }

  Run ParseLoopControl() {
    if (open_loops_ == 0) Fail(Quoted(Current().text) + " outside of a loop");
    const Flow flow = Next().text == "break" ? Flow::kBreak : Flow::kContinue;
    return [flow](const Env&, std::string&) { return flow; };
  }

  int open_loops_ = 0;
};

}  // namespace

Block ParseTemplate(std::string_view source) { return Parser(Tokenize(source)).Parse(); }

}  // namespace oscar::jinja
