// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "zoo/trust/signature_store.h"

#include <fmt/format.h>
#include <unistd.h>

#include <system_error>

#include "capture/files/atomic_file.h"
#include "linalg/base/error.h"
#include "zoo/signing/model_statement.h"
#include "zoo/store/blob_store.h"
#include "zoo/store/publisher.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr std::string_view kBundleSuffix = ".sigstore.json";

// Lists the files that are named like signatures. Removes unfinished files of interrupted signers.
// The caller holds the lock.
SignatureIndex ListFolder(const fs::path& folder) {
  SignatureIndex index;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (name.find(".tmp-") != name.npos) unlink(entry->path().c_str());
    if (!name.ends_with(kBundleSuffix) || entry->symlink_status().type() != fs::file_type::regular)
      continue;
    name.resize(name.size() - kBundleSuffix.size());
    if (IsSha256Hex(name)) index[name] = entry->file_size();
  }
  if (error) throw InputError(fmt::format("{}: {}", folder.string(), error.message()));
  return index;
}

}  // namespace

std::string AddSignature(const Zoo& zoo, const ZooEntry& entry, const Signer& signer,
                         const std::function<void()>& waiting) {
  ModelStatement statement;
  statement.subject = entry.name.text() + "@" + entry.version.text();
  statement.ignored = AlwaysIgnored();
  for (const auto& [name, digest] : entry.files) statement.files[name] = digest.sha256;
  CheckSigner(signer, statement.subject);
  const std::string text = SignedBundleText(StatementText(statement), signer);
  const std::string sha256 = Sha256Hex(text);
  const Publisher publisher(zoo, entry.name, waiting);  // its lock serializes index updates
  const fs::path folder = SignatureFolder(zoo.path(), entry.name, entry.version);
  MakeFolders(zoo.path(), folder);
  WriteFileAtomically(SignaturePath(zoo.path(), entry.name, entry.version, sha256), text);
  const SignatureIndex index = ListFolder(folder);
  if (index.size() > kMaxSignatures) {
    throw InputError(fmt::format("{}: has {} signatures, expected at most {}; remove some",
                                 folder.string(), index.size(), kMaxSignatures));
  }
  WriteFileAtomically(folder / kSignatureIndexFile, CanonicalJson(SignatureIndexToJson(index)));
  return sha256;
}

std::vector<std::string> ReadSignatures(const Zoo& zoo, const ZooName& name,
                                        const ZooVersion& version) {
  const fs::path file = SignatureFolder(zoo.path(), name, version) / kSignatureIndexFile;
  if (fs::symlink_status(file).type() == fs::file_type::not_found) return {};
  std::vector<std::string> texts;
  for (const auto& [sha256, size] :
       ParseSignatureIndex(ReadSmallFile(file, kZooJsonLimits.max_bytes), file.string())) {
    const fs::path path = SignaturePath(zoo.path(), name, version, sha256);
    texts.push_back(ReadSmallFile(path, kMaxSignatureBytes));
    if (texts.back().size() != size || Sha256Hex(texts.back()) != sha256)
      throw InputError(
          fmt::format("{}: the signature does not match its file name", path.string()));
  }
  return texts;
}

std::vector<std::string> ClaimedSigners(std::span<const std::string> bundles,
                                        std::string_view what) {
  std::vector<std::string> signers;
  for (const std::string& text : bundles) {
    const SignedBundle bundle = ParseBundle(text, what);
    const std::vector<std::string> names = bundle.chain.empty()
                                               ? std::vector{"key " + bundle.key_hint.substr(0, 16)}
                                               : bundle.chain.front().names();
    signers.push_back(names.empty() ? "a certificate without a name" : names.front());
  }
  return signers;
}

std::optional<std::string> ReadSnapshotFile(const Zoo& zoo) {
  const fs::path file = zoo.path() / kSnapshotFile;
  if (fs::symlink_status(file).type() == fs::file_type::not_found) return std::nullopt;
  return ReadSmallFile(file, kMaxSnapshotBytes);
}

}  // namespace oscar
