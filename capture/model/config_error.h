// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What ConfigReader throws: an InputError that knows which field it blames, for those who want to
// know about the other fields too. `where` is text, "config.json: text_config", and the field
// may be one that is not there.
#pragma once

#include <string>
#include <utility>

#include "linalg/error.h"

namespace oscar {

class ConfigFieldError : public InputError {
 public:
  ConfigFieldError(std::string where, std::string key, const std::string& message)
      : InputError(message), where_(std::move(where)), key_(std::move(key)) {}
  const std::string& where() const { return where_; }
  const std::string& key() const { return key_; }

 private:
  std::string where_, key_;
};

}  // namespace oscar
