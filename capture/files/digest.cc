// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/files/digest.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <vector>

#include "capture/files/posix_file.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

// The page cache stores written data in pieces of several MiB and only drops whole pieces.
constexpr uint64_t kForgottenAtOnce = uint64_t{16} << 20;

}  // namespace

struct Sha256::Context {
  EVP_MD_CTX* evp = EVP_MD_CTX_new();
  Context() = default;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() { EVP_MD_CTX_free(evp); }
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  OSCAR_CHECK(context_->evp != nullptr);
  OSCAR_CHECK_EQ(EVP_DigestInit_ex(context_->evp, EVP_sha256(), nullptr), 1);
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::Add(std::span<const std::byte> bytes) {
  OSCAR_CHECK(context_ != nullptr);
  OSCAR_CHECK_EQ(EVP_DigestUpdate(context_->evp, bytes.data(), bytes.size()), 1);
}

std::string Sha256::FinishHex() {
  OSCAR_CHECK(context_ != nullptr);
  std::array<unsigned char, 32> digest;
  unsigned int length = 0;
  OSCAR_CHECK_EQ(EVP_DigestFinal_ex(context_->evp, digest.data(), &length), 1);
  OSCAR_CHECK_EQ(length, digest.size());
  context_.reset();
  std::string hex;
  for (const unsigned char byte : digest) hex += fmt::format("{:02x}", byte);
  return hex;
}

std::string Sha256Hex(std::span<const std::byte> bytes) {
  Sha256 sha;
  sha.Add(bytes);
  return sha.FinishHex();
}

std::string Sha256Hex(std::string_view text) { return Sha256Hex(std::as_bytes(std::span(text))); }

FileDigest DigestFile(const std::filesystem::path& path,
                      const std::function<void(uint64_t)>& before_read, uint64_t cached) {
  uint64_t size_at_open = 0;
  const int descriptor = OpenRegular(path, &size_at_open);
  const struct Closing {
    int descriptor;
    ~Closing() { close(descriptor); }
  } closing{descriptor};
  Sha256 sha;
  FileDigest digest;
  uint64_t forgotten = 0;
  std::vector<std::byte> buffer(std::clamp<uint64_t>(size_at_open, 1 << 12, 1 << 20));
  while (true) {
    if (before_read) before_read(digest.size);
    const ssize_t count = read(descriptor, buffer.data(), buffer.size());
    if (count == 0) break;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      throw InputError(fmt::format("cannot read {} at byte {}: {}", path.string(), digest.size,
                                   std::generic_category().message(errno)));
    }
    sha.Add(std::span(buffer).first(static_cast<size_t>(count)));
    digest.size += static_cast<uint64_t>(count);
    const uint64_t behind = digest.size - std::min(digest.size, cached);
    if (behind < forgotten + kForgottenAtOnce) continue;
    posix_fadvise(descriptor, 0, static_cast<off_t>(behind), POSIX_FADV_DONTNEED);
    forgotten = behind;
  }
  digest.sha256 = sha.FinishHex();
  return digest;
}

}  // namespace oscar
