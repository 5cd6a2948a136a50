// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "zoo/source/model_repository.h"

#include <fmt/format.h>

#include <memory>

#include "capture/files/atomic_file.h"
#include "export/artifact/artifact_format.h"
#include "linalg/base/error.h"
#include "zoo/store/blob_store.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr const char* kSignatures = "signatures";
constexpr std::string_view kAttributes =
    "*.safetensors filter=lfs diff=lfs merge=lfs -text\n"
    "*.h5 filter=lfs diff=lfs merge=lfs -text\n"
    "*.html filter=lfs diff=lfs merge=lfs -text\n"
    "report.json filter=lfs diff=lfs merge=lfs -text\n"
    "* -text\n";  // Git must not change line ends, because digests cover bytes

}  // namespace

ZooSource RepositorySource(const fs::path& repository) {
  const fs::path file = repository / kRepositoryEntryFile;
  if (!fs::exists(file)) {
    throw InputError(fmt::format("{}: is not an entry of a zoo, because it does not contain {}",
                                 repository.string(), kRepositoryEntryFile));
  }
  const auto entry = std::make_shared<const ZooEntry>(
      ParseEntry(ReadSmallFile(file, kZooJsonLimits.max_bytes), file.string()));
  const auto read = [=](const ReadRequest& request, const ByteSink& sink) -> ReadEnd {
    const std::string name = RepositoryFileOf(*entry, request.file);
    // In the cache of the Hub's client, files are links to files in another folder, so links are
    // followed here.
    std::error_code error;
    const fs::path real = name.empty() ? fs::path() : fs::canonical(repository / name, error);
    if (name.empty() || error) return {.found = false};
    return ReadDirectory(real.parent_path(), {real.filename(), request.offset, request.size}, sink);
  };
  const auto index = [=] {
    Json manifest;
    const fs::path manifest_file = repository / kManifestFile;
    if (ContentProblem(manifest_file, entry->files.at(kManifestFile)).empty())
      manifest = ReadJsonFile(manifest_file.string());
    return ZooIndex{{RowOf(*entry, manifest)}, {}};
  };
  return {"hf:" + repository.string(), {}, read, index};
}

std::string RepositoryFileOf(const ZooEntry& entry, const std::string& zoo_file) {
  if (zoo_file == EntryPath("", entry.name, entry.version)) return kRepositoryEntryFile;
  for (const auto& [name, digest] : entry.files)
    if (zoo_file == BlobPath("", digest.sha256)) return name;
  const std::string signatures = SignatureFolder("", entry.name, entry.version).string() + "/";
  if (!zoo_file.starts_with(signatures)) return "";
  return kSignatures + ("/" + zoo_file.substr(signatures.size()));
}

void WriteRepository(const ZooEntry& entry, const std::string& entry_text,
                     const std::function<fs::path(const std::string&)>& file_of,
                     const std::vector<std::string>& signatures, const fs::path& repository) {
  AtomicDirectory directory(repository);
  for (const auto& [name, digest] : entry.files)
    CopyChecked(file_of(name), digest, directory.staging() / name);
  WriteFileAtomically(directory.staging() / kRepositoryEntryFile, entry_text);
  WriteFileAtomically(directory.staging() / ".gitattributes", kAttributes);
  SignatureIndex index;
  for (const std::string& text : signatures) {
    const std::string sha256 = Sha256Hex(text);
    const std::string file = SignaturePath("", entry.name, entry.version, sha256).string();
    index[sha256] = text.size();
    fs::create_directory(directory.staging() / kSignatures);
    WriteFileAtomically(directory.staging() / RepositoryFileOf(entry, file), text);
  }
  if (!index.empty()) {
    WriteFileAtomically(directory.staging() / kSignatures / kSignatureIndexFile,
                        CanonicalJson(SignatureIndexToJson(index)));
  }
  directory.Commit();
}

}  // namespace oscar
