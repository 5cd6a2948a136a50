// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Makes the page of a model in a zoo's site, and table cells that the index page uses too.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "export/report/html.h"  // Format
#include "zoo/show/site.h"
#include "zoo/store/zoo.h"

namespace oscar {

// The data that a model's page is made from.
struct ModelSubject {
  std::span<const IndexRow> rows;           // versions, ascending
  std::vector<std::string> signed_by = {};  // signer of each row
  std::optional<ZooEntry> entry = {};       // headline version; absent if it is damaged
  std::filesystem::path record = {};        // the file with the report of that entry
  std::string record_text = {};
  std::string problem = {};
};
ModelSubject LookAtModel(const Zoo& zoo, std::span<const IndexRow> rows,
                         const SiteOptions& options);

// The cache key of a page. If the key has not changed, the page has not either.
std::string PageKey(const ModelSubject& subject, const SiteOptions& options);

// Makes the page. Sets `problem` to the reason if the report cannot be shown.
std::string ModelPage(const ModelSubject& subject, const SiteOptions& options,
                      std::string* problem);

// The version shown for a name: the highest that is not yanked, else the highest.
const IndexRow& Headline(std::span<const IndexRow> rows);

std::string PageOf(const ZooName& name);  // path of its page within the site
std::string_view SiteStyle();             // css, in addition to the report's

// Cells of HTML tables.
std::string DateCell(int64_t unix_seconds);
std::string NumberCell(const std::optional<double>& value, Format format);
std::string GateCell(const IndexRow& row);
std::string RuntimesCell(const IndexRow& row);

}  // namespace oscar
