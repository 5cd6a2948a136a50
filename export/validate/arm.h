// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// An arm is one configuration of a comparison: a method and its modifiers, such as clipping and
// windows. Users and reports name it METHOD[+clip[=RATIO]][+windows][+bf16], for example
// "oscar_per_head+clip+windows".
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "export/simulate/cache_method.h"

namespace oscar {

struct Arm {
  std::string name;
  std::shared_ptr<const CacheMethod> method;  // owns a guest; entries of the table are static
  ArmOptions options;

  bool is_reference() const { return !method->quantizes && !method->null_control; }
};

inline constexpr std::string_view kReferenceArm = "bf16";

// Parses a name, whose modifiers may have any order; Arm::name has the usual order. Throws
// UsageError that explains the problem, for example a modifier that the method does not support.
Arm ParseArm(std::string_view name, const GuestMethods& guests = {});
bool IsArmList(std::string_view name);  // "quick", "default", "published" or "all"

// Returns a method with the modifiers that its authors use.
Arm PublishedArm(std::string_view method);

// Parses `names`, which are arms or lists of arms. No names mean "default". The reference comes
// first, and duplicates are dropped. The lists are:
//   "quick"      Hadamard, OSCAR as published and a random rotation
//   "default"    nine usual configurations and four null controls
//   "published"  every method except null controls, with the modifiers of its authors
//   "all"        every method plain, with windows, and with clipping and windows; for null controls
//                also with clipping alone
// "quick" and "default" also include the artifact's own choice. If it has choices for several bit
// budgets, they include all of these and the cache types of released runtimes. Lists skip methods
// that the artifact or model does not support, that cannot store a model's latents, or that need
// calibration text if there is none (`has_rows`).
//
// Throws UsageError for a named arm that cannot store latents or lacks calibration text, and if
// only the reference is left.
std::vector<Arm> ParseArms(const std::vector<std::string>& names, const MethodContext& context,
                           bool has_rows = true);
bool NeedsRows(const std::vector<Arm>& arms);

// Returns the arm that simulates the artifact's headline choice in the runtime for which it was
// made. If there is no such simulation, returns "auto" with its published modifiers. Returns "" if
// the artifact has no choices.
std::string ShippedArm(const MethodContext& context);

// Returns the arm that a verdict is about. If `asked` is given, it is that arm; throws UsageError
// if it is not among the arms. Otherwise it is the first of `own` (the artifact's choice; OwnArms)
// that is among the arms. Without any, it is OSCAR per head with the most modifiers, else OSCAR
// shared, else the last arm.
const Arm& HeadlineArm(const std::vector<Arm>& arms, const std::vector<std::string>& own,
                       std::string_view asked = {});

// Returns the indices of the arms that run the recall tasks, which take most of a validation's
// time. The reference and the headline always run them. If `asked` is not empty, so do the arms
// that it names ("all": every arm). Otherwise so do plain INT2, Hadamard with the most modifiers,
// and the arms in `named` (names for ParseArms; lists are ignored). Throws UsageError if an asked
// name is not among the arms.
std::vector<size_t> RecallArms(const std::vector<Arm>& arms, std::string_view headline,
                               const std::vector<std::string>& asked,
                               const std::vector<std::string>& named);

}  // namespace oscar
