// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "zoo/source/model_repository.h"

#include <fmt/format.h>

#include <memory>

#include "capture/files/atomic_file.h"
#include "export/artifact/artifact_format.h"
#include "linalg/error.h"
#include "zoo/store/blob_store.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr std::string_view kAttributes =
    "*.safetensors filter=lfs diff=lfs merge=lfs -text\n"
    "*.h5 filter=lfs diff=lfs merge=lfs -text\n"
    "*.html filter=lfs diff=lfs merge=lfs -text\n"
    "report.json filter=lfs diff=lfs merge=lfs -text\n"
    "* -text\n";  // digests are of bytes: no line end may change

}  // namespace

ZooSource RepositorySource(const fs::path& repository) {
  const fs::path file = repository / kRepositoryEntryFile;
  if (!fs::exists(file)) {
    throw InputError(fmt::format("{}: holds no entry of a zoo, there is no {} in it",
                                 repository.string(), kRepositoryEntryFile));
  }
  const auto entry = std::make_shared<const ZooEntry>(
      ParseEntry(ReadSmallFile(file, kZooJsonLimits.max_bytes), file.string()));
  const auto read = [=](const ReadRequest& request, const ByteSink& sink) -> ReadEnd {
    std::string name;
    if (request.file == EntryPath("", entry->name, entry->version)) name = kRepositoryEntryFile;
    for (const auto& [file_name, digest] : entry->files)
      if (request.file == BlobPath("", digest.sha256)) name = file_name;
    // The Hub's own cache is one of links to contents elsewhere; what they lead to is checked.
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

void WriteRepository(const ZooEntry& entry, const std::string& entry_text,
                     const std::function<fs::path(const std::string&)>& file_of,
                     const fs::path& repository) {
  AtomicDirectory directory(repository);
  for (const auto& [name, digest] : entry.files)
    CopyChecked(file_of(name), digest, directory.staging() / name);
  WriteFileAtomically(directory.staging() / kRepositoryEntryFile, entry_text);
  WriteFileAtomically(directory.staging() / ".gitattributes", kAttributes);
  directory.Commit();
}

}  // namespace oscar
