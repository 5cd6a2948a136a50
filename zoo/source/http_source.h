// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads a zoo on any static web server, through libcurl. Only https is allowed, except that this
// machine may be contacted through http. Certificates are checked, and nothing is decompressed. At
// most max_redirects redirects are followed, never to another scheme and never with credentials.
#pragma once

#include <string>

#include "zoo/source/zoo_source.h"

namespace oscar {

// Throws UsageError for an address that may not be contacted.
ZooSource HttpSource(const std::string& address, const TransferOptions& options);

}  // namespace oscar
