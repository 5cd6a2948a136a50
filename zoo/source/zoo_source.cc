// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "zoo/source/zoo_source.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "capture/files/posix_file.h"
#include "capture/files/quote.h"
#include "capture/files/removed_names.h"
#include "linalg/base/error.h"
#include "zoo/source/fetch.h"
#include "zoo/source/http_source.h"
#include "zoo/source/hub_source.h"
#include "zoo/source/model_repository.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr size_t kReadPiece = size_t{1} << 20;  // bytes

struct Scheme {
  std::string_view prefix;
  ZooSource (*open)(const std::string& rest, const TransferOptions& options);
};

ZooSource OpenHttps(const std::string& rest, const TransferOptions& options) {
  return HttpSource("https:" + rest, options);
}
ZooSource OpenHttp(const std::string& rest, const TransferOptions& options) {
  return HttpSource("http:" + rest, options);
}
ZooSource RefuseOci(const std::string& rest, const TransferOptions&) {
  throw UsageError(fmt::format("oci:{}: oci: {}", rest, RemovedHint("oci:")));
}
ZooSource OpenRepository(const std::string& rest, const TransferOptions& options) {
  const auto id = ParseHubId(rest);
  if (!id || id->repository.find('/') == std::string::npos || fs::is_directory(rest))
    return RepositorySource(rest);
  return HubSource(*id, options);
}

constexpr Scheme kSchemes[] = {
    {"https:", OpenHttps}, {"http:", OpenHttp}, {"oci:", RefuseOci}, {"hf:", OpenRepository}};

// Detects an address of another protocol, such as "ftp://host": a colon before any slash.
bool LooksLikeScheme(std::string_view address) {
  const size_t colon = address.find("://");
  return colon != address.npos && address.find('/') == colon + 1;
}

}  // namespace

bool IsRemoteAddress(std::string_view address) {
  return LooksLikeScheme(address) || std::ranges::any_of(kSchemes, [&](const Scheme& s) {
           return address.starts_with(s.prefix);
         });
}

ZooSource OpenSource(const std::string& address, const TransferOptions& options) {
  for (const Scheme& scheme : kSchemes) {
    if (address.starts_with(scheme.prefix))
      return scheme.open(address.substr(scheme.prefix.size()), options);
  }
  if (LooksLikeScheme(address)) {
    throw UsageError(fmt::format(
        "{}: expected a directory, https://host/zoo, hf:DIR or hf:ORG/NAME", Quoted(address)));
  }
  const Zoo zoo = Zoo::Open(address);
  return {address, zoo.path(),
          [path = zoo.path()](const ReadRequest& request, const ByteSink& sink) {
            return ReadDirectory(path, request, sink);
          },
          [zoo] { return CurrentIndex(zoo); }};
}

ReadEnd ReadDirectory(const fs::path& directory, const ReadRequest& request, const ByteSink& sink) {
  const fs::path file = directory / request.file;
  std::error_code error;
  const fs::path real = fs::canonical(file, error);
  if (error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory)
    return {.found = false};
  if (error) throw InputError(fmt::format("{}: {}", file.string(), error.message()));
  const fs::path root = fs::canonical(directory);
  if (std::mismatch(root.begin(), root.end(), real.begin(), real.end()).first != root.end())
    throw InputError(fmt::format("{}: is a link that points outside the zoo", file.string()));
  uint64_t size = 0;
  const int descriptor = OpenRegular(real, &size);
  try {
    if (request.size && size != *request.size) {
      throw InputError(
          fmt::format("{}: {} bytes, expected {}", file.string(), size, *request.size));
    }
    std::vector<std::byte> piece(std::min<uint64_t>(kReadPiece, size));
    for (uint64_t at = request.offset; at < size;) {
      const auto bytes = std::span(piece).first(std::min<uint64_t>(piece.size(), size - at));
      ReadFullyAt(descriptor, bytes, at, file);
      sink(bytes);
      at += bytes.size();
    }
  } catch (...) {
    close(descriptor);
    throw;
  }
  close(descriptor);
  return {};
}

}  // namespace oscar
