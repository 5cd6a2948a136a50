// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/files/digest_json.h"

#include <string>

#include "linalg/base/error.h"

namespace oscar {

Json DigestToJson(const FileDigest& digest) {
  return {{"sha256", digest.sha256}, {"size", digest.size}};
}

FileDigest DigestFromJson(const Json& json, std::string_view what) {
  const int64_t size = JsonInt(json, "size", what);
  if (size < 0) throw InputError(std::string(what) + ": size: expected a number of bytes");
  return {JsonString(json, "sha256", what), static_cast<uint64_t>(size)};
}

}  // namespace oscar
