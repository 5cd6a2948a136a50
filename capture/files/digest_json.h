// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// File digests inside JSON documents: {"sha256": ..., "size": bytes}. Part of the formats that hold
// it.
#pragma once

#include <string_view>

#include "capture/files/digest.h"
#include "capture/files/strict_json.h"

namespace oscar {

Json DigestToJson(const FileDigest& digest);

// Throws InputError naming `what` if a member is missing or of another type.
FileDigest DigestFromJson(const Json& json, std::string_view what);

}  // namespace oscar
