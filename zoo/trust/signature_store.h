// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Signatures of a zoo's versions: beside the entries, which they never change, added at any time
// and by several. Trap: a signature that lies here is anybody's until Judge() says whose.
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

// Signs what the entry names, as a bundle of the artifact's directory whose subject is
// NAME@X.Y.Z, and lists it in the index; returns its SHA-256. Every step is durable before the
// next; a signature whose index was cut off is listed by the next one. Waits like Publisher.
// Throws InputError, ResourceError.
std::string AddSignature(const Zoo& zoo, const ZooEntry& entry, const Signer& signer,
                         const std::function<void()>& waiting);

// Texts of the signatures that the index lists; none without an index. Throws InputError for an
// index or a signature that is not what its name says.
std::vector<std::string> ReadSignatures(const Zoo& zoo, const ZooName& name,
                                        const ZooVersion& version);

// Whom each signature names, which nobody has checked: "key 0123456789abcdef" or a certificate's
// name. Throws InputError naming `what` for a text that is no signature.
std::vector<std::string> ClaimedSigners(std::span<const std::string> bundles,
                                        std::string_view what);

// The text of the snapshot, or nothing if there is none. Throws InputError.
std::optional<std::string> ReadSnapshotFile(const Zoo& zoo);

}  // namespace oscar
