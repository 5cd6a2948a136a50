// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "zoo/show/model_page.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "export/artifact/artifact_format.h"
#include "export/report/page_shell.h"
#include "export/report/report_page.h"
#include "linalg/base/error.h"
#include "zoo/store/blob_store.h"
#include "zoo/trust/signature_store.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr JsonLimits kReportLimits{
    .max_depth = 32, .max_bytes = size_t{64} << 20, .max_values = 5'000'000};

constexpr std::string_view kStyle = R"css(
pre{background:var(--soft);border:1px solid var(--faint);border-radius:.5rem;padding:.75rem .9rem;overflow-x:auto;font-size:.9rem}
pre code{font-size:1em;white-space:pre-wrap;overflow-wrap:anywhere}
a{color:var(--s0)}
#filter{margin:1rem 0;display:flex;flex-wrap:wrap;gap:.5rem .75rem;align-items:center}
#filter[hidden]{display:none}
#filter input{font:inherit;color:inherit;background:var(--bg);border:1px solid var(--sn);border-radius:.35rem;padding:.35rem .6rem;min-width:min(22rem,100%)}
thead button{font:inherit;color:inherit;background:none;border:0;padding:0;cursor:pointer;text-align:inherit;text-decoration:underline dotted}
[aria-sort=ascending] button::after{content:" ↑"}[aria-sort=descending] button::after{content:" ↓"}
button:focus-visible,a:focus-visible,input:focus-visible{outline:2px solid var(--s0);outline-offset:2px}
td.text,th{overflow-wrap:anywhere}
.badge{display:inline-block;width:auto;height:20px;vertical-align:middle}
.badge text{fill:#fff!important}
)css";

// Returns who signed a version according to its signatures, which are not verified.
std::string Claimed(const Zoo& zoo, const IndexRow& row) {
  std::string text;
  try {
    for (const std::string& signer :
         ClaimedSigners(ReadSignatures(zoo, row.name, row.version), row.text()))
      text += (text.empty() ? "not checked: " : ", ") + signer;
  } catch (const InputError&) {
    return "a signature that cannot be read";
  }
  return text;
}

std::string SignedBy(const Zoo& zoo, const IndexRow& row, const SiteOptions& options) {
  return options.signed_by ? options.signed_by(row) : Claimed(zoo, row);
}

std::string VersionsTable(std::span<const IndexRow> rows,
                          const std::vector<std::string>& signed_by) {
  std::vector<TableRow> table;
  for (size_t i = rows.size(); i-- > 0;) {
    const IndexRow& row = rows[i];
    const std::string state = row.yanked.empty() ? "" : "yanked: " + Html(row.yanked);
    table.push_back(
        {{row.version.text(), NumberCell(row.kl, Format::kError),
          NumberCell(row.ppl_ratio, Format::kPerplexity), NumberCell(row.bits, Format::kBits),
          GateCell(row), DateCell(row.published_at),
          "<code>" + row.identity.substr(0, 16) + "…</code>",
          signed_by[i].empty() ? "nobody" : Html(signed_by[i]), state},
         row.yanked.empty() ? "" : "null",
         {"", "", "", "", "", "", "", "text", "text"}});
  }
  return Table("versions",
               {"version", "attention-KL", "ppl ratio", "bits", "gate", "published", "identity",
                "signed by", ""},
               table);
}

std::string Facts(const std::vector<std::pair<std::string, std::string>>& facts) {
  std::string html = "<dl>\n";
  for (const auto& [name, value] : facts)
    if (!value.empty()) html += fmt::format("<dt>{}</dt><dd>{}</dd>\n", name, value);
  return html + "</dl>\n";
}

std::string Digest(const std::string& sha256) {
  return sha256.empty() ? "" : "<code>" + Html(sha256) + "</code>";
}

std::string FilesTable(const ZooEntry& entry) {
  std::vector<TableRow> rows;
  for (const auto& [name, digest] : entry.files) {
    rows.push_back({{Html(name),
                     fmt::format("<data value=\"{}\">{}</data>", digest.size,
                                 FormatNumber(static_cast<double>(digest.size), Format::kCount)),
                     "<code>" + digest.sha256.substr(0, 16) + "…</code>"},
                    ""});
  }
  return Table("files", {"file", "bytes", "SHA-256"}, rows);
}

}  // namespace

std::string_view SiteStyle() { return kStyle; }

std::string PageOf(const ZooName& name) { return "models/" + name.text() + "/index.html"; }

std::string DateCell(int64_t unix_seconds) {
  if (unix_seconds <= 0 || unix_seconds > 253'402'300'799) return "–";
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(static_cast<std::time_t>(unix_seconds)));
}

std::string NumberCell(const std::optional<double>& value, Format format) {
  if (!value) return "–";
  return fmt::format("<data value=\"{}\">{}</data>", Json(*value).dump(),
                     FormatNumber(*value, format));
}

std::string GateCell(const IndexRow& row) {
  return row.gate.empty() ? "ungated" : "<span class=\"pass\">passed</span>";
}

std::string RuntimesCell(const IndexRow& row) {
  std::string text;
  for (const std::string& runtime : row.runtimes) text += (text.empty() ? "" : ", ") + runtime;
  return text.empty() ? "–" : Html(text);
}

const IndexRow& Headline(std::span<const IndexRow> rows) {
  for (size_t i = rows.size(); i-- > 0;)
    if (rows[i].yanked.empty()) return rows[i];
  return rows.back();
}

ModelSubject LookAtModel(const Zoo& zoo, std::span<const IndexRow> rows,
                         const SiteOptions& options) {
  ModelSubject subject{.rows = rows};
  for (const IndexRow& row : rows) subject.signed_by.push_back(SignedBy(zoo, row, options));
  const IndexRow& row = Headline(rows);
  try {
    ZooEntry entry = zoo.Read(row.name, row.version);
    const FileDigest& digest = entry.files.at(kReportFile);
    subject.record = BlobPath(zoo.path(), digest.sha256);
    subject.record_text = ReadChecked(subject.record, digest, kReportLimits.max_bytes);
    subject.entry = std::move(entry);
  } catch (const InputError& error) {
    subject.problem = row.text() + ": " + error.what();
  }
  return subject;
}

std::string PageKey(const ModelSubject& subject, const SiteOptions& options) {
  Json rows = IndexToJson({{subject.rows.begin(), subject.rows.end()}, {}});
  return Sha256Hex(CanonicalJson({{"made_by", options.made_by},
                                  {"title", options.title},
                                  {"url", options.url},
                                  {"style", SiteStyle()},
                                  {"rows", std::move(rows)},
                                  {"entry", EntryToJson(*subject.entry)},
                                  {"signed_by", subject.signed_by}}));
}

std::string ModelPage(const ModelSubject& subject, const SiteOptions& options,
                      std::string* problem) {
  const std::span<const IndexRow> rows = subject.rows;
  const IndexRow& row = Headline(rows);
  const std::string pull =
      fmt::format("oscar-zoo pull {}/{}@sha256:{}", options.url.empty() ? "ZOO" : Html(options.url),
                  row.name.text(), row.identity);
  std::string header = fmt::format(
      "<p class=\"over\"><a href=\"../../../index.html\">{}</a></p>\n<h1>{}</h1>\n"
      "<p class=\"lead\">Rotations for a 2-bit KV cache of {}. {}</p>\n<p>{}</p>\n",
      Html(options.title), Html(row.name.text()), Html(row.model),
      row.yanked.empty() ? "" : "Every version was yanked.", BadgeSvg(row));
  std::vector<PageSection> sections;
  sections.push_back(
      {"use", "Use it", "Use it",
       fmt::format("<pre><code>{}</code></pre>\n", pull) +
           Note("The digest covers every byte of this version. <code>oscar-zoo verify</code> "
                "checks a whole zoo and, with <code>--trust</code>, its signatures.")});
  sections.push_back({"versions", "Versions", "Versions", VersionsTable(rows, subject.signed_by)});
  *problem = subject.problem;
  try {
    if (!subject.problem.empty()) throw InputError(subject.problem);
    const ZooEntry& entry = *subject.entry;
    sections.push_back({"base", "Base model", "Base model",
                        Facts({{"model", Html(row.model)},
                               {"revision", Html(row.revision)},
                               {"config.json", Digest(row.config_sha256)},
                               {"weights, sampled", Digest(row.weights_sha256)},
                               {"runtimes", RuntimesCell(row)}})});
    sections.push_back({"files", "Files", "Files of " + row.version.text(), FilesTable(entry)});
    // Rendered again from the record, because the publisher's own page is not trusted.
    const JsonText report(subject.record_text, subject.record.string(), kReportLimits);
    std::ranges::move(ReportSections(report.root()), std::back_inserter(sections));
  } catch (const InputError& error) {
    if (problem->empty()) *problem = row.text() + ": " + error.what();
    sections.push_back({"report", "Report", "Report",
                        Note("The report of this version cannot be shown: it is damaged.")});
  }
  return RenderPage(
      row.name.text(), header, sections,
      fmt::format("{}@{} · identity {}", row.name.text(), row.version.text(), row.identity),
      {.kind = options.title, .style = SiteStyle()});
}

}  // namespace oscar
