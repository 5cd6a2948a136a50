// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/text/tokenizer/decoder.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "capture/files/utf8.h"
#include "capture/text/tokenizer/byte_alphabet.h"
#include "capture/text/tokenizer/pattern.h"
#include "capture/text/tokenizer/tokenizer_components.h"

namespace oscar {
namespace {

class ByteLevelDecoder : public Decoder {
 public:
  std::vector<std::string> Apply(std::vector<std::string> tokens, size_t) const override {
    std::string bytes;
    for (const std::string& token : tokens) bytes += AlphabetToBytes(token).value_or(token);
    return {ReplaceInvalidUtf8(bytes)};
  }
};

class ReplaceDecoder : public Decoder {
 public:
  explicit ReplaceDecoder(PatternReplacement replacement) : replacement_(std::move(replacement)) {}
  std::vector<std::string> Apply(std::vector<std::string> tokens, size_t max_bytes) const override {
    for (std::string& token : tokens) {
      token = replacement_.Apply(std::move(token), max_bytes);
      max_bytes -= token.size();
    }
    return tokens;
  }

 private:
  PatternReplacement replacement_;
};

// Parses the byte of "<0xE2>".
std::optional<uint8_t> ByteOfToken(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || !token.ends_with(">")) return std::nullopt;
  uint8_t byte = 0;
  const auto [end, error] = std::from_chars(token.data() + 3, token.data() + 5, byte, 16);
  if (error != std::errc() || end != token.data() + 5) return std::nullopt;
  return byte;
}

// Converts a run of byte tokens to text if it is UTF-8; otherwise each byte becomes U+FFFD.
class ByteFallbackDecoder : public Decoder {
 public:
  std::vector<std::string> Apply(std::vector<std::string> tokens, size_t) const override {
    std::vector<std::string> out;
    std::string run;
    const auto end_run = [&] {
      if (FirstInvalidUtf8(run)) {
        out.insert(out.end(), run.size(), "\uFFFD");
      } else if (!run.empty()) {
        out.push_back(run);
      }
      run.clear();
    };
    for (std::string& token : tokens) {
      if (const auto byte = ByteOfToken(token)) {
        run += static_cast<char>(*byte);
        continue;
      }
      end_run();
      out.push_back(std::move(token));
    }
    end_run();
    return out;
  }
};

class FuseDecoder : public Decoder {
 public:
  std::vector<std::string> Apply(std::vector<std::string> tokens, size_t) const override {
    return {fmt::format("{}", fmt::join(tokens, ""))};
  }
};

// Removes up to `start` copies of a character from the front of each token and up to `stop` from
// its end.
class StripDecoder : public Decoder {
 public:
  StripDecoder(std::string content, int64_t start, int64_t stop)
      : content_(std::move(content)), start_(start), stop_(stop) {}
  std::vector<std::string> Apply(std::vector<std::string> tokens, size_t) const override {
    for (std::string& token : tokens) {
      std::string_view rest = token;
      for (int64_t i = 0; i < start_ && rest.starts_with(content_); ++i)
        rest.remove_prefix(content_.size());
      for (int64_t i = 0; i < stop_ && rest.ends_with(content_); ++i)
        rest.remove_suffix(content_.size());
      token = std::string(rest);
    }
    return tokens;
  }

 private:
  std::string content_;
  int64_t start_, stop_;
};

class MetaspaceDecoder : public Decoder {
 public:
  MetaspaceDecoder(std::string replacement, bool drops_first)
      : replacement_(std::move(replacement)), drops_first_(drops_first) {}
  std::vector<std::string> Apply(std::vector<std::string> tokens, size_t) const override {
    for (size_t t = 0; t < tokens.size(); ++t) {
      const std::string_view space = t == 0 && drops_first_ ? "" : " ";
      std::string out;
      std::string_view rest = tokens[t];
      while (!rest.empty()) {
        const size_t at = std::min(rest.find(replacement_), rest.size());
        out += rest.substr(0, at);
        if (at < rest.size()) out += space;
        rest.remove_prefix(std::min(at + replacement_.size(), rest.size()));
      }
      tokens[t] = std::move(out);
    }
    return tokens;
  }

 private:
  std::string replacement_;
  bool drops_first_;  // applies to the first token
};

std::string NonEmpty(const Json& component, const char* key, const std::string& where) {
  std::string text = JsonString(component, key, where);
  if (text.empty()) throw InputError(fmt::format("{}: \"{}\" is empty", where, key));
  return text;
}

std::span<const ComponentKind<Decoder>> Kinds() {
  static const std::vector<ComponentKind<Decoder>> kinds = {
      {"ByteLevel",
       {"add_prefix_space", "trim_offsets", "use_regex"},
       [](const Json&, const std::string&, Chain<Decoder>& chain) {
         chain.push_back(std::make_unique<ByteLevelDecoder>());
       }},
      {"Replace",
       {"pattern", "content"},
       [](const Json& component, const std::string& where, Chain<Decoder>& chain) {
         chain.push_back(std::make_unique<ReplaceDecoder>(PatternReplacement(component, where)));
       }},
      {"ByteFallback",
       {},
       [](const Json&, const std::string&, Chain<Decoder>& chain) {
         chain.push_back(std::make_unique<ByteFallbackDecoder>());
       }},
      {"Fuse",
       {},
       [](const Json&, const std::string&, Chain<Decoder>& chain) {
         chain.push_back(std::make_unique<FuseDecoder>());
       }},
      {"Strip",
       {"content", "start", "stop"},
       [](const Json& component, const std::string& where, Chain<Decoder>& chain) {
         chain.push_back(std::make_unique<StripDecoder>(NonEmpty(component, "content", where),
                                                        JsonInt(component, "start", where),
                                                        JsonInt(component, "stop", where)));
       }},
      {"Metaspace",
       {"replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep"},
       [](const Json& component, const std::string& where, Chain<Decoder>& chain) {
         const bool flag = JsonBool(component, "add_prefix_space", true, where);
         const bool drops =
             JsonString(component, "prepend_scheme", flag ? "always" : "never", where) != "never";
         chain.push_back(
             std::make_unique<MetaspaceDecoder>(NonEmpty(component, "replacement", where), drops));
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
  size_t bytes = 0;
  for (const std::string& token : tokens) bytes += token.size();
  for (const auto& step : chain) tokens = step->Apply(std::move(tokens), MaxGrownBytes(bytes));
  const std::string separator = chain.empty() ? " " : "";
  return fmt::format("{}", fmt::join(tokens, separator));
}

std::vector<std::string_view> DecoderTypes() { return TypesOf(Kinds()); }

}  // namespace oscar
