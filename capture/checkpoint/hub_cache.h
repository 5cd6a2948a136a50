// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The Hugging Face cache on disk, read only:
//
//     <root>/models--ORG--NAME/refs/<revision>      text: a commit, or another name of a snapshot
//     <root>/models--ORG--NAME/snapshots/<commit>/  files, mostly links to ../../blobs/<etag>
//
// An id without an organisation has the directory models--NAME. The environment variables and their
// order are those of huggingface_hub. A revision without a ref file is cached only if a snapshot
// has its name. No other snapshot is ever chosen, even if it is the only one.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "capture/checkpoint/model_location.h"

namespace oscar {

// A model id and the requested revision: "Qwen/Qwen3-8B@refs/pr/1", optionally after "hf://".
struct HubId {
  std::string repository;  // "Qwen/Qwen3-8B"
  std::string revision;    // branch, tag, refs/pr/N or commit; "main" if none was given
  bool revision_given = false;
};

// Returns nothing if `text` cannot be a Hugging Face id (it is then a path that does not exist).
std::optional<HubId> ParseHubId(std::string_view text);

// Returns a command such as "hf download Qwen/Qwen3-8B --revision R".
std::string DownloadCommand(const HubId& id);

// Returns the first of these that is set: HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, HF_HOME/hub,
// XDG_CACHE_HOME/huggingface/hub, ~/.cache/huggingface/hub. ~ and $VARIABLES are expanded; an empty
// variable counts as unset. Throws InputError if none can be determined.
std::filesystem::path HubCacheRoot(const Environment& environment);

// Returns the file where the Hub's own client keeps its token: HF_TOKEN_PATH, HF_HOME/token,
// XDG_CACHE_HOME/huggingface/token, ~/.cache/huggingface/token; "" if none can be determined.
std::filesystem::path HubTokenFile(const Environment& environment);

// Returns the snapshot directory of `id`, whose last component is the commit. Throws InputError if
// it is not cached.
std::filesystem::path FindSnapshot(const std::filesystem::path& root, const HubId& id);

// Returns the id and commit of a snapshot directory inside a cache
// ("models--A--B/snapshots/<commit>"), or nothing.
std::optional<std::pair<std::string, std::string>> SnapshotIdentity(
    const std::filesystem::path& directory);

}  // namespace oscar
