// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads JSON from untrusted bytes. It is stricter than the underlying parser (nlohmann/json):
// duplicate keys, nesting beyond a limit, bytes that are not UTF-8, NaN and Infinity, and anything
// after the value are InputErrors naming `what` and the byte offset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace oscar {

using Json = nlohmann::json;  // object keys sorted: dump() is canonical

struct JsonLimits {
  size_t max_depth = 64;
  size_t max_bytes = size_t{256} << 20;
  size_t max_values = 20'000'000;  // containers, members and elements; bounds memory
};

// The objects in the array `key`, a member of the document's root, are passed to `row` one by one.
// They are not kept, so that many rows need not be in memory at once.
struct JsonRows {
  std::string_view key;
  std::function<void(Json&& row)> row;
};

// `what` names the source in errors, for example the file's path.
Json ParseStrictJson(std::string_view text, std::string_view what, const JsonLimits& limits = {},
                     const JsonRows* rows = nullptr);
Json ReadJsonFile(const std::string& path, const JsonLimits& limits = {});
// Reads a config.json as Python writes it. Infinity and NaN, which JSON lacks, become strings, so
// that an error about such a number shows it.
Json ReadConfigJson(const std::string& path);

// Canonical form of the documents that we write: sorted keys, one space of indent, newline at the
// end. NaN and Inf fail an OSCAR_CHECK, because JSON cannot hold them.
std::string CanonicalJson(const Json& value);

// Typed access, with errors that name `what` and the key. The optional forms return `fallback` for
// a missing or null member. Integers must be written as integers (3.0 is refused) and fit the type.
const Json& JsonMember(const Json& object, const char* key, std::string_view what);
const Json& JsonArray(const Json& object, const char* key, std::string_view what);
int64_t JsonInt(const Json& object, const char* key, std::string_view what);
int64_t JsonInt(const Json& object, const char* key, int64_t fallback, std::string_view what);
int JsonInt32(const Json& object, const char* key, std::string_view what);  // for layer ids
double JsonDouble(const Json& object, const char* key, std::string_view what);
double JsonDouble(const Json& object, const char* key, double fallback, std::string_view what);
bool JsonBool(const Json& object, const char* key, bool fallback, std::string_view what);
std::string JsonString(const Json& object, const char* key, std::string_view what);
std::string JsonString(const Json& object, const char* key, std::string_view fallback,
                       std::string_view what);

}  // namespace oscar
