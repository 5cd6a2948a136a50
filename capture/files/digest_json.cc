// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/files/digest_json.h"

namespace oscar {

Json DigestToJson(const FileDigest& digest) {
  return {{"sha256", digest.sha256}, {"size", digest.size}};
}

FileDigest DigestFromJson(const Json& json, std::string_view what) {
  return {JsonString(json, "sha256", what), static_cast<uint64_t>(JsonInt(json, "size", what))};
}

}  // namespace oscar
