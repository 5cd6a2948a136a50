// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
#include "capture/text/template/program.h"

#include <fmt/format.h>

#include <algorithm>

#include "capture/text/template/functions.h"
#include "capture/text/template/operators.h"

namespace oscar::jinja {

Value Env::Lookup(const std::string& name) const {
  for (const Scope* at = scope.get(); at != nullptr; at = at->outer.get()) {
    const auto found = at->names.find(name);
    if (found != at->names.end()) return found->second;
  }
  if (auto global = FindGlobal(name)) return *std::move(global);
  return Value::Undefined(fmt::format("'{}' is undefined", name));
}

Expression::Expression(int line, Parts parts, Run run) {
  Node node{line, std::move(parts), std::move(run)};
  for (const Expression& part : node.parts) node.depth = std::max(node.depth, part.depth() + 1);
  node_ = std::make_shared<const Node>(std::move(node));
}

Value Expression::operator()(const Env& env) const {
  const Session::Level level(env.session);
  env.session.Step();
  env.session.line = node_->line;
  return node_->run(node_->parts, env);
}

Flow Run(const Block& block, const Env& env, std::string& out) {
  for (const Statement& statement : *block) {
    env.session.line = statement.line;
    env.session.Step();
    const Flow flow = statement.run(env, out);
    if (flow != Flow::kNormal) return flow;
  }
  return Flow::kNormal;
}

std::string RunToText(const Block& block, const Env& env) {
  const Session::Level level(env.session);
  std::string out;
  Run(block, env, out);
  return out;
}

void Target::Assign(const Value& value, const Env& env) const {
  env.session.Step();
  if (parts.empty() && attribute.empty()) {
    env.scope->names.insert_or_assign(name, value);
    return;
  }
  if (parts.empty()) {
    const Value object = env.Lookup(name);
    auto* space = object.As<Namespace>();
    if (space == nullptr) throw TemplateFailure("cannot assign attribute on non-namespace object");
    space->attributes.Set(Value::String(attribute), value);
    return;
  }
  std::vector<Value> items;
  const Cursor cursor = Iterate(env.session, value);
  for (Value item; items.size() <= parts.size() && cursor(&item);) items.push_back(item);
  if (items.size() != parts.size()) {
    throw TemplateFailure(fmt::format("{} values to unpack (expected {})",
                                      items.size() > parts.size() ? "too many" : "not enough",
                                      parts.size()));
  }
  for (size_t i = 0; i < items.size(); ++i) parts[i].Assign(items[i], env);
}

void For::Run(const Env& env, std::string& out) const {
  const Session::Level level(env.session);
  const Value items = iterable(env);
  Cursor cursor = Iterate(env.session, items);
  std::optional<int64_t> length = Length(env.session, items);
  if (filter) {
    length.reset();
    // Reads items until the condition holds for one. The condition sees the loop's target, but not
    // the variable `loop`.
    cursor = [this, env, all = std::move(cursor)](Value* item) {
      while (all(item)) {
        const Env inner = env.Inner();
        target.Assign(*item, inner);
        if (filter(inner).Truthy()) return true;
      }
      return false;
    };
  }
  const auto loop = std::make_shared<Loop>(std::move(cursor), length);
  const Value loop_value = Value::Of(loop);
  // As in Jinja's compiled code, else runs unless an iteration completed without break or continue.
  bool completed = false;
  for (Value item; loop->Next(&item);) {
    const Env inner = env.Inner();
    inner.scope->names.emplace("loop", loop_value);
    target.Assign(item, inner);
    const Flow flow = jinja::Run(body, inner, out);
    if (flow == Flow::kBreak) break;
    completed = completed || flow == Flow::kNormal;
  }
  if (!completed) jinja::Run(otherwise, env.Inner(), out);
}

// Trap: a missing argument is an undefined value, not an error (Jinja2 runtime.py, Macro).
Value Macro::Call(const Env& env, const Arguments& arguments) const {
  const Session::Level level(env.session);
  const int line = env.session.line;
  if (arguments.positional.size() > parameters.size()) {
    throw TemplateFailure(
        fmt::format("macro '{}' takes not more than {} argument(s)", name, parameters.size()));
  }
  const Env inner = env.Inner();
  for (const auto& [parameter, fallback] : parameters) {
    inner.scope->names.insert_or_assign(
        parameter, Value::Undefined(fmt::format("parameter '{}' was not provided", parameter)));
  }
  size_t taken = arguments.positional.size();
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto& [parameter, fallback] = parameters[i];
    const auto named =
        std::ranges::find(arguments.named, parameter, [](const auto& row) { return row.first; });
    Value& value = inner.scope->names.at(parameter);
    if (i < arguments.positional.size()) {
      value = arguments.positional[i];
    } else if (named != arguments.named.end()) {
      value = named->second;
      ++taken;
    } else if (fallback) {
      value = fallback(inner);
    }
  }
  if (reads_caller) {
    const auto given = std::ranges::find(
        arguments.named, "caller", [](const auto& row) -> std::string_view { return row.first; });
    const bool has = given != arguments.named.end();
    inner.scope->names.emplace("caller",
                               has ? given->second : Value::Undefined("No caller defined"));
    taken += has ? 1 : 0;
  }
  if (taken < arguments.positional.size() + arguments.named.size()) {
    throw TemplateFailure(
        fmt::format("macro '{}' was given a keyword argument that it does not have, or that was "
                    "already given by position",
                    name));
  }
  Value text = env.session.String(RunToText(body, inner));
  env.session.line = line;
  return text;
}

Value FunctionOf(const std::shared_ptr<const Macro>& macro, const Env& env) {
  return Value::Of(std::make_shared<Function>(
      [macro, scope = env.scope](Session& session, const Arguments& given) {
        return macro->Call({session, scope}, given);
      }));
}

}  // namespace oscar::jinja
