// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "zoo/source/fetch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <set>
#include <thread>
#include <vector>

#include "capture/files/posix_file.h"
#include "export/artifact/artifact_format.h"
#include "linalg/base/error.h"
#include "zoo/store/blob_store.h"
#include "zoo/store/yank.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

// A transfer that ends after fewer bytes than this counts as failed without progress. Otherwise a
// server could keep a command busy forever by sending a little each time.
constexpr uint64_t kWorthwhile = 64 << 10;  // bytes
constexpr size_t kHashPiece = size_t{1} << 20;

// Counts the failed transfers of one file and waits between tries.
class Patience {
 public:
  explicit Patience(const TransferOptions& options) : options_(options) {}

  // Returns false if there are no more tries.
  bool Again(uint64_t gained) {
    if (gained >= kWorthwhile) failures_ = 0;
    if (++failures_ >= options_.max_failures) return false;
    const double seconds = options_.pause_seconds * std::pow(2.0, failures_ - 1);
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (std::chrono::steady_clock::now() < until) {
      if (options_.alive) options_.alive();
      std::this_thread::sleep_for(
          std::chrono::duration<double>(std::min(0.05, options_.pause_seconds)));
    }
    return true;
  }

 private:
  const TransferOptions& options_;
  int failures_ = 0;
};

// An unfinished blob. It must be a regular file that we created; bytes are only appended to it.
class PartFile {
 public:
  explicit PartFile(fs::path path) : path_(std::move(path)) {
    descriptor_ = open(path_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0666);
    if (descriptor_ < 0) ThrowResource("open", path_, errno);
    struct stat status {};
    if (fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink != 1) {
      close(descriptor_);
      throw InputError(
          fmt::format("{}: is not a file of an unfinished pull; move it away", path_.string()));
    }
    size_ = static_cast<uint64_t>(status.st_size);
  }
  ~PartFile() { close(descriptor_); }
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  uint64_t size() const { return size_; }
  Sha256& digest() { return digest_; }

  // Hashes the bytes that an earlier call received.
  void HashContent() {
    std::vector<std::byte> piece(std::min<uint64_t>(kHashPiece, size_));
    for (uint64_t at = 0; at < size_;) {
      const auto bytes = std::span(piece).first(std::min<uint64_t>(piece.size(), size_ - at));
      ReadFullyAt(descriptor_, bytes, at, path_);
      digest_.Add(bytes);
      at += bytes.size();
    }
  }
  void Empty() {
    if (ftruncate(descriptor_, 0) != 0) ThrowResource("truncate", path_, errno);
    size_ = 0;
    digest_ = Sha256();
  }
  void Append(std::span<const std::byte> bytes) {
    const int error = WriteFullyAt(descriptor_, bytes, size_);
    if (error != 0) ThrowResource("write", path_, error);
    size_ += bytes.size();
    digest_.Add(bytes);
  }
  void TakeName(const fs::path& blob) {
    if (fsync(descriptor_) != 0) ThrowResource("flush to disk", path_, errno);
    if (std::rename(path_.c_str(), blob.c_str()) != 0)
      ThrowResource("rename the finished blob to", blob, errno);
  }

 private:
  fs::path path_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
  Sha256 digest_;
};

class BlobFetcher {
 public:
  BlobFetcher(const ZooSource& source, const fs::path& blobs, const fs::path& parts,
              const FetchOptions& options, uint64_t total, FetchCounts* counts)
      : source_(source),
        blobs_(blobs),
        parts_(parts),
        options_(options),
        total_(total),
        counts_(counts) {}

  void Fetch(const std::string& file, const FileDigest& expected) {
    const fs::path blob = blobs_ / expected.sha256;
    if (Here(file, blob, expected)) return;
    const std::string what =
        fmt::format("{}: {} (blob {})", source_.address, file, expected.sha256);
    PartFile part(parts_ / (expected.sha256 + ".part"));
    if (part.size() > expected.size) part.Empty();
    part.HashContent();
    counts_->resumed += part.size();
    for (bool again = false;; again = true) {
      Fill(file, expected, what, &part);
      const std::string found = part.digest().FinishHex();
      if (found == expected.sha256) break;
      part.Empty();
      if (again) {
        throw InputError(
            fmt::format("{}: received data with SHA-256 {}, expected {}; the source is damaged, or "
                        "the data was changed on the way",
                        what, found, expected.sha256));
      }
      counts_->refetched.push_back(file);  // retries once, because an earlier call may have
                                           // received wrong bytes
    }
    part.TakeName(blob);
    done_ += expected.size;
  }

 private:
  bool Here(const std::string& file, const fs::path& blob, const FileDigest& expected) {
    if (ContentProblem(blob, expected).empty()) {
      counts_->reused += expected.size;
      done_ += expected.size;
      return true;
    }
    const fs::file_status there = fs::symlink_status(blob);
    if (fs::exists(there)) {
      if (!fs::is_regular_file(there))
        throw InputError(fmt::format("{}: is not a blob; move it away", blob.string()));
      counts_->refetched.push_back(file);
    }
    for (const fs::path& zoo : options_.zoos) {
      const fs::path other = BlobPath(zoo, expected.sha256);
      if (!ContentProblem(other, expected).empty()) continue;
      const fs::path copy = parts_ / (expected.sha256 + ".copy");
      unlink(copy.c_str());  // a leftover of an interrupted call
      CopyChecked(other, expected, copy);
      if (std::rename(copy.c_str(), blob.c_str()) != 0)
        ThrowResource("rename the copied blob to", blob, errno);
      counts_->reused += expected.size;
      done_ += expected.size;
      return true;
    }
    return false;
  }

  // Appends bytes from the source until the unfinished blob has its full size.
  void Fill(const std::string& file, const FileDigest& expected, const std::string& what,
            PartFile* part) {
    Patience patience(options_.transfer);
    while (part->size() < expected.size) {
      const uint64_t before = part->size();
      const ReadEnd end = source_.read(
          {"blobs/sha256/" + expected.sha256, before, expected.size},
          [&](std::span<const std::byte> bytes) {
            if (bytes.size() > expected.size - part->size())
              throw InputError(fmt::format("{}: the source sends more than the expected {} bytes",
                                           what, expected.size));
            if (options_.transfer.alive) options_.transfer.alive();
            part->Append(bytes);
            counts_->bytes += bytes.size();
            if (options_.progress) options_.progress(file, done_ + part->size(), total_);
          });
      if (!end.found) throw InputError(what + ": the source does not have it");
      if (part->size() == expected.size) return;
      if (!patience.Again(part->size() - before)) {
        throw ResourceError(fmt::format(
            "{}: interrupted at {} of {} bytes: {}; repeat the command to continue there", what,
            part->size(), expected.size,
            end.broken.empty() ? std::string("the source ended the transfer early") : end.broken));
      }
    }
  }

  const ZooSource& source_;
  fs::path blobs_, parts_;
  const FetchOptions& options_;
  uint64_t total_, done_ = 0;
  FetchCounts* counts_;
};

std::string Missing(const ZooSource& source, const ZooReference& reference) {
  return fmt::format("{}: does not contain {}; oscar-zoo ls lists its contents", source.address,
                     reference.text());
}

}  // namespace

std::optional<std::string> ReadSource(const ZooSource& source, const std::string& file,
                                      size_t max_bytes, const TransferOptions& options) {
  Patience patience(options);
  for (;;) {
    std::string text;
    const ReadEnd end = source.read({file}, [&](std::span<const std::byte> bytes) {
      if (bytes.size() > max_bytes - text.size()) {
        throw InputError(fmt::format("{}/{}: the file exceeds the limit of {} bytes",
                                     source.address, file, max_bytes));
      }
      text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    });
    if (!end.found) return std::nullopt;
    if (end.broken.empty()) return text;
    if (!patience.Again(0)) {
      throw ResourceError(
          fmt::format("{}/{}: {}; check the address, and that the server is running",
                      source.address, file, end.broken));
    }
  }
}

void FetchBlobs(const ZooSource& source, const ZooEntry& entry, const fs::path& blobs,
                const fs::path& parts, const FetchOptions& options, FetchCounts* counts) {
  BlobFetcher fetcher(source, blobs, parts, options, entry.bytes(), counts);
  // The manifest is fetched first. If the entry is unavailable, this fails before any large file.
  fetcher.Fetch(kManifestFile, entry.files.at(kManifestFile));
  for (const auto& [file, digest] : entry.files)
    if (file != kManifestFile) fetcher.Fetch(file, digest);
}

FetchedEntry FetchEntry(const ZooSource& source, const ZooReference& reference,
                        const TransferOptions& options) {
  std::optional<ZooVersion> version = reference.version;
  const size_t limit = kZooJsonLimits.max_bytes;
  if (!version && !reference.identity) {
    const std::string file = (EntryFolder("", reference.name) / kLatestFile).string();
    if (const auto text = ReadSource(source, file, limit, options))
      version = ParseLatest(*text, reference.name, source.address + "/" + file).version;
  }
  if (!version) {
    const ZooIndex index = source.index();
    const IndexRow* row = FindRow(index, reference);
    if (row == nullptr) throw InputError(Missing(source, reference));
    version = row->version;
  }
  const std::string file = EntryPath("", reference.name, *version).string(),
                    what = source.address + "/" + file;
  auto text = ReadSource(source, file, limit, options);
  if (!text) throw InputError(Missing(source, {reference.name, version}));
  FetchedEntry out{ParseEntry(*text, what), *text, ""};
  if (out.entry.name != reference.name || out.entry.version != *version) {
    throw InputError(fmt::format("{}: the file describes {}@{}, expected {}@{}", what,
                                 out.entry.name.text(), out.entry.version.text(),
                                 reference.name.text(), version->text()));
  }
  if (reference.identity && out.entry.identity != *reference.identity) {
    throw InputError(
        fmt::format("{}: identity {}, expected {}", what, out.entry.identity, *reference.identity));
  }
  const std::string yank = YankPath("", reference.name, *version).string();
  if (const auto reason = ReadSource(source, yank, limit, options))
    out.yanked = ParseYank(*reason, reference.name, *version, source.address + "/" + yank);
  return out;
}

std::vector<std::string> FetchSignatures(const ZooSource& source, const ZooName& name,
                                         const ZooVersion& version,
                                         const TransferOptions& options) {
  const std::string file = (SignatureFolder("", name, version) / kSignatureIndexFile).string();
  const auto text = ReadSource(source, file, kZooJsonLimits.max_bytes, options);
  if (!text) return {};
  std::vector<std::string> bundles;
  for (const auto& [sha256, size] : ParseSignatureIndex(*text, source.address + "/" + file)) {
    const std::string path = SignaturePath("", name, version, sha256).string();
    const auto bundle = ReadSource(source, path, size, options);
    if (!bundle || bundle->size() != size || Sha256Hex(*bundle) != sha256)
      throw InputError(fmt::format("{}/{}: does not exist, or its content does not match its name",
                                   source.address, path));
    bundles.push_back(*bundle);
  }
  return bundles;
}

}  // namespace oscar
