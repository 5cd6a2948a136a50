// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks that oscar-validate makes before it measures.
#pragma once

#include "export/artifact/artifact_reader.h"
#include "export/report/of_record.h"
#include "tools/input/own_words.h"
#include "tools/validate/validate_input.h"
#include "tools/validate/validate_options.h"

namespace oscar {

// Throws UsageError or InputError for errors that can be found without artifact and model.
void CheckArguments(const ValidateOptions& options);
// Throws UsageError for an unknown arm. `artifact` is null before its choices and budgets are
// known.
void CheckArms(const ValidationOptions& validation, const Artifact* artifact);
// Checks only --replace: throws UsageError if a comparison would replace the validation of
// record.
void CheckReplace(const ValidateOptions& options, const Artifact& artifact,
                  const ValidationInput& input);
// Throws UsageError if needles are to be hidden in own words but no own words were drawn.
void CheckPassages(const ValidateOptions& options, const OwnWords& own_words);

}  // namespace oscar
