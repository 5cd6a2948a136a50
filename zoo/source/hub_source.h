// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A model repository of the Hugging Face Hub, read where it lies: the files of model_repository.h
// at the addresses that the Hub's own client asks.
//
//     ENDPOINT/api/models/ORG/NAME/revision/REVISION   {"sha": commit, "siblings": [{"rfilename"}]}
//     ENDPOINT/ORG/NAME/resolve/COMMIT/FILE            the file, or a redirect to where it is
//     stored
//
// HF_ENDPOINT, HF_TOKEN, HF_TOKEN_PATH, HF_HOME and XDG_CACHE_HOME mean what they mean to
// huggingface_hub. Trap: a revision moves, so its commit is asked for once and all files are of it.
#pragma once

#include <optional>

#include "capture/checkpoint/hub_cache.h"
#include "zoo/source/zoo_source.h"
#include "zoo/store/zoo_format.h"

namespace oscar {

// The one version of a repository as a zoo. The token of `options` stays behind, the Hub has its
// own. Throws UsageError for an endpoint that is not to be asked.
ZooSource HubSource(const HubId& id, const TransferOptions& options,
                    const Environment& environment = ProcessEnvironment());

// What the repository holds; nothing where it is not there or has no version. Throws InputError,
// ResourceError.
std::optional<ZooEntry> ReadHubEntry(const HubId& id, const TransferOptions& options,
                                     const Environment& environment = ProcessEnvironment());

}  // namespace oscar
