// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/text/data/data_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "capture/files/digest.h"
#include "capture/files/unpack.h"
#include "capture/files/utf8.h"
#include "capture/text/data/row_columns.h"
#include "capture/text/template/json_value.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kBlank = " \t\r\n";

enum class Layout { kLines, kArray, kPlainText };

// `extension` is that of the file, or of the file compressed in it.
Layout DetectLayout(const std::string& extension, std::string_view content) {
  if (extension == ".txt" || extension == ".md") return Layout::kPlainText;
  const size_t first = content.find_first_not_of(kBlank);
  const char start = first == std::string_view::npos ? '\0' : content[first];
  if (extension == ".jsonl" || extension == ".ndjson" || extension == ".json") {
    return start == '[' ? Layout::kArray : Layout::kLines;
  }
  return start == '{' ? Layout::kLines : Layout::kPlainText;
}

// Refuses unsupported formats, which it recognizes by their first bytes.
void RefuseOtherFormats(std::string_view content, const std::string& path) {
  const auto begins = [&](std::string_view magic) { return content.starts_with(magic); };
  const bool parquet = begins("PAR1") && content.ends_with("PAR1");
  if (parquet || begins("ARROW1")) {
    throw InputError(
        fmt::format("{}: this is {}, which is not supported; convert it with: python3 -c \"import "
                    "datasets; datasets.Dataset.{}('{}').to_json('rows.jsonl')\"",
                    path, parquet ? "a Parquet file" : "an Arrow file",
                    parquet ? "from_parquet" : "from_file", path));
  }
  for (const auto& [magic, name] : {std::pair<std::string_view, const char*>{"PK\x03\x04", "zip"},
                                    {std::string_view("BZh"), "bzip2"},
                                    {std::string_view("\xFD\x37zXZ"), "xz"}}) {
    if (begins(magic) && FirstInvalidUtf8(content)) {
      throw InputError(fmt::format(
          "{}: this file is compressed with {}; decompress it, or use gzip or zstd", path, name));
    }
  }
}

}  // namespace

std::string ReadDataRows(const MappedFile& mapped, const std::function<void(const DataRow&)>& use) {
  const std::filesystem::path& file = mapped.path();
  const std::string path = file.string();
  const std::optional<std::string> unpacked = Unpack(mapped.bytes(), path);
  std::string_view content(reinterpret_cast<const char*>(mapped.bytes().data()),
                           mapped.bytes().size());
  if (unpacked) content = *unpacked;
  const std::string extension = (unpacked ? file.stem() : file.filename()).extension().string();
  const std::string name = file.filename().string();
  RefuseOtherFormats(content, path);
  if (const auto invalid = FirstInvalidUtf8(content)) {
    const auto line =
        1 + std::count(content.begin(), content.begin() + static_cast<ptrdiff_t>(*invalid), '\n');
    throw InputError(fmt::format(
        "{}:{}: invalid UTF-8 at byte {} of the file (found {:#04x}); convert the file to UTF-8",
        path, line, *invalid, static_cast<uint8_t>(content[*invalid])));
  }
  const std::string digest = Sha256Hex(mapped.bytes());
  if (content.starts_with(kByteOrderMark)) content.remove_prefix(kByteOrderMark.size());

  switch (DetectLayout(extension, content)) {
    case Layout::kPlainText:
      use({name, path, std::string(content)});
      return digest;
    case Layout::kArray: {
      const jinja::Value rows = jinja::ParseJsonValue(content, path);
      for (size_t i = 0; i < rows.items().size(); ++i) {
        DataRow row{fmt::format("{}[{}]", name, i), fmt::format("{}[{}]", path, i), {}};
        ParseRow(rows.items()[i], row);
        use(row);
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
    DataRow row{
        fmt::format("{}:{}", name, line_number), fmt::format("{}:{}", path, line_number), {}};
    ParseRow(jinja::ParseJsonValue(line, row.where), row);
    use(row);
  }
  return digest;
}

}  // namespace oscar
