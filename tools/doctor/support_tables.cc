// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/support_tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>
#include <iterator>
#include <vector>

#include "capture/checkpoint/quantization_config.h"
#include "capture/model/families/families.h"
#include "capture/text/tokenizer/tokenizer_components.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

std::string Names(const std::vector<std::string_view>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::string SupportTables() {
  std::vector<std::string> families, wrappers, refusals;
  for (const Family& family : Families()) families.emplace_back(family.model_type);
  for (const Wrapper& wrapper : Wrappers())
    wrappers.push_back(fmt::format("{} ({})", wrapper.model_type, wrapper.text_model_type));
  for (const Refusal& refusal : Refusals()) refusals.emplace_back(refusal.model_type);
  return fmt::format(
      "| | |\n"
      "|---|---|\n"
      "| model families (`model_type`) | {} |\n"
      "| text part of multimodal models (its family) | {} |\n"
      "| known and refused, with the reason | {} |\n"
      "| weights | safetensors, single or sharded: BF16, F16, F32; `quant_method` {} |\n"
      "| tokenizers | `tokenizer.json` with BPE over bytes or characters, or Unigram; "
      "`tokenizer.model` "
      "of SentencePiece; the keys of a GGUF |\n"
      "| their normalizers | {} |\n"
      "| their pre-tokenizers | {} |\n"
      "| their post-processors | {} |\n"
      "| their decoders | {} |\n",
      fmt::join(families, ", "), fmt::join(wrappers, ", "), fmt::join(refusals, ", "),
      SupportedQuantization(), Names(NormalizerTypes()), Names(PreTokenizerTypes()),
      Names(PostProcessorTypes()), Names(DecoderTypes()));
}

std::string WithSupportTables(const std::filesystem::path& page) {
  std::ifstream file(page, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file) throw InputError(fmt::format("{}: cannot be read", page.string()));
  const size_t begin = text.find(kSupportBegin), end = text.find(kSupportEnd);
  if (begin == text.npos || end == text.npos || end < begin ||
      text.find(kSupportBegin, begin + 1) != text.npos ||
      text.find(kSupportEnd, end + 1) != text.npos) {
    throw InputError(
        fmt::format("{}: expected exactly one line '{}', followed by exactly one line '{}'",
                    page.string(), kSupportBegin.substr(0, kSupportBegin.size() - 1),
                    kSupportEnd.substr(0, kSupportEnd.size() - 1)));
  }
  return text.substr(0, begin + kSupportBegin.size()) + SupportTables() + text.substr(end);
}

}  // namespace oscar
