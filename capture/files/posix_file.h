// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// System calls for files, with typed errors. Most code should use AtomicFile and MappedFile, which
// are built on these. Trap: descriptors are plain ints owned by the caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

namespace oscar {

// Throws ResourceError "cannot <action> <path>: <reason of error_number>", with what to try.
[[noreturn]] void ThrowResource(std::string_view action, const std::filesystem::path& path,
                                int error_number);

// Opens a regular file for reading and returns its descriptor; `size` is in bytes. Refuses a pipe
// or device without waiting. Throws InputError (ResourceError if the process is out of
// descriptors).
int OpenRegular(const std::filesystem::path& path, uint64_t* size);

struct TemporaryFile {
  std::filesystem::path path;  // "<target>.tmp-<pid>-<counter>"
  int descriptor = -1;         // open for reading and writing
};

// Creates a new file next to `target`. Throws ResourceError.
TemporaryFile CreateTemporarySibling(const std::filesystem::path& target);

// Writes all of `bytes` at `offset` (bytes); returns 0 or the errno of the first failure.
int WriteFullyAt(int descriptor, std::span<const std::byte> bytes, uint64_t offset);

// Reads all of `into` at `offset` (bytes). Throws InputError naming `path` and the byte that cannot
// be read.
void ReadFullyAt(int descriptor, std::span<std::byte> into, uint64_t offset,
                 const std::filesystem::path& path);

// Calls fsync and close, renames over `target`, and calls fsync on the parent. Always closes the
// descriptor; on failure the caller must remove the temporary file. Throws ResourceError.
void PublishTemporary(const TemporaryFile& temporary, const std::filesystem::path& target);

// Returns the directory that holds `path`: "." for a bare name.
std::filesystem::path ParentOf(const std::filesystem::path& path);

}  // namespace oscar
