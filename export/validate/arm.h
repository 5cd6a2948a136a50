// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// An arm of a comparison: a method, with or without clipping and windows. Its name is how it is
// asked for and stored: METHOD[+clip][+windows], "oscar_per_head+clip+windows".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "export/simulate/cache_method.h"
#include "linalg/attention_kl.h"  // CacheWindows

namespace oscar {

struct Arm {
  std::string name;
  const CacheMethod* method = nullptr;
  bool clip = false;
  bool windows = false;  // the first and the most recent tokens stay exact

  bool is_reference() const { return method->payload_bits == 16 && !method->null_control; }
};

inline constexpr std::string_view kReferenceArm = "bf16";

// UsageError naming what is wrong. Modifiers in either order; the name comes out in the usual one.
Arm ParseArm(std::string_view name);

// "default", "all" (every method with and without clipping and windows), or names; the reference
// comes first in any case, duplicates once. "default" and "all" leave out what artifact and
// model cannot provide.
std::vector<Arm> ParseArms(const std::vector<std::string>& names, const MethodContext& context);

// The arm that a verdict is about, unless the user names one: OSCAR per head with everything, or
// what comes closest to it; the last arm if there is no OSCAR among them.
const Arm& HeadlineArm(const std::vector<Arm>& arms);

}  // namespace oscar
