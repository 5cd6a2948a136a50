// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Yanks (withdraws) a version. It is not deleted, because versions never change and users may have
// pinned it, but users get it only by its number. The pointer `latest` moves to the highest version
// that is not yanked. Search omits a yanked version, and pulling it reports the reason.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "zoo/store/zoo.h"

namespace oscar {

inline constexpr size_t kMaxYankReason = 1000;  // bytes

// Yanks a version. Throws InputError if there is no such version or it is already yanked;
// UsageError for a reason that is empty or too long. `waiting`: see Publisher.
void Yank(const Zoo& zoo, const ZooName& name, const ZooVersion& version, const std::string& reason,
          const std::function<void()>& waiting);

Json YankToJson(const ZooName& name, const ZooVersion& version, const std::string& reason);
// Returns the reason. Throws InputError naming `what`.
std::string ParseYank(std::string_view text, const ZooName& name, const ZooVersion& version,
                      std::string_view what);

// Returns the reason for yanking a version; "" if it is not yanked.
std::string YankReason(const Zoo& zoo, const ZooName& name, const ZooVersion& version);
// Returns all reasons by NAME@VERSION. A file that cannot be read still counts as a yank.
std::map<std::string, std::string> YankReasons(const Zoo& zoo);

}  // namespace oscar
