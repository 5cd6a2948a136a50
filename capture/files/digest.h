// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 (OpenSSL) of bytes and files in lower-case hexadecimal. It identifies everything that we
// read and write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace oscar {

// Fuzzing changes bytes and so invalidates every digest. A fuzzing build (OSCAR_FUZZ), and no
// other, accepts any CRC and digest.
#ifdef OSCAR_FUZZ
inline constexpr bool kComparesDigests = false;
#else
inline constexpr bool kComparesDigests = true;
#endif

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  void Add(std::span<const std::byte> bytes);
  void Add(std::string_view text) { Add(std::as_bytes(std::span(text))); }
  std::string FinishHex();  // 64 characters; the object may not be used afterwards

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

std::string Sha256Hex(std::span<const std::byte> bytes);
std::string Sha256Hex(std::string_view text);

struct FileDigest {
  std::string sha256;  // 64 lower-case hexadecimal digits
  uint64_t size = 0;   // bytes
  bool operator==(const FileDigest&) const = default;
};

// Reads the file once, in pieces of 1 MiB. Before each piece, it calls `before_read` with the
// piece's byte offset; that function may wait (ReadTurns) or throw. The last `cached` bytes read
// stay in the page cache; the rest is dropped to make room for unread data. Throws InputError if
// the file cannot be read.
FileDigest DigestFile(const std::filesystem::path& path,
                      const std::function<void(uint64_t)>& before_read = nullptr,
                      uint64_t cached = std::numeric_limits<uint64_t>::max());

}  // namespace oscar
