// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/evaluate/prompt_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>

#include "capture/files/quote.h"
#include "linalg/base/error.h"

namespace oscar {

std::vector<int32_t> PromptEncoder::Encode(const std::string& text) const {
  std::vector<int32_t> ids = leading_;
  const std::vector<int32_t> plain = tokenizer_.Encode(text, false);
  ids.insert(ids.end(), plain.begin(), plain.end());
  return ids;
}

NeedleSample::Answer PromptEncoder::FindValue(const std::vector<int32_t>& ids, size_t tail,
                                              size_t after, const std::string& value) const {
  const auto decode = [&](size_t begin, size_t end) {
    return tokenizer_.Decode(std::span(ids).subspan(begin, end - begin), false);
  };
  size_t end = ids.size();
  while (end > 0 && decode(end - 1, ids.size()).size() <= after) --end;
  size_t begin = end;
  while (begin > 0 && decode(begin, ids.size()).size() < tail) --begin;
  if (decode(begin, end).find(value) == std::string::npos) {
    throw InputError(
        fmt::format("the tokenizer changes the answer {} to {}, so recall cannot be scored with "
                    "it; leave out these tasks",
                    Quoted(value), Quoted(decode(begin, end))));
  }
  return {.begin = static_cast<int64_t>(begin),
          .end = static_cast<int64_t>(end),
          .depth = 0,
          .value = value};
}

int64_t LargestSize(int64_t low, int64_t low_tokens, int64_t length, double tokens_per_unit,
                    const std::function<int64_t(int64_t)>& count_tokens) {
  std::optional<int64_t> high;
  int64_t high_tokens = 0;
  for (int step = 0; !high || *high - low > 1; ++step) {
    const auto rest = static_cast<double>(length - low_tokens);
    int64_t size = low + std::max<int64_t>(1, static_cast<int64_t>(rest / tokens_per_unit));
    if (high && step > 6) size = low + (*high - low) / 2;
    if (high) size = std::clamp(size, low + 1, *high - 1);
    const int64_t tokens = count_tokens(size);
    if (tokens > low_tokens) {
      tokens_per_unit = static_cast<double>(tokens - low_tokens) / static_cast<double>(size - low);
    }
    if (tokens <= length) {
      low = size;
      low_tokens = tokens;
      if (high && high_tokens > low_tokens) {
        tokens_per_unit =
            static_cast<double>(high_tokens - low_tokens) / static_cast<double>(*high - low);
      }
    } else {
      high = size;
      high_tokens = tokens;
    }
  }
  return low;
}

}  // namespace oscar
