// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A zoo on any static web server, through libcurl. Allows only https, and http on this machine.
// Certificates are checked, and nothing is decompressed. A redirect is followed a few times, but
// never to another scheme and never with credentials.
#pragma once

#include <string>

#include "zoo/source/zoo_source.h"

namespace oscar {

// Throws UsageError for an address that may not be contacted.
ZooSource HttpSource(const std::string& address, const TransferOptions& options);

}  // namespace oscar
