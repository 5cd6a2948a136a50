// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "zoo/source/hub_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>

#include "capture/files/quote.h"
#include "export/artifact/artifact_format.h"
#include "linalg/base/error.h"
#include "zoo/source/http_source.h"
#include "zoo/source/model_repository.h"
#include "zoo/store/blob_store.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr const char* kHubEndpoint = "https://huggingface.co";
constexpr size_t kMaxTokenBytes = 4096;
constexpr JsonLimits kListingLimits{
    .max_depth = 32, .max_bytes = size_t{16} << 20, .max_values = 1'000'000};

// Finds the token in the same places as the Hub's client; "" if there is none.
std::string HubToken(const Environment& environment) {
  std::string token;
  for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"})
    if (token.empty()) token = environment(name).value_or("");
  const fs::path file = HubTokenFile(environment);
  if (token.empty() && !file.empty() && fs::exists(file))
    token = ReadSmallFile(file, kMaxTokenBytes);
  constexpr std::string_view kSpace = " \t\r\n";
  token.erase(0, std::min(token.find_first_not_of(kSpace), token.size()));
  token.erase(token.find_last_not_of(kSpace) + 1);
  if (!std::ranges::all_of(token, [](char c) { return c > ' ' && c < '\x7F'; }))
    throw InputError(
        "the Hub's token (HF_TOKEN, HF_TOKEN_PATH) contains spaces or control characters");
  return token;
}

// Encodes one component of a URL; a slash in a revision is not a separator.
std::string UrlComponent(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       c == '-' || c == '_' || c == '.' || c == '~';
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

bool IsCommitDigest(std::string_view text) {
  return text.size() == 40 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

class HubRepository {
 public:
  HubRepository(HubId id, TransferOptions options, const Environment& environment)
      : id_(std::move(id)), options_(std::move(options)) {
    options_.token = HubToken(environment);
    options_.token_from =
        "HF_TOKEN, HF_TOKEN_PATH or the login of hf auth (the Hub also answers this way if there "
        "is no such repository)";
    std::string endpoint = environment("HF_ENDPOINT").value_or("");
    server_ = HttpSource(endpoint.empty() ? kHubEndpoint : endpoint, options_);
  }

  std::string address() const {
    return "hf:" + id_.repository + (id_.revision_given ? "@" + id_.revision : "");
  }

  // Null if the repository does not exist or holds no version.
  const ZooEntry* Find() {
    if (entry_) return &*entry_;
    const std::string listing =
        "api/models/" + id_.repository + "/revision/" + UrlComponent(id_.revision);
    const std::string what = server_.address + "/" + listing;
    const auto text = ReadSource(server_, listing, kListingLimits.max_bytes, options_);
    if (!text) return nullptr;
    const Json json = ParseStrictJson(*text, what, kListingLimits);
    commit_ = JsonString(json, "sha", what);
    if (!IsCommitDigest(commit_))
      throw InputError(fmt::format("{}: expected a commit, found {}", what, Quoted(commit_)));
    const Json& siblings = JsonMember(json, "siblings", what);
    if (!siblings.is_array()) throw InputError(what + ": 'siblings' must be an array");
    files_.clear();
    for (const Json& file : siblings) files_.insert(JsonString(file, "rfilename", what));
    if (!files_.contains(kRepositoryEntryFile)) return nullptr;
    const std::string file = PathOf(kRepositoryEntryFile);
    const auto entry = ReadSource(server_, file, kZooJsonLimits.max_bytes, options_);
    if (!entry) return nullptr;
    entry_ = ParseEntry(*entry, server_.address + "/" + file);
    return &*entry_;
  }

  const ZooEntry& Entry() {
    if (const ZooEntry* entry = Find()) return *entry;
    throw InputError(
        fmt::format("{}: {} has no such repository or revision, or it does not contain {}, which "
                    "oscar-zoo push writes",
                    address(), server_.address, kRepositoryEntryFile));
  }

  ReadEnd Read(const ReadRequest& request, const ByteSink& sink) {
    const std::string name = RepositoryFileOf(Entry(), request.file);
    if (name.empty() || !files_.contains(name)) return {.found = false};
    return server_.read({PathOf(name), request.offset, request.size}, sink);
  }

  ZooIndex Index() {
    const ZooEntry& entry = Entry();
    const FileDigest& digest = entry.files.at(kManifestFile);
    Json manifest;
    const auto text =
        ReadSource(server_, PathOf(kManifestFile),
                   std::min<uint64_t>(digest.size, kListingLimits.max_bytes), options_);
    if (text && Sha256Hex(*text) == digest.sha256)
      manifest = ParseStrictJson(*text, kManifestFile, kListingLimits);
    return {{RowOf(entry, manifest)}, {}};
  }

 private:
  std::string PathOf(const std::string& file) const {
    return id_.repository + "/resolve/" + commit_ + "/" + file;
  }

  HubId id_;
  TransferOptions options_;
  ZooSource server_;
  std::string commit_;
  std::set<std::string> files_;  // the files of that commit, as the Hub lists them
  std::optional<ZooEntry> entry_;
};

}  // namespace

ZooSource HubSource(const HubId& id, const TransferOptions& options,
                    const Environment& environment) {
  const auto hub = std::make_shared<HubRepository>(id, options, environment);
  return {
      hub->address(),
      {},
      [hub](const ReadRequest& request, const ByteSink& sink) { return hub->Read(request, sink); },
      [hub] { return hub->Index(); }};
}

std::optional<ZooEntry> ReadHubEntry(const HubId& id, const TransferOptions& options,
                                     const Environment& environment) {
  HubRepository hub(id, options, environment);
  const ZooEntry* entry = hub.Find();
  return entry == nullptr ? std::nullopt : std::optional(*entry);
}

}  // namespace oscar
