// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads what errors and programs say: the message that a call throws, and whether a text has a
// part.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace oscar {

// Returns the message of the `Error` that `call` throws, "" if it throws nothing.
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
// empty part, so a table with empty parts also compares whether there was an error at all.
inline testing::AssertionResult Says(std::string_view text, std::string_view part) {
  const bool found = text.find(part) != text.npos;
  return (found ? testing::AssertionSuccess() : testing::AssertionFailure())
         << "\"" << part << "\" " << (found ? "" : "not ") << "in:\n"
         << text;
}

}  // namespace oscar
