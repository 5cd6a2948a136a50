// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
#include "capture/text/template/program.h"

#include <fmt/format.h>

#include <algorithm>

#include "capture/text/template/functions.h"

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

}  // namespace oscar::jinja
