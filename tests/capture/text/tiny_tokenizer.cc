// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/capture/text/tiny_tokenizer.h"

#include <fstream>

#include "capture/files/utf8.h"
#include "capture/text/tokenizer/byte_alphabet.h"
#include "tests/support/test_data.h"

namespace oscar {

nlohmann::json AddedTokenJson(int id, const std::string& content) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", true}};
}

nlohmann::json TinyTokenizerJson() {
  nlohmann::json vocabulary = {{"ab", 256}, {"abc", 257}, {"bc", 258}, {"Ġa", 259}};
  for (int byte = 0; byte < 256; ++byte) {
    std::string character;
    AppendUtf8(ByteToAlphabet(static_cast<uint8_t>(byte)), character);
    vocabulary[character] = byte;
  }
  return {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", nlohmann::json::array({AddedTokenJson(260, "<|im_start|>"),
                                              AddedTokenJson(261, "<|im_end|>")})},
      {"normalizer", nullptr},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}},
      {"post_processor", nullptr},
      {"decoder", {{"type", "ByteLevel"}}},
      {"model",
       {{"type", "BPE"},
        {"vocab", vocabulary},
        {"merges", nlohmann::json::parse(R"([["a","b"],["ab","c"],["b","c"],["Ġ","a"]])")}}}};
}

Tokenizer LoadTokenizer(const nlohmann::json& json, const std::string& name) {
  const std::filesystem::path file = TestScratch(name) / "tokenizer.json";
  std::ofstream(file, std::ios::binary) << json.dump();
  return Tokenizer::Load(file);
}

}  // namespace oscar
