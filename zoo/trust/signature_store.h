// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The signatures of a zoo's versions. They are stored beside the entries and do not change them,
// and several signers may add signatures at any time. Trap: anyone may have made a stored
// signature; only Judge() checks its signer.
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

// Signs the files of an entry, adds the bundle to the index, and returns the bundle's SHA-256. The
// bundle is like one of the artifact's directory, with the subject NAME@X.Y.Z. Each step is flushed
// to disk before the next. A signature that an interrupted call left out of the index is added by
// the next call. Waits like Publisher. Throws InputError, ResourceError.
std::string AddSignature(const Zoo& zoo, const ZooEntry& entry, const Signer& signer,
                         const std::function<void()>& waiting);

// Returns the texts of the signatures that the index lists; none if there is no index. Throws
// InputError if the index is invalid or a signature does not match its digest.
std::vector<std::string> ReadSignatures(const Zoo& zoo, const ZooName& name,
                                        const ZooVersion& version);

// Returns the signer that each signature claims, which is not verified: "key 0123456789abcdef" or a
// certificate's name. Throws InputError naming `what` for a text that is not a signature.
std::vector<std::string> ClaimedSigners(std::span<const std::string> bundles,
                                        std::string_view what);

// Returns the text of the snapshot, or nothing if there is none. Throws InputError.
std::optional<std::string> ReadSnapshotFile(const Zoo& zoo);

}  // namespace oscar
