// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "zoo/source/oci_layout.h"

#include <fmt/format.h>

#include <map>
#include <memory>

#include "capture/files/atomic_file.h"
#include "capture/files/posix_file.h"
#include "capture/files/quote.h"
#include "linalg/error.h"
#include "zoo/check/artifact_check.h"
#include "zoo/store/blob_store.h"
#include "zoo/store/zoo_lock.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr std::string_view kOciManifestType = "application/vnd.oci.image.manifest.v1+json",
                           kOciIndexType = "application/vnd.oci.image.index.v1+json",
                           kOciEmptyType = "application/vnd.oci.empty.v1+json",
                           kBaseModelType = "application/vnd.oscar.base-model.v1",
                           kRefName = "org.opencontainers.image.ref.name",
                           kTitle = "org.opencontainers.image.title";
constexpr const char* kLayoutFile = "oci-layout";

Json Descriptor(std::string_view type, const FileDigest& digest) {
  return {{"mediaType", type}, {"digest", "sha256:" + digest.sha256}, {"size", digest.size}};
}

FileDigest DigestOf(const std::string& text) { return {Sha256Hex(text), text.size()}; }

FileDigest ParseDescriptor(const Json& json, std::string_view what) {
  const std::string digest = JsonString(json, "digest", what);
  if (!digest.starts_with("sha256:") || !IsSha256Hex(std::string_view(digest).substr(7))) {
    throw InputError(
        fmt::format("{}: digest {}, expected sha256: and 64 lower-case hexadecimal "
                    "digits",
                    what, Quoted(digest)));
  }
  const int64_t size = JsonInt(json, "size", what);
  if (size < 0) throw InputError(fmt::format("{}: a size below 0", what));
  return {digest.substr(7), static_cast<uint64_t>(size)};
}

// A small blob whose digest was checked.
std::string ReadTextBlob(const fs::path& layout, const FileDigest& digest) {
  const fs::path blob = BlobPath(layout, digest.sha256);
  const std::string text = ReadSmallFile(blob, kZooJsonLimits.max_bytes);
  if (DigestOf(text) != digest) {
    throw InputError(fmt::format("{}: {} bytes with SHA-256 {}, expected {} with its name",
                                 blob.string(), text.size(), Sha256Hex(text), digest.size));
  }
  return text;
}

Json ReadImageIndex(const fs::path& layout) {
  const std::string file = (layout / kIndexFile).string();
  Json index =
      ParseStrictJson(ReadSmallFile(file, kIndexJsonLimits.max_bytes), file, kIndexJsonLimits);
  const Json& manifests = JsonMember(index, "manifests", file);
  if (!manifests.is_array()) throw InputError(file + ": 'manifests' is no list");
  return index;
}

// The digests of entries by their path in a zoo; what is no entry of ours is passed over.
std::map<std::string, FileDigest> EntriesOf(const fs::path& layout) {
  std::map<std::string, FileDigest> entries;
  const Json index = ReadImageIndex(layout);
  const std::string what = (layout / kIndexFile).string();
  for (const Json& row : index.at("manifests")) {
    if (JsonString(row, "artifactType", "", what) != kOciArtifactType) continue;
    const FileDigest digest = ParseDescriptor(row, what);
    const std::string where = BlobPath(layout, digest.sha256).string();
    const Json manifest = ParseStrictJson(ReadTextBlob(layout, digest), where, kZooJsonLimits);
    const Json& config = JsonMember(manifest, "config", where);
    if (JsonString(config, "mediaType", where) != kOciEntryType) continue;
    const FileDigest entry_digest = ParseDescriptor(config, where);
    const ZooEntry entry = ParseEntry(ReadTextBlob(layout, entry_digest),
                                      BlobPath(layout, entry_digest.sha256).string());
    const std::string path = EntryPath("", entry.name, entry.version).string();
    const auto [known, added] = entries.emplace(path, entry_digest);
    if (!added && known->second != entry_digest)
      throw InputError(
          fmt::format("{}: {}@{} is there twice", what, entry.name.text(), entry.version.text()));
  }
  return entries;
}

ZooIndex IndexOf(const fs::path& layout, const std::map<std::string, FileDigest>& entries) {
  ZooIndex index;
  for (const auto& [path, digest] : entries) {
    const ZooEntry entry = ParseEntry(ReadTextBlob(layout, digest), path);
    Json manifest;
    const fs::path blob = BlobPath(layout, entry.identity);
    if (ContentProblem(blob, entry.files.at("manifest.json")).empty())
      manifest = ReadJsonFile(blob.string());
    index.rows.push_back(RowOf(entry, manifest));
  }
  SortRows(&index);
  return index;
}

// The base model as a manifest that anyone makes alike from the same checkpoint. It holds no bytes
// of the model, so a layout is complete with it.
std::string BaseModelManifest(const Json& model, const Json& empty) {
  const Json weights = model.value("weights", Json::object());
  Json annotations = {{"vnd.oscar.model.config.sha256", ConfigDigest({{"model", model}})},
                      {"vnd.oscar.model.weights.sha256", Sha256Hex(CanonicalJson(weights))}};
  return Json{{"schemaVersion", 2},
              {"mediaType", kOciManifestType},
              {"artifactType", kBaseModelType},
              {"config", empty},
              {"layers", {empty}},
              {"annotations", annotations}}
      .dump();
}

const char* LayerType(std::string_view file) {
  if (file.ends_with(".json")) return "application/json";
  if (file.ends_with(".md")) return "text/markdown";
  if (file.ends_with(".html")) return "text/html";
  return "application/octet-stream";
}

void OpenLayout(const fs::path& layout) {
  MakeFolders(ParentOf(layout), layout);
  MakeFolders(layout, BlobFolder(layout));
  const fs::path marker = layout / kLayoutFile;
  if (!fs::exists(marker)) {
    for (const auto& entry : fs::directory_iterator(layout)) {
      const std::string name = entry.path().filename().string();
      if (name != "blobs" && name != kIndexFile && !name.starts_with(kLayoutFile))
        throw InputError(fmt::format("{}: is no OCI image layout, and not empty: it holds {}",
                                     layout.string(), Quoted(name)));
    }
    WriteFileAtomically(
        layout / kIndexFile,
        Json{{"schemaVersion", 2}, {"mediaType", kOciIndexType}, {"manifests", Json::array()}}
            .dump());
    WriteFileAtomically(marker, R"({"imageLayoutVersion":"1.0.0"})");
  }
}

void AddText(const fs::path& layout, const std::string& text) {
  const FileDigest digest = DigestOf(text);
  const fs::path blob = BlobPath(layout, digest.sha256);
  if (!ContentProblem(blob, digest).empty()) WriteFileAtomically(blob, text);
}

}  // namespace

ZooSource OciSource(const fs::path& layout) {
  if (!fs::exists(layout / kLayoutFile)) {
    throw InputError(
        fmt::format("{}: no OCI image layout, there is no {} in it", layout.string(), kLayoutFile));
  }
  const auto entries = std::make_shared<const std::map<std::string, FileDigest>>(EntriesOf(layout));
  const auto read = [=](const ReadRequest& request, const ByteSink& sink) -> ReadEnd {
    ReadRequest inside = request;
    if (!request.file.starts_with("blobs/")) {
      const auto entry = entries->find(request.file);
      if (entry == entries->end()) return {.found = false};
      inside.file = "blobs/sha256/" + entry->second.sha256;
    }
    return ReadDirectory(layout, inside, sink);
  };
  return {"oci:" + layout.string(), {}, read, [=] { return IndexOf(layout, *entries); }};
}

std::string AddToOciLayout(const ZooEntry& entry, const std::string& entry_text,
                           const std::function<fs::path(const std::string&)>& file_of,
                           const fs::path& layout) {
  OpenLayout(layout);
  const FileLock lock(layout / "blobs" / ".lock", LockKind::kExclusive, nullptr);
  const Json empty = Descriptor(kOciEmptyType, DigestOf("{}"));
  const std::string base = BaseModelManifest(entry.model, empty);
  Json layers = Json::array();
  for (const auto& [name, digest] : entry.files) {
    AddBlob(layout, layout / "blobs", file_of(name), digest);
    layers.push_back(Descriptor(LayerType(name), digest));
    layers.back()["annotations"] = {{kTitle, name}};
  }
  const std::string ref = entry.name.text() + ":" + entry.version.text();
  const std::string manifest =
      Json{{"schemaVersion", 2},
           {"mediaType", kOciManifestType},
           {"artifactType", kOciArtifactType},
           {"config", Descriptor(kOciEntryType, DigestOf(entry_text))},
           {"layers", layers},
           {"subject", Descriptor(kOciManifestType, DigestOf(base))},
           {"annotations",
            {{kTitle, entry.name.text()},
             {"org.opencontainers.image.version", entry.version.text()},
             {"org.opencontainers.image.base.name", entry.model.value("id", "")},
             {"vnd.oscar.identity", "sha256:" + entry.identity}}}}
          .dump();
  for (const std::string& text : {std::string("{}"), base, entry_text, manifest})
    AddText(layout, text);
  SyncPath(BlobFolder(layout));

  Json index = ReadImageIndex(layout);
  Json row = Descriptor(kOciManifestType, DigestOf(manifest));
  row["artifactType"] = kOciArtifactType;
  row["annotations"] = {{kRefName, ref}};
  for (const Json& other : index["manifests"]) {
    if (other == row) return "sha256:" + DigestOf(manifest).sha256;
    const Json names = other.value("annotations", Json::object());
    if (names.value(kRefName, "") == ref) {
      throw InputError(
          fmt::format("{}: has another {} already; versions never change", layout.string(), ref));
    }
  }
  index["manifests"].push_back(row);
  WriteFileAtomically(layout / kIndexFile, index.dump());
  return "sha256:" + DigestOf(manifest).sha256;
}

}  // namespace oscar
