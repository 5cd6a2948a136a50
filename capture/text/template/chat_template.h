// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A model's chat template: Jinja as transformers renders it (an ImmutableSandboxedEnvironment with
// trim_blocks, lstrip_blocks, loop controls, generation blocks, tojson, raise_exception and
// strftime_now). A template cannot open files, and the number of steps, the size of texts and the
// depth of nesting are limited (session.h). Trap: values behave as in Python (value.h).
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

  // `name` is used in errors. Throws InputError naming the line if the source does not parse.
  ChatTemplate(std::string_view source, std::string name);

  // Throws InputError naming the line and the reason: the message of raise_exception, or the error.
  // Can be called from several threads at once.
  Rendering Render(const Variables& variables, const jinja::CivilTime& now,
                   uint64_t max_steps = jinja::Session::kMaxSteps) const;

  const std::string& name() const { return name_; }
  const std::string& sha256() const { return sha256_; }  // hash of the source text

 private:
  struct Program;
  std::string name_, sha256_;
  std::shared_ptr<const Program> program_;
};

}  // namespace oscar
