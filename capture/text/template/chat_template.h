// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A model's chat template: Jinja as transformers renders it (an ImmutableSandboxedEnvironment with
// trim_blocks, lstrip_blocks, loop controls, generation blocks, tojson, raise_exception and
// strftime_now). It is sandboxed by construction: nothing here opens a file, and steps, text and
// nesting are bounded (session.h). Trap: values are Python's; see value.h.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "capture/text/template/session.h"

namespace oscar {

class ChatTemplate {
 public:
  using Variables = std::vector<std::pair<std::string, jinja::Value>>;
  struct Rendering {
    std::string text;
    bool reads_time = false;  // strftime_now was called
  };

  // `name` appears in errors. Throws InputError with the line if the source does not parse.
  ChatTemplate(std::string_view source, std::string name);

  // Throws InputError with the line: the message of raise_exception, or the error. May be called
  // from several threads at once.
  Rendering Render(const Variables& variables, const jinja::CivilTime& now,
                   uint64_t max_steps = jinja::Session::kMaxSteps) const;

  const std::string& name() const { return name_; }
  const std::string& sha256() const { return sha256_; }  // of the source

 private:
  struct Program;
  std::string name_, sha256_;
  std::shared_ptr<const Program> program_;
};

}  // namespace oscar
