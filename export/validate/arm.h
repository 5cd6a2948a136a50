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

// Throws UsageError that names the error, also for a modifier that the method does not take.
// Modifiers may come in any order; the arm's name has the usual one.
Arm ParseArm(std::string_view name, const GuestMethods& guests = {});
bool IsArmList(std::string_view name);  // "quick", "default", "published" or "all"

// A method as its authors use it.
Arm PublishedArm(std::string_view method);

// Names of arms and of lists; none: the list "default". "quick" is the reference, the artifact's
// own choice, Hadamard, OSCAR as published and a random rotation; "published" is every method but
// the null controls as its authors use it; "all" every method plain, with windows, and with
// clipping and windows, of null controls with clipping alone too. The reference comes first in any
// case, duplicates once. Lists leave out what artifact and model cannot provide, methods that need
// calibration text where there is none (`has_rows`), and those without a form for latent attention
// where the model has it; UsageError for such a method by name.
std::vector<Arm> ParseArms(const std::vector<std::string>& names, const MethodContext& context,
                           bool has_rows = true);
bool NeedsRows(const std::vector<Arm>& arms);

// The arm that the artifact ships for its consumer, as that runtime computes; empty if the artifact
// has no choices.
std::string ShippedArm(const MethodContext& context);

// The arm that a verdict is about: `asked` if the user names one
// (UsageError if it is not among the arms), else the first of `own` (the
// artifact's choice; OwnArms) that is among them. Without those: OSCAR per
// head with all modifiers, or the arm closest to it; at last the last arm.
const Arm& HeadlineArm(const std::vector<Arm>& arms, const std::vector<std::string>& own,
                       std::string_view asked = {});

// The indices of the arms on which the recall tasks run. They cost most of a validation. So unless
// `asked` names arms (or "all"), they run on the reference, the headline, plain INT2, Hadamard with
// most modifiers, and those of `named` (ParseArms' names) that are arms, not lists. UsageError for
// a name that is not among the arms.
std::vector<size_t> RecallArms(const std::vector<Arm>& arms, std::string_view headline,
                               const std::vector<std::string>& asked,
                               const std::vector<std::string>& named);

}  // namespace oscar
