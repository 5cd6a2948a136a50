// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Unpacks gzip (RFC 1952) or Zstandard (RFC 8878) files in memory. The first bytes, not the name,
// determine the format. Trap: a few KB can unpack to terabytes, so there is a limit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace oscar {

inline constexpr uint64_t kMostUnpacked = uint64_t{1} << 30;  // bytes

// Unpacks all members or frames in `bytes`; returns nothing if they are not packed. Throws
// InputError naming `what` if data is damaged or truncated, if anything follows it, or if it
// unpacks to more than `most` bytes.
std::optional<std::string> Unpack(std::span<const std::byte> bytes, const std::string& what,
                                  uint64_t most = kMostUnpacked);

}  // namespace oscar
