// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "zoo/store/blob_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <span>
#include <system_error>
#include <utility>

#include "capture/files/posix_file.h"
#include "linalg/base/error.h"
#include "zoo/store/zoo_format.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr size_t kPiece = size_t{1} << 20;  // bytes

class ScopedDescriptor {
 public:
  explicit ScopedDescriptor(int descriptor) : descriptor_(descriptor) {}
  ~ScopedDescriptor() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  ScopedDescriptor(const ScopedDescriptor&) = delete;
  ScopedDescriptor& operator=(const ScopedDescriptor&) = delete;
  int get() const { return descriptor_; }
  int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_;
};

// Returns the number of bytes read, 0 at the end. Throws ResourceError if reading fails, because
// the content is then unknown and need not be wrong.
size_t ReadPiece(int descriptor, std::span<std::byte> piece, const fs::path& path) {
  for (;;) {
    const ssize_t n = read(descriptor, piece.data(), piece.size());
    if (n >= 0) return static_cast<size_t>(n);
    if (errno != EINTR) ThrowResource("read", path, errno);
  }
}

using Sink = std::function<void(std::span<const std::byte>, uint64_t offset)>;

// Passes the file's bytes to `sink` while checking them. Returns the problem, or "". If there is a
// problem, the sink may have received wrong bytes, so callers must discard what it produced.
std::string Stream(const fs::path& path, const FileDigest& expected, const Sink& sink) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return std::generic_category().message(errno);
  if (!S_ISREG(status.st_mode)) return "is not a regular file";
  uint64_t size = 0;
  const ScopedDescriptor file(OpenRegular(path, &size));
  if (size != expected.size) return fmt::format("{} bytes, expected {}", size, expected.size);
  Sha256 digest;
  std::vector<std::byte> buffer(static_cast<size_t>(std::min<uint64_t>(kPiece, size + 1)));
  uint64_t offset = 0;
  while (const size_t n = ReadPiece(file.get(), buffer, path)) {
    if (n > size - offset) return fmt::format("grew beyond {} bytes while being read", size);
    const auto piece = std::span<const std::byte>(buffer).first(n);
    digest.Add(piece);
    sink(piece, offset);
    offset += n;
  }
  if (offset != size) return fmt::format("ends after {} of {} bytes", offset, size);
  const std::string found = digest.FinishHex();
  if (found != expected.sha256)
    return fmt::format("SHA-256 {}, expected {}", found, expected.sha256);
  return "";
}

// Copies to an open descriptor and flushes it. Returns the problem with the source, or "".
std::string CopyTo(const fs::path& source, const FileDigest& expected, int descriptor,
                   const fs::path& target) {
  const std::string problem =
      Stream(source, expected, [&](std::span<const std::byte> piece, uint64_t offset) {
        const int error = WriteFullyAt(descriptor, piece, offset);
        if (error != 0) ThrowResource("write", target, error);
      });
  if (problem.empty() && fsync(descriptor) != 0) ThrowResource("flush to disk", target, errno);
  return problem;
}

void CloseWritten(ScopedDescriptor* file, const fs::path& path) {
  if (close(file->release()) != 0 && errno != EINTR) ThrowResource("close", path, errno);
}

// Removes the file unless Keep() was called.
class Unfinished {
 public:
  explicit Unfinished(fs::path path) : path_(std::move(path)) {}
  ~Unfinished() {
    if (!path_.empty()) unlink(path_.c_str());
  }
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
  void Keep() { path_.clear(); }

 private:
  fs::path path_;
};

}  // namespace

std::string ContentProblem(const fs::path& file, const FileDigest& expected) {
  return Stream(file, expected, [](std::span<const std::byte>, uint64_t) {});
}

void CopyChecked(const fs::path& source, const FileDigest& expected, const fs::path& target) {
  ScopedDescriptor file(open(target.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.get() < 0) ThrowResource("create", target, errno);
  Unfinished unfinished(target);
  if (const std::string problem = CopyTo(source, expected, file.get(), target); !problem.empty())
    throw InputError(fmt::format("{}: {}", source.string(), problem));
  CloseWritten(&file, target);
  unfinished.Keep();
}

bool AddBlob(const fs::path& zoo, const fs::path& staging, const fs::path& source,
             const FileDigest& expected) {
  const fs::path blob = BlobPath(zoo, expected.sha256);
  if (ContentProblem(blob, expected).empty()) return false;
  const TemporaryFile temporary = CreateTemporarySibling(staging / "blob");
  ScopedDescriptor file(temporary.descriptor);
  Unfinished unfinished(temporary.path);
  if (const std::string problem = CopyTo(source, expected, file.get(), temporary.path);
      !problem.empty()) {
    throw InputError(
        fmt::format("{}: {}; it changed while being published", source.string(), problem));
  }
  CloseWritten(&file, temporary.path);
  if (std::rename(temporary.path.c_str(), blob.c_str()) != 0)
    ThrowResource("rename the finished blob to", blob, errno);
  unfinished.Keep();
  return true;
}

BlobListing ListBlobs(const fs::path& zoo) {
  BlobListing listing;
  std::error_code error;
  for (fs::directory_iterator entry(BlobFolder(zoo), error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (IsSha256Hex(name) && entry->symlink_status().type() == fs::file_type::regular) {
      listing.blobs.push_back({name, entry->file_size()});
    } else {
      listing.strangers.push_back(name);
    }
  }
  if (error) throw InputError(fmt::format("{}: {}", BlobFolder(zoo).string(), error.message()));
  std::sort(listing.blobs.begin(), listing.blobs.end(),
            [](const FileDigest& a, const FileDigest& b) { return a.sha256 < b.sha256; });
  std::sort(listing.strangers.begin(), listing.strangers.end());
  return listing;
}

std::string ReadChecked(const fs::path& file, const FileDigest& expected, size_t max_bytes) {
  if (expected.size > max_bytes) {
    throw InputError(fmt::format("{}: has {} bytes, expected at most {}", file.string(),
                                 expected.size, max_bytes));
  }
  std::string text;
  text.reserve(expected.size);
  const std::string problem =
      Stream(file, expected, [&](std::span<const std::byte> piece, uint64_t) {
        text.append(reinterpret_cast<const char*>(piece.data()), piece.size());
      });
  if (!problem.empty()) throw InputError(fmt::format("{}: {}", file.string(), problem));
  return text;
}

std::string ReadSmallFile(const fs::path& path, size_t max_bytes) {
  uint64_t size = 0;
  const ScopedDescriptor file(OpenRegular(path, &size));
  if (size > max_bytes) {
    throw InputError(
        fmt::format("{}: has {} bytes, expected at most {}", path.string(), size, max_bytes));
  }
  std::string text(static_cast<size_t>(size), '\0');
  size_t filled = 0;
  while (filled < text.size()) {
    const size_t n =
        ReadPiece(file.get(), std::as_writable_bytes(std::span(text).subspan(filled)), path);
    if (n == 0) break;
    filled += n;
  }
  text.resize(filled);
  return text;
}

}  // namespace oscar
