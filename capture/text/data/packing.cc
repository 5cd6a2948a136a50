// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/text/data/packing.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "capture/checkpoint/model_config.h"
#include "capture/files/quote.h"
#include "capture/files/strict_json.h"
#include "linalg/base/error.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr std::string_view kEndOfText = "<|endoftext|>";

std::optional<int32_t> ParseId(std::string_view text) {
  int32_t id = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size() || id < 0) return {};
  return id;
}

// Returns eos_token of tokenizer_config.json, which is a string or {"content": ...}; "" if there is
// none.
std::string ConfiguredEndToken(const fs::path& model, const fs::path& file) {
  const Json config = ReadTokenizerConfig(model);
  const auto found = config.find("eos_token");
  if (found == config.end() || found->is_null()) return {};
  if (found->is_object()) return JsonString(*found, "content", file.string() + ": eos_token");
  return JsonString(config, "eos_token", file.string());
}

std::optional<int32_t> ConfiguredEndId(const fs::path& model) {
  if (!HasModelConfig(model)) return {};
  const std::string file = ModelConfigName(model);
  const Json config = ReadModelConfig(model);
  const auto found = config.find("eos_token_id");
  if (found == config.end() || found->is_null()) return {};
  const Json& id = found->is_array() && !found->empty() ? found->front() : *found;
  return static_cast<int32_t>(
      std::clamp<int64_t>(JsonInt({{"eos_token_id", id}}, "eos_token_id", file), -1, INT32_MAX));
}

Separator FromTokenizer(const Tokenizer& tokenizer, std::string token, const std::string& where) {
  if (const auto id = tokenizer.TokenId(token)) return {std::move(token), *id};
  throw InputError(
      fmt::format("{}: the tokenizer has no token {}; give another separator, as a "
                  "token or as an id",
                  where, Quoted(token)));
}

struct Range {
  size_t begin, end;  // tokens in the stream
  size_t document;
};

std::string Origins(const std::vector<Document>& documents, const std::vector<Range>& ranges,
                    size_t begin, size_t end) {
  std::string first, last;
  for (const Range& range : ranges) {
    if (range.end <= begin || range.begin >= end) continue;
    last = documents[range.document].origin;
    if (first.empty()) first = last;
  }
  return first == last ? first : fmt::format("{} to {}", first, last);
}

}  // namespace

Separator FindSeparator(const fs::path& model_directory, const LazyTokenizer& tokenizer,
                        std::string_view requested) {
  if (const auto id = ParseId(requested)) return {{}, *id};
  if (tokenizer) {
    if (!requested.empty()) {
      return FromTokenizer(*tokenizer, std::string(requested), "separator of packed documents");
    }
    if ((*tokenizer).IsAddedToken(kEndOfText)) {
      return FromTokenizer(*tokenizer, std::string(kEndOfText), "the tokenizer");
    }
    const fs::path file = model_directory / "tokenizer_config.json";
    const std::string token = ConfiguredEndToken(model_directory, file);
    if (!token.empty()) return FromTokenizer(*tokenizer, token, file.string() + ": eos_token");
  } else if (requested.empty()) {
    if (const auto id = ConfiguredEndId(model_directory)) return {{}, *id};
  }
  throw InputError(fmt::format(
      "{}: there is no separator for packed documents, because {}; give --separator as {}",
      model_directory.string(),
      tokenizer ? "the tokenizer has no <|endoftext|> and tokenizer_config.json has no eos_token"
                : "there is no tokenizer.json and config.json has no eos_token_id",
      tokenizer ? "a token or an id" : "an id"));
}

std::vector<int32_t> LeadingSpecialTokens(const Tokenizer& tokenizer) {
  const std::vector<int32_t> plain = tokenizer.Encode("a", /*add_special_tokens=*/false);
  const std::vector<int32_t> all = tokenizer.Encode("a", /*add_special_tokens=*/true);
  const auto found = std::search(all.begin(), all.end(), plain.begin(), plain.end());
  return found == all.end() ? std::vector<int32_t>() : std::vector<int32_t>(all.begin(), found);
}

std::vector<int32_t> OpeningTokens(const fs::path& model_directory, const Tokenizer* tokenizer) {
  std::vector<int32_t> ids;
  if (tokenizer != nullptr) ids = LeadingSpecialTokens(*tokenizer);
  if (ids.empty()) ids = {FindSeparator(model_directory, tokenizer).id};
  return ids;
}

namespace {

// The joined documents of one domain.
struct Stream {
  std::string domain;
  std::vector<int32_t> ids = {};
  std::vector<uint8_t> counted = {};  // like Document::counted, for all ids
  std::vector<Range> ranges = {};
  size_t taken = 0;  // tokens
};

std::vector<Stream> StreamsOf(const std::vector<Document>& documents, int32_t separator) {
  std::vector<Stream> streams;
  for (size_t i = 0; i < documents.size(); ++i) {
    const std::vector<int32_t>& ids = documents[i].ids;
    if (ids.empty()) continue;
    auto stream = std::ranges::find(streams, documents[i].domain, &Stream::domain);
    if (stream == streams.end()) stream = streams.insert(streams.end(), {documents[i].domain});
    if (!stream->ids.empty()) stream->ids.push_back(separator);
    stream->ranges.push_back({stream->ids.size(), stream->ids.size() + ids.size(), i});
    stream->ids.insert(stream->ids.end(), ids.begin(), ids.end());
    const std::vector<uint8_t>& counted = documents[i].counted;
    stream->counted.resize(stream->ids.size() - counted.size(), 1);
    stream->counted.insert(stream->counted.end(), counted.begin(), counted.end());
  }
  return streams;
}

}  // namespace

void PackDocuments(const Separator& separator, int64_t max_sequence, int64_t token_budget,
                   DataSet& data, bool shorter) {
  if (token_budget < max_sequence) {
    throw UsageError(
        fmt::format("the token budget {} is less than one packed sequence of {} tokens; raise the "
                    "budget or shorten the sequences",
                    token_budget, max_sequence));
  }
  const std::vector<Document> documents = std::exchange(data.documents, {});
  std::vector<Stream> streams = StreamsOf(documents, separator.id);
  const auto length = static_cast<size_t>(max_sequence);
  auto left = static_cast<size_t>(token_budget);  // tokens
  if (!shorter) left -= left % length;
  for (bool any = true; any && left > 0;) {
    any = false;
    for (Stream& stream : streams) {
      const size_t begin = stream.taken;
      const size_t size = std::min({length, stream.ids.size() - begin, left});
      const size_t least = !shorter ? length : data.documents.empty() ? 1 : length / 4;
      if (size < std::max<size_t>(least, 1)) continue;
      const size_t end = begin + size;
      const auto part = [&]<typename T>(const std::vector<T>& of) {
        return std::vector<T>(of.begin() + static_cast<ptrdiff_t>(begin),
                              of.begin() + static_cast<ptrdiff_t>(end));
      };
      data.documents.push_back({Origins(documents, stream.ranges, begin, end), part(stream.ids),
                                part(stream.counted), stream.domain});
      stream.taken = end;
      any = true;
      left -= size;
    }
  }
  DataCounts counts;
  counts.documents_sent = std::ssize(documents);
  for (const Stream& stream : streams) {
    counts.tokens_sent += std::ssize(stream.ids);
    counts.tokens_used += static_cast<int64_t>(stream.taken);
    for (const Range& range : stream.ranges) {
      if (range.begin >= stream.taken) continue;
      ++counts.documents_used;
      if (range.end <= stream.taken) continue;
      ++counts.documents_truncated;
      counts.tokens_truncated += static_cast<int64_t>(range.end - stream.taken);
    }
  }
  if (data.documents.empty()) {
    throw InputError(
        fmt::format("{}: {} tokens in {} documents do not fill one packed sequence of {} tokens; "
                    "give more text or shorter sequences",
                    data.name, counts.tokens_sent, documents.size(), max_sequence));
  }
  counts.documents_dropped = counts.documents_sent - counts.documents_used;
  counts.tokens_dropped = counts.tokens_sent - counts.tokens_used - counts.tokens_truncated;
  data.counts = counts;
  data.separator = separator;
}

}  // namespace oscar
