// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
#include "capture/text/data_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "capture/files/digest.h"
#include "capture/files/mapped_file.h"
#include "capture/files/quote.h"
#include "capture/files/strict_json.h"
#include "capture/files/utf8.h"
#include "linalg/error.h"

namespace oscar {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kBlank = " \t\r\n";

enum class Layout { kLines, kArray, kPlainText };

Layout DetectLayout(const std::filesystem::path& file, std::string_view content) {
  const std::string extension = file.extension().string();
  if (extension == ".txt" || extension == ".md") return Layout::kPlainText;
  const size_t first = content.find_first_not_of(kBlank);
  const char start = first == std::string_view::npos ? '\0' : content[first];
  if (extension == ".jsonl" || extension == ".ndjson" || extension == ".json") {
    return start == '[' ? Layout::kArray : Layout::kLines;
  }
  return start == '{' ? Layout::kLines : Layout::kPlainText;
}

std::vector<ChatMessage> ParseMessages(const Json& value, const std::string& where) {
  if (!value.is_array()) {
    throw InputError(fmt::format("{}: \"messages\" must be a list of {{role, content}}, found {}",
                                 where, value.type_name()));
  }
  std::vector<ChatMessage> messages;
  for (size_t i = 0; i < value.size(); ++i) {
    const std::string inner = fmt::format("{}: messages[{}]", where, i);
    if (!value[i].is_object()) {
      throw InputError(fmt::format("{}: expected an object with role and content, found {}", inner,
                                   value[i].type_name()));
    }
    messages.push_back(
        {JsonString(value[i], "role", inner), JsonString(value[i], "content", inner)});
  }
  return messages;
}

std::vector<int64_t> ParseIds(const Json& value, const std::string& where) {
  if (!value.is_array()) {
    throw InputError(fmt::format("{}: \"input_ids\" must be a list of integers, found {}", where,
                                 value.type_name()));
  }
  std::vector<int64_t> ids;
  ids.reserve(value.size());
  for (size_t i = 0; i < value.size(); ++i) {
    const Json& id = value[i];
    const bool fits = id.is_number_integer() &&
                      !(id.is_number_unsigned() && id.get<uint64_t>() > (uint64_t{1} << 62));
    if (!fits) {
      throw InputError(fmt::format("{}: input_ids[{}] must be an integer token id, found {}", where,
                                   i, Escaped(id.dump())));
    }
    ids.push_back(id.get<int64_t>());
  }
  return ids;
}

DataRow ParseRow(const Json& object, std::string origin, std::string where) {
  if (!object.is_object()) {
    throw InputError(
        fmt::format("{}: expected a JSON object, found {}", where, object.type_name()));
  }
  constexpr std::string_view kContent[] = {"text", "messages", "input_ids"};
  std::vector<std::string> found;
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) {
    if (std::find(std::begin(kContent), std::end(kContent), key) != std::end(kContent)) {
      found.push_back(key);
    }
    keys.push_back(Quoted(key));
  }
  if (found.size() != 1) {
    throw InputError(fmt::format(
        "{}: expected exactly one of \"text\", \"messages\", \"input_ids\"; found {}", where,
        keys.empty() ? "an empty object" : fmt::format("{}", fmt::join(keys, ", "))));
  }
  DataRow row{std::move(origin), std::move(where), {}};
  if (found[0] == "text") {
    row.value = JsonString(object, "text", row.where);
  } else if (found[0] == "messages") {
    row.value = ParseMessages(object.at("messages"), row.where);
  } else {
    row.value = ParseIds(object.at("input_ids"), row.where);
  }
  return row;
}

}  // namespace

std::string ReadDataRows(const std::filesystem::path& file,
                         const std::function<void(const DataRow&)>& use) {
  const MappedFile mapped = MappedFile::Open(file);
  std::string_view content(reinterpret_cast<const char*>(mapped.bytes().data()),
                           mapped.bytes().size());
  const std::string path = file.string();
  const std::string name = file.filename().string();
  if (const auto invalid = FirstInvalidUtf8(content)) {
    const auto line =
        1 + std::count(content.begin(), content.begin() + static_cast<ptrdiff_t>(*invalid), '\n');
    throw InputError(
        fmt::format("{}:{}: not UTF-8 at byte {} of the file (found {:#04x}); convert "
                    "the file to UTF-8",
                    path, line, *invalid, static_cast<uint8_t>(content[*invalid])));
  }
  const std::string digest = Sha256Hex(mapped.bytes());
  if (content.starts_with(kByteOrderMark)) content.remove_prefix(kByteOrderMark.size());

  switch (DetectLayout(file, content)) {
    case Layout::kPlainText:
      use({name, path, std::string(content)});
      return digest;
    case Layout::kArray: {
      const Json rows = ParseStrictJson(content, path);
      for (size_t i = 0; i < rows.size(); ++i) {
        use(ParseRow(rows[i], fmt::format("{}[{}]", name, i), fmt::format("{}[{}]", path, i)));
      }
      return digest;
    }
    case Layout::kLines:
      break;
  }
  int64_t line_number = 0;
  while (!content.empty()) {
    const size_t end = std::min(content.find('\n'), content.size());
    std::string_view line = content.substr(0, end);
    content.remove_prefix(std::min(end + 1, content.size()));
    ++line_number;
    if (line.find_first_not_of(kBlank) == std::string_view::npos) continue;
    std::string where = fmt::format("{}:{}", path, line_number);
    const Json object = ParseStrictJson(line, where);
    use(ParseRow(object, fmt::format("{}:{}", name, line_number), std::move(where)));
  }
  return digest;
}

}  // namespace oscar
