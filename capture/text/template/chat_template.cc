// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
#include "capture/text/template/chat_template.h"

#include <fmt/format.h>

#include "capture/files/digest.h"
#include "capture/files/utf8.h"
#include "capture/text/template/program.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

// Real templates are below 100 KB. A parse tree takes about a hundred times as much as its text.
constexpr size_t kMaxSourceBytes = size_t{1} << 20;

}  // namespace

struct ChatTemplate::Program {
  jinja::Block block;
};

ChatTemplate::ChatTemplate(std::string_view source, std::string name)
    : name_(std::move(name)), sha256_(Sha256Hex(source)) {
  if (source.size() > kMaxSourceBytes) {
    throw InputError(fmt::format("{}: the chat template has {} bytes, expected at most {}", name_,
                                 source.size(), kMaxSourceBytes));
  }
  if (const auto invalid = FirstInvalidUtf8(source))
    throw InputError(fmt::format("{}: the chat template is not UTF-8 at byte {}", name_, *invalid));
  try {
    program_ = std::make_shared<Program>(Program{jinja::ParseTemplate(source)});
  } catch (const jinja::TemplateFailure& failure) {
    throw InputError(fmt::format("{}: {}", name_, failure.what()));
  }
}

ChatTemplate::Rendering ChatTemplate::Render(const Variables& variables,
                                             const jinja::CivilTime& now,
                                             uint64_t max_steps) const {
  jinja::Session session(max_steps);
  session.now = now;
  // Variables set by the template hide those of the caller, but are kept separately.
  const auto scope = std::make_shared<jinja::Scope>();
  for (const auto& [variable, value] : variables) scope->names.insert_or_assign(variable, value);
  try {
    std::string text = RunToText(program_->block, jinja::Env{session, scope}.Inner());
    return {std::move(text), session.time_was_read};
  } catch (const jinja::TemplateFailure& failure) {
    throw InputError(fmt::format("{}:{}: {}", name_, session.line, failure.what()));
  }
}

}  // namespace oscar
