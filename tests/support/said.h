// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Helpers to check messages: the message of the error that a call throws, and whether a text
// contains another.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace oscar {

// Returns the message of the `Error` that `call` throws, or "" if it throws nothing.
template <class Error, class Call>
std::string ErrorOf(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// Returns whether `text` contains `part`; a failed assertion shows both. Every text contains an
// empty part, so a test that expects no error must also check that `text` is empty.
inline testing::AssertionResult Says(std::string_view text, std::string_view part) {
  const bool found = text.find(part) != text.npos;
  return (found ? testing::AssertionSuccess() : testing::AssertionFailure())
         << "\"" << part << "\" " << (found ? "" : "not ") << "in:\n"
         << text;
}

}  // namespace oscar
