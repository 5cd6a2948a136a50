// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "zoo/signing/model_statement.h"

#include <fmt/format.h>

#include <algorithm>

#include "capture/files/digest.h"
#include "capture/files/quote.h"
#include "capture/files/strict_json.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"
#include "zoo/store/zoo_format.h"

namespace oscar {
namespace {

constexpr std::string_view kStatementType = "https://in-toto.io/Statement/v1";
constexpr std::string_view kPredicateType = "https://model_signing/signature/v1.0";
constexpr std::string_view kOldPredicateType = "https://model_signing/Digests/v0.1";
constexpr JsonLimits kStatementLimits{
    .max_depth = 32, .max_bytes = size_t{192} << 20, .max_values = 5'000'000};

std::string BytesOfHex(const std::string& sha256) {
  std::string bytes;
  for (size_t i = 0; i + 1 < sha256.size(); i += 2)
    bytes += static_cast<char>(std::stoi(sha256.substr(i, 2), nullptr, 16));
  return bytes;
}

// Removes empty and "." components, so that equal paths have equal text.
std::string CleanPath(const std::string& path, std::string_view what) {
  std::string clean;
  const bool absolute = path.starts_with('/');
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    const std::string part = path.substr(at, end - at);
    at = end + 1;
    if (absolute || part == ".." || part.find('\0') != part.npos) {
      throw InputError(fmt::format("{}: {} is not a path inside the model", what, Quoted(path)));
    }
    if (part.empty() || part == ".") continue;
    clean += (clean.empty() ? "" : "/") + part;
  }
  return clean.empty() ? "." : clean;
}

void Expect(const std::string& found, std::string_view expected, std::string_view key,
            std::string_view what) {
  if (found != expected) {
    throw InputError(
        fmt::format("{}: {} is {}, expected {}", what, key, Quoted(found), Quoted(expected)));
  }
}

void ReadSerialization(const Json& json, ModelStatement* statement, std::string_view what) {
  const std::string method = JsonString(json, "method", what);
  if (method == "shards") {
    throw InputError(fmt::format(
        "{}: signed in shards of files, which cannot be verified here; sign whole files", what));
  }
  Expect(method, "files", "the serialization method", what);
  const std::string hash = JsonString(json, "hash_type", what);
  if (hash == "blake2b" || hash == "blake3") {
    throw InputError(fmt::format(
        "{}: hashed with {}, which cannot be verified here; sign with sha256", what, hash));
  }
  Expect(hash, "sha256", "hash_type", what);
  if (!JsonMember(json, "allow_symlinks", what).is_boolean())
    throw InputError(fmt::format("{}: 'allow_symlinks' must be true or false", what));
  if (!json.contains("ignore_paths")) return;
  const Json& ignored = json.at("ignore_paths");
  if (!ignored.is_array())
    throw InputError(fmt::format("{}: 'ignore_paths' must be an array", what));
  for (const Json& path : ignored) {
    if (!path.is_string())
      throw InputError(fmt::format("{}: an ignored path is not a string", what));
    statement->ignored.push_back(path.get<std::string>());
  }
}

}  // namespace

const std::vector<std::string>& AlwaysIgnored() {
  static const std::vector<std::string> kPaths = {".git", ".gitattributes", ".github",
                                                  ".gitignore"};
  return kPaths;
}

std::string StatementText(const ModelStatement& statement) {
  Sha256 root;
  Json resources = Json::array();
  for (const auto& [name, sha256] : statement.files) {  // sorted by bytes and hence by code points
    OSCAR_CHECK(IsSha256Hex(sha256));
    root.Add(BytesOfHex(sha256));
    resources.push_back({{"name", name}, {"algorithm", "sha256"}, {"digest", sha256}});
  }
  return CanonicalJson({{"_type", kStatementType},
                        {"subject", Json::array({{{"name", statement.subject},
                                                  {"digest", {{"sha256", root.FinishHex()}}}}})},
                        {"predicateType", kPredicateType},
                        {"predicate",
                         {{"resources", resources},
                          {"serialization",
                           {{"method", "files"},
                            {"hash_type", "sha256"},
                            {"allow_symlinks", false},
                            {"ignore_paths", statement.ignored}}}}}});
}

ModelStatement ParseStatement(std::string_view payload, std::string_view what) {
  const Json json = ParseStrictJson(payload, what, kStatementLimits);
  if (!json.is_object()) throw InputError(fmt::format("{}: not an in-toto statement", what));
  Expect(JsonString(json, "_type", what), kStatementType, "the type of the statement", what);
  const std::string predicate_type = JsonString(json, "predicateType", what);
  if (predicate_type == kOldPredicateType) {
    throw InputError(
        fmt::format("{}: the signature's format is older than Model Signing v1.0 and cannot be "
                    "verified here; sign again",
                    what));
  }
  Expect(predicate_type, kPredicateType, "the predicate", what);
  const Json& subjects = JsonMember(json, "subject", what);
  if (!subjects.is_array() || subjects.size() != 1 || !subjects[0].is_object())
    throw InputError(fmt::format("{}: expected one subject", what));
  ModelStatement statement;
  statement.subject = JsonString(subjects[0], "name", what);
  const std::string expected_root =
      JsonString(JsonMember(subjects[0], "digest", what), "sha256", what);
  const Json& predicate = JsonMember(json, "predicate", what);
  ReadSerialization(JsonMember(predicate, "serialization", what), &statement, what);
  const Json& resources = JsonMember(predicate, "resources", what);
  if (!resources.is_array())
    throw InputError(fmt::format("{}: 'resources' must be an array", what));
  Sha256 root;
  for (const Json& resource : resources) {
    const std::string name = CleanPath(JsonString(resource, "name", what), what);
    std::string digest = JsonString(resource, "digest", what);
    std::ranges::transform(digest, digest.begin(), [](char c) {
      return c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    Expect(JsonString(resource, "algorithm", what), "sha256", Quoted(name) + ": the algorithm",
           what);
    if (!IsSha256Hex(digest)) {
      throw InputError(fmt::format("{}: {}: {} is not a SHA-256 of 64 hexadecimal digits", what,
                                   Quoted(name), Quoted(digest)));
    }
    root.Add(BytesOfHex(digest));
    if (statement.files.emplace(name, digest).first->second != digest)
      throw InputError(fmt::format("{}: {} is listed twice", what, Quoted(name)));
  }
  if (kComparesDigests) Expect(expected_root, root.FinishHex(), "the root digest", what);
  return statement;
}

}  // namespace oscar
