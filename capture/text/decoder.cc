// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
#include "capture/text/decoder.h"

#include <utility>

#include "capture/files/utf8.h"
#include "capture/text/byte_alphabet.h"

namespace oscar {
namespace {

class ByteLevelDecoder : public Decoder {
 public:
  std::vector<std::string> Apply(std::vector<std::string> tokens) const override {
    std::string bytes;
    for (const std::string& token : tokens) bytes += AlphabetToBytes(token).value_or(token);
    return {ReplaceInvalidUtf8(bytes)};
  }
};

std::span<const ComponentKind<Decoder>> Kinds() {
  static const std::vector<ComponentKind<Decoder>> kinds = {
      {"ByteLevel",
       {"add_prefix_space", "trim_offsets", "use_regex"},
       [](const Json&, const std::string&, Chain<Decoder>& chain) {
         chain.push_back(std::make_unique<ByteLevelDecoder>());
       }},
      {"Sequence",
       {"decoders"},
       [](const Json& component, const std::string& where, Chain<Decoder>& chain) {
         AppendSequence(Kinds(), component, "decoders", where, chain);
       }},
  };
  return kinds;
}

}  // namespace

Chain<Decoder> MakeDecoders(const Json& component, const std::string& where) {
  Chain<Decoder> chain;
  AppendComponent(Kinds(), component, where, chain);
  return chain;
}

std::string DecodeTokens(const Chain<Decoder>& chain, std::vector<std::string> tokens) {
  for (const auto& step : chain) tokens = step->Apply(std::move(tokens));
  const std::string separator = chain.empty() ? " " : "";
  return fmt::format("{}", fmt::join(tokens, separator));
}

}  // namespace oscar
