// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// File digests inside JSON documents: {"sha256": ..., "size": bytes}. They are part of the formats
// that contain them.
#pragma once

#include <string_view>

#include "capture/files/digest.h"
#include "capture/files/strict_json.h"

namespace oscar {

Json DigestToJson(const FileDigest& digest);

// Throws InputError naming `what` if a member is missing or of another type.
FileDigest DigestFromJson(const Json& json, std::string_view what);

}  // namespace oscar
