// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What oscar-validate refuses before it measures.
#pragma once

#include "export/artifact/artifact_reader.h"
#include "export/report/of_record.h"
#include "tools/input/own_words.h"
#include "tools/validate/validate_input.h"
#include "tools/validate/validate_options.h"

namespace oscar {

// Throws UsageError or InputError for what is wrong without a look at artifact and model.
void CheckArguments(const ValidateOptions& options);
// Throws UsageError for an arm that nobody knows. `artifact`: null where it is not known yet what
// it has at which budget.
void CheckArms(const ValidationOptions& validation, const Artifact* artifact);
// For --replace alone: throws UsageError if a comparison would take the place of the validation of
// record.
void CheckReplace(const ValidateOptions& options, const Artifact& artifact,
                  const ValidationInput& input);
// Throws UsageError where needles hide in own words and none were drawn.
void CheckPassages(const ValidateOptions& options, const OwnWords& own_words);

}  // namespace oscar
