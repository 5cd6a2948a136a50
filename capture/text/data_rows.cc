// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/text/data_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "capture/files/digest.h"
#include "capture/files/utf8.h"
#include "capture/text/row_columns.h"
#include "capture/text/template/json_value.h"
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

}  // namespace

std::string ReadDataRows(const MappedFile& mapped, const std::function<void(const DataRow&)>& use) {
  const std::filesystem::path& file = mapped.path();
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
