// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Signatures of a zoo's versions. They are stored beside the entries, which they never change, and
// several signers may add them at any time. Trap: a stored signature may be anyone's until Judge()
// says whose it is.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "zoo/signing/bundle.h"
#include "zoo/store/zoo.h"

namespace oscar {

// Signs the files that the entry names, as a bundle of the artifact's directory whose subject is
// NAME@X.Y.Z. Adds the bundle to the index and returns its SHA-256. Every step is durable before
// the next. If an interrupted call left a signature out of the index, the next call adds it. Waits
// like Publisher. Throws InputError, ResourceError.
std::string AddSignature(const Zoo& zoo, const ZooEntry& entry, const Signer& signer,
                         const std::function<void()>& waiting);

// Returns the texts of the signatures that the index lists; none without an index. Throws
// InputError if the index is invalid or a signature does not match its name.
std::vector<std::string> ReadSignatures(const Zoo& zoo, const ZooName& name,
                                        const ZooVersion& version);

// Returns the signer that each signature claims, unchecked: "key 0123456789abcdef" or a
// certificate's name. Throws InputError naming `what` for a text that is not a signature.
std::vector<std::string> ClaimedSigners(std::span<const std::string> bundles,
                                        std::string_view what);

// Returns the text of the snapshot, or nothing if there is none. Throws InputError.
std::optional<std::string> ReadSnapshotFile(const Zoo& zoo);

}  // namespace oscar
