// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Makes web pages of a zoo. The files need no special server and can be opened from disk. Pages
// load nothing from elsewhere and are readable without scripts.
//
//     index.html                        every model; scripts can sort and filter them
//     models/<ORG>/<MODEL>/index.html   its versions, the pull command and the report
//     models/<ORG>/<MODEL>/badge.svg    for other people's pages
//     feed.xml                          recent publications and yanks (Atom, RFC 4287)
//     pages.json                        the cache key of each model's page; rewriting a site keeps
//                                       pages whose key has not changed
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "zoo/store/zoo_index.h"

namespace oscar {

struct SiteOptions {
  std::string url;  // the zoo's public address, for pull commands: https://zoo.example.org
  std::string title = "oscar zoo";
  std::string made_by = {};  // the program; pages made by another program are not reused
  // Returns the signer of a version as text; "" if it is not signed. Without this function, pages
  // show the signers that the signatures claim, unverified.
  std::function<std::string(const IndexRow&)> signed_by = {};
};

struct Site {
  size_t models = 0, versions = 0;
  size_t kept = 0;                    // number of model pages reused from the previous site
  std::vector<std::string> problems;  // models whose report cannot be shown, and why
};

// Writes the directory `output`, which must be a new path or an earlier site, and puts it in place
// with a single rename. Does not flush it to disk, because it can be made again. Throws InputError,
// ResourceError.
Site WriteSite(const Zoo& zoo, const std::filesystem::path& output, const SiteOptions& options);

// Parts of a site, exposed for tests. `rows`: the versions of one name, ascending.
std::string BadgeSvg(const IndexRow& row);
std::string AtomFeed(const ZooIndex& index, const SiteOptions& options);
std::string IndexPage(const ZooIndex& index, const SiteOptions& options);

}  // namespace oscar
