// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A zoo on any static web server, through libcurl. Only https, and http on this machine;
// certificates are checked; nothing is decompressed; a redirect is followed a few times, never to
// another scheme, and never with credentials.
#pragma once

#include <string>

#include "zoo/source/zoo_source.h"

namespace oscar {

// Throws UsageError for an address that may not be contacted.
ZooSource HttpSource(const std::string& address, const TransferOptions& options);

}  // namespace oscar
