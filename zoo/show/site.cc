// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Names in a zoo have only plain characters (NamePartProblem), so they are safe in paths and links.
// All other text is untrusted and is escaped by Html().
#include "zoo/show/site.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <fstream>
#include <map>
#include <span>

#include "capture/files/atomic_file.h"
#include "capture/files/posix_file.h"
#include "export/report/html.h"
#include "export/report/page_shell.h"
#include "linalg/base/error.h"
#include "linalg/base/parallel_for.h"
#include "zoo/show/model_page.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr size_t kFeedEntries = 50;
constexpr const char* kSiteMark = "feed.xml";
constexpr const char* kPagesFile = "pages.json";

constexpr std::string_view kScript =
    "(()=>{const t=document.querySelector('#models table');if(!t)return;"
    "const b=t.tBodies[0],rows=[...b.rows],heads=[...t.tHead.rows[0].cells];"
    "const key=(r,i)=>{const c=r.cells[i],d=c.querySelector('data'),s=c.textContent.trim();"
    "return d?+d.value:s==='–'?Infinity:s.toLowerCase()};"
    "heads.forEach((h,i)=>{const n=document.createElement('button');n.type='button';"
    "n.textContent=h.textContent;h.textContent='';h.append(n);n.onclick=()=>{"
    "const up=h.getAttribute('aria-sort')!=='ascending';"
    "heads.forEach(o=>o.removeAttribute('aria-sort'));"
    "h.setAttribute('aria-sort',up?'ascending':'descending');"
    "rows.sort((x,y)=>{const a=key(x,i),c=key(y,i);return(a<c?-1:a>c?1:0)*(up?1:-1)});"
    "b.append(...rows)}});"
    "const f=document.querySelector('#filter');f.hidden=false;"
    "const q=f.querySelector('input'),n=f.querySelector('output');"
    "const go=()=>{const w=q.value.toLowerCase().split(/\\s+/);let k=0;"
    "for(const r of rows){const s=r.textContent.toLowerCase(),o=w.every(x=>s.includes(x));"
    "r.hidden=!o;k+=o}n.textContent=k+' of '+rows.length};q.oninput=go;go()})();";

// Returns the script's hash for a page's content security policy.
std::string ScriptHash() {
  std::array<unsigned char, 32> digest{};
  std::array<unsigned char, 48> text{};
  EVP_Digest(kScript.data(), kScript.size(), digest.data(), nullptr, EVP_sha256(), nullptr);
  const int size = EVP_EncodeBlock(text.data(), digest.data(), static_cast<int>(digest.size()));
  return "sha256-" + std::string(text.begin(), text.begin() + size);
}

// Calls visit(rows of the name) for every name, in order.
template <typename Visit>
void ForEachModel(const ZooIndex& index, Visit visit) {
  const std::span<const IndexRow> all(index.rows);
  for (size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    while (end < all.size() && all[end].name == all[begin].name) ++end;
    visit(all.subspan(begin, end - begin));
  }
}

// Returns the cache keys of a site's pages by ORG/MODEL; empty if they cannot be read.
std::map<std::string, std::string> ReadPageKeys(const fs::path& site) {
  std::map<std::string, std::string> keys;
  try {
    const Json json = ReadJsonFile((site / kPagesFile).string());
    for (const auto& [name, key] : JsonMember(json, "pages", kPagesFile).items())
      if (key.is_string()) keys[name] = key.get<std::string>();
  } catch (const InputError&) {
    return {};
  }
  return keys;
}

}  // namespace

std::string BadgeSvg(const IndexRow& row) {
  const std::string left = "oscar " + row.version.text();
  std::string right = row.yanked.empty() ? (row.gate.empty() ? "ungated" : "passed") : "yanked";
  if (row.yanked.empty() && row.kl) right = "attention-KL " + FormatNumber(*row.kl, Format::kError);
  if (row.yanked.empty() && row.bits)
    right += " · " + FormatNumber(*row.bits, Format::kBits) + " bits";
  const auto width = [](const std::string& text) { return 14 + 7 * CountCharacters(text); };
  const size_t a = width(left), b = width(right);
  const char* color = !row.yanked.empty() ? "#b03a0c" : row.gate.empty() ? "#59636e" : "#0a6b52";
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"badge\" width=\"{0}\" height=\"20\" "
      "viewBox=\"0 0 {0} 20\" role=\"img\" aria-label=\"{1}: {2}\">"
      "<rect width=\"{3}\" height=\"20\" fill=\"#3d444d\"/>"
      "<rect x=\"{3}\" width=\"{4}\" height=\"20\" fill=\"{5}\"/>"
      "<g fill=\"#fff\" font-family=\"Verdana,DejaVu Sans,sans-serif\" font-size=\"11\" "
      "text-anchor=\"middle\"><text x=\"{6}\" y=\"14\">{1}</text><text x=\"{7}\" y=\"14\">{2}"
      "</text></g></svg>",
      a + b, Html(left), Html(right), a, b, color, a / 2, a + b / 2);
}

std::string AtomFeed(const ZooIndex& index, const SiteOptions& options) {
  std::vector<const IndexRow*> rows;
  for (const IndexRow& row : index.rows) rows.push_back(&row);
  std::ranges::stable_sort(
      rows, [](const IndexRow* a, const IndexRow* b) { return a->published_at > b->published_at; });
  rows.resize(std::min(rows.size(), kFeedEntries));
  const auto time = [](int64_t unix_seconds) {
    return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                       fmt::gmtime(static_cast<std::time_t>(
                           std::clamp<int64_t>(unix_seconds, 0, 253'402'300'799))));
  };
  std::string feed = fmt::format(
      "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n"
      "<feed xmlns=\"http://www.w3.org/2005/Atom\">\n<title>{}</title>\n<id>{}</id>\n"
      "<updated>{}</updated>\n<author><name>{}</name></author>\n",
      Html(options.title), options.url.empty() ? "urn:oscar-zoo" : Html(options.url),
      time(rows.empty() ? 0 : rows[0]->published_at), Html(options.title));
  for (const IndexRow* row : rows) {
    feed += fmt::format(
        "<entry><title>{}{}</title><id>urn:oscar-zoo:{}:{}</id><link href=\"{}\"/>"
        "<updated>{}</updated><summary>{}</summary></entry>\n",
        row->text(), row->yanked.empty() ? "" : " yanked", row->text(),
        row->yanked.empty() ? row->identity : row->identity + ":yanked", PageOf(row->name),
        time(row->published_at),
        row->yanked.empty() ? fmt::format("for {}, identity {}", Html(row->model), row->identity)
                            : "yanked: " + Html(row->yanked));
  }
  return feed + "</feed>\n";
}

std::string IndexPage(const ZooIndex& index, const SiteOptions& options) {
  std::vector<TableRow> rows;
  ForEachModel(index, [&](std::span<const IndexRow> versions) {
    const IndexRow& row = Headline(versions);
    rows.push_back(
        {{fmt::format("<a class=\"name\" href=\"{}\">{}</a>", PageOf(row.name), row.name.text()),
          Html(row.model), row.version.text() + (row.yanked.empty() ? "" : " (yanked)"),
          NumberCell(row.kl, Format::kError), NumberCell(row.ppl_ratio, Format::kPerplexity),
          NumberCell(row.bits, Format::kBits), GateCell(row), RuntimesCell(row),
          DateCell(row.published_at)},
         row.yanked.empty() ? "" : "null",
         {"", "text", "", "", "", "", "", "text", ""}});
  });
  const std::string filter =
      "<div id=\"filter\" hidden><label for=\"q\">Show only models with</label><input id=\"q\" "
      "type=\"search\" autocomplete=\"off\"><output></output></div>\n";
  const std::string header = fmt::format(
      "<h1>{}</h1>\n<p class=\"lead\">{} model{}, {} version{} of rotations for 2-bit KV caches. "
      "<a href=\"feed.xml\">Feed of changes</a></p>\n",
      Html(options.title), rows.size(), rows.size() == 1 ? "" : "s", index.rows.size(),
      index.rows.size() == 1 ? "" : "s");
  const std::string use = fmt::format(
      "<pre><code>oscar-zoo for MODEL --zoo {0}\noscar-zoo pull {0}/ORG/MODEL"
      "</code></pre>\n",
      options.url.empty() ? "ZOO" : Html(options.url));
  const std::string table = Table("models",
                                  {"name", "base model", "version", "attention-KL", "ppl ratio",
                                   "bits", "gate", "runtimes", "published"},
                                  rows);
  const std::string hash = ScriptHash();
  return RenderPage(
      "models", header,
      {{"models", "Models", "Models", filter + table},
       {"use", "Use", "Use",
        use + Note("The first command finds versions that were made from a checkpoint that you "
                   "have, by comparing digests.")}},
      "Attention-KL is in nats, relative to the model's unquantized cache, as measured in the "
      "report of record.",
      {.kind = options.title, .style = SiteStyle(), .script = kScript, .script_hash = hash});
}

Site WriteSite(const Zoo& zoo, const fs::path& output, const SiteOptions& options) {
  const bool there = fs::exists(fs::symlink_status(output));
  if (there && !fs::exists(output / kSiteMark)) {
    throw InputError(output.string() +
                     ": exists and is not a site written by oscar-zoo; choose another name");
  }
  const ZooIndex index = CurrentIndex(zoo);
  AtomicDirectory directory(
      output, there ? AtomicDirectory::Target::kReplace : AtomicDirectory::Target::kNew);
  const auto write = [&](const std::string& file, const std::string& text) {
    const fs::path path = directory.staging() / file;
    std::ofstream page(path, std::ios::binary);
    page << text;
    page.close();
    if (!page) ThrowResource("write", path, errno);
  };
  std::vector<std::span<const IndexRow>> models;
  ForEachModel(index, [&](std::span<const IndexRow> rows) { models.push_back(rows); });
  for (const auto& rows : models)
    fs::create_directories(directory.staging() / "models" / rows[0].name.text());
  const std::map<std::string, std::string> old_keys =
      there ? ReadPageKeys(output) : std::map<std::string, std::string>();
  std::vector<std::string> problems(models.size()), keys(models.size());
  std::atomic<size_t> kept = 0;
  ParallelFor(std::ssize(models), [&](int64_t index_of_model) {
    const auto i = static_cast<size_t>(index_of_model);
    const ModelSubject subject = LookAtModel(zoo, models[i], options);
    const std::string name = models[i][0].name.text(), page = PageOf(models[i][0].name);
    if (subject.entry) keys[i] = PageKey(subject, options);
    const auto old = old_keys.find(name);
    if (old != old_keys.end() && old->second == keys[i] &&
        fs::is_regular_file(fs::symlink_status(output / page)) &&
        link((output / page).c_str(), (directory.staging() / page).c_str()) == 0) {
      ++kept;
    } else {
      write(page, ModelPage(subject, options, &problems[i]));
    }
    if (!problems[i].empty()) keys[i].clear();
    write("models/" + name + "/badge.svg", BadgeSvg(Headline(models[i])));
  });
  Json pages = Json::object();
  for (size_t i = 0; i < models.size(); ++i)
    if (!keys[i].empty()) pages[models[i][0].name.text()] = keys[i];
  write(kPagesFile, CanonicalJson({{"pages", std::move(pages)}}));
  write("index.html", IndexPage(index, options));
  write(kSiteMark, AtomFeed(index, options));
  directory.Commit(AtomicDirectory::Flush::kNothing);
  Site site{models.size(), index.rows.size(), kept.load(), index.problems};
  for (const std::string& problem : problems)
    if (!problem.empty()) site.problems.push_back(problem);
  return site;
}

}  // namespace oscar
