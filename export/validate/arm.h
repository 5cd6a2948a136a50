// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// An arm of a comparison: a method and its modifiers, clipping and windows.
// Users and reports name it METHOD[+clip[=RATIO]][+windows][+bf16], for
// example "oscar_per_head+clip+windows".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "export/simulate/cache_method.h"

namespace oscar {

struct Arm {
  std::string name;
  const CacheMethod* method = nullptr;
  ArmOptions options;

  bool is_reference() const { return !method->quantizes && !method->null_control; }
};

inline constexpr std::string_view kReferenceArm = "bf16";

// Parses a name. Throws UsageError that explains the error, also for a modifier that the method
// does not take. Modifiers may come in any order; the arm's name has the usual order.
Arm ParseArm(std::string_view name, const GuestMethods& guests = {});
bool IsArmList(std::string_view name);  // "quick", "default", "published" or "all"

// Returns a method with the modifiers that its authors use.
Arm PublishedArm(std::string_view method);

// Parses names of arms and lists; none: "default". "quick": the reference, the artifact's own
// choice, Hadamard, OSCAR as published and a random rotation. "published": every method except null
// controls as its authors use it. "all": every method plain, with windows, and with clipping and
// windows; null controls also with clipping alone. The reference comes first, and duplicates are
// dropped. Lists leave out what artifact and model do not support, methods that need calibration
// text if there is none (`has_rows`), and methods that cannot store a model's latents. Naming such
// a method throws UsageError.
std::vector<Arm> ParseArms(const std::vector<std::string>& names, const MethodContext& context,
                           bool has_rows = true);
bool NeedsRows(const std::vector<Arm>& arms);

// Returns the arm that the artifact ships for its consumer, as that runtime computes it. Empty if
// the artifact has no choices.
std::string ShippedArm(const MethodContext& context);

// Returns the arm that a verdict is about: `asked` if given (UsageError if it is not among the
// arms), else the first of `own` (the artifact's choice; OwnArms) that is among them. Otherwise
// OSCAR per head with all modifiers, or the arm closest to it, or the last arm.
const Arm& HeadlineArm(const std::vector<Arm>& arms, const std::vector<std::string>& own,
                       std::string_view asked = {});

// Returns the indices of the arms that run the recall tasks, which cost most of a validation.
// `asked` may name arms (or "all"). Otherwise these are the reference, the headline, plain INT2,
// Hadamard with most modifiers, and arms in `named` (names for ParseArms, without lists).
// UsageError for a name that is not among the arms.
std::vector<size_t> RecallArms(const std::vector<Arm>& arms, std::string_view headline,
                               const std::vector<std::string>& asked,
                               const std::vector<std::string>& named);

}  // namespace oscar
