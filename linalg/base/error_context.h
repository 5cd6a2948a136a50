// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Adds the current step to out-of-memory and device errors, which LibTorch reports without it.
#pragma once

#include <algorithm>
#include <array>
#include <cctype>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "linalg/base/error.h"

namespace oscar {

// Whether a message from LibTorch, CUDA or the system reports exhausted memory or a failed device.
inline bool IsResourceFailure(std::string_view message) {
  constexpr std::array<std::string_view, 8> kSigns = {
      "out of memory", "can't allocate memory", "cannot allocate memory",
      "cuda error",    "cuda driver",           "cublas_status",
      "cusolver",      "no cuda gpus"};
  std::string lower(message);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return std::ranges::any_of(
      kSigns, [&](std::string_view sign) { return lower.find(sign) != std::string::npos; });
}

// Returns LibTorch's message without its stack trace and its list of other GPU processes.
inline std::string FirstWords(const std::exception& error) {
  std::string text = error.what();
  text.erase(std::min(text.find('\n'), text.size()));
  constexpr std::string_view kFree = " is free";
  if (const size_t free = text.find(kFree); free != std::string::npos && text.starts_with("CUDA"))
    text.erase(free + kFree.size());
  return text;
}

// Must be called in an exception handler. Turns an out-of-memory or device error into a
// ResourceError whose message begins with `step`, and rethrows any other exception.
[[noreturn]] inline void RethrowNaming(std::string_view step) {
  try {
    throw;
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw ResourceError(std::string(step) + ": out of memory", Remedy::kSeePlan);
  } catch (const std::exception& error) {
    const std::string text = FirstWords(error);
    if (!IsResourceFailure(text)) throw;
    throw ResourceError(std::string(step) + ": " + text, Remedy::kSeePlan);
  }
}

// Runs `work`. If it fails because of memory or a device, the message of the error begins with
// `step`: "running layer 3: CUDA error: unspecified launch failure".
template <typename Work>
decltype(auto) WithErrorContext(std::string_view step, Work&& work) {
  try {
    return std::forward<Work>(work)();
  } catch (const std::exception&) {
    RethrowNaming(step);
  }
}

}  // namespace oscar
