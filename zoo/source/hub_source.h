// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads a model repository (model_repository.h) directly from the Hugging Face Hub, at the URLs
// that the Hub's own client uses.
//
//     ENDPOINT/api/models/ORG/NAME/revision/REVISION   {"sha": commit, "siblings": [{"rfilename"}]}
//     ENDPOINT/ORG/NAME/resolve/COMMIT/FILE            the file, or a redirect to it
//
// HF_ENDPOINT, HF_TOKEN, HF_TOKEN_PATH, HF_HOME and XDG_CACHE_HOME work as in huggingface_hub.
// Trap: a revision may move to another commit. So its commit is looked up once, and all files come
// from it.
#pragma once

#include <optional>

#include "capture/checkpoint/hub_cache.h"
#include "zoo/source/zoo_source.h"
#include "zoo/store/zoo_format.h"

namespace oscar {

// Opens a repository as a zoo with one version. Ignores the token in `options`, because the Hub's
// token comes from the environment. Throws UsageError for an endpoint that may not be contacted.
ZooSource HubSource(const HubId& id, const TransferOptions& options,
                    const Environment& environment = ProcessEnvironment());

// Reads the entry of a repository; nothing if it does not exist or has no version. Throws
// InputError, ResourceError.
std::optional<ZooEntry> ReadHubEntry(const HubId& id, const TransferOptions& options,
                                     const Environment& environment = ProcessEnvironment());

}  // namespace oscar
