// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Python's two ways to format: "%s: %d" % (a, b), and "{}: {x:>5}".format(a, x=b). Trap: a format
// that is Markup escapes what goes into it.
#pragma once

#include <string>
#include <string_view>

#include "capture/text/template/session.h"

namespace oscar::jinja {

// `arguments`: a tuple, a dict for %(name)s, or one value.
Value PercentFormat(Session& session, const Value& format, const Value& arguments);
Value BraceFormat(Session& session, const Value& format, const Arguments& arguments);

}  // namespace oscar::jinja
