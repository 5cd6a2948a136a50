// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Unpacks gzip (RFC 1952) or Zstandard (RFC 8878) files in memory. The first bytes determine the
// format, not the name. Trap: a few KB can unpack to terabytes, so there is a limit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace oscar {

inline constexpr uint64_t kMostUnpacked = uint64_t{1} << 30;  // bytes

// Unpacks all members or frames in `bytes`; returns nothing if they are not packed. Throws
// InputError naming `what` for damaged or truncated data, for anything after it, and for more than
// `most` unpacked bytes.
std::optional<std::string> Unpack(std::span<const std::byte> bytes, const std::string& what,
                                  uint64_t most = kMostUnpacked);

}  // namespace oscar
