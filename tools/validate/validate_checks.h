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

// Throws UsageError or InputError for errors that do not depend on the artifact and the model.
void CheckArguments(const ValidateOptions& options);
// Throws UsageError for an unknown arm. `artifact` is null before it is opened; arms of a bit
// budget are then not checked.
void CheckArms(const ValidationOptions& validation, const Artifact* artifact);
// Called for --replace. Throws UsageError if this validation would be a comparison, which must not
// replace the validation of record.
void CheckReplace(const ValidateOptions& options, const Artifact& artifact,
                  const ValidationInput& input);
// Throws UsageError if the recall task over the model's own words was requested but no own words
// were generated.
void CheckPassages(const ValidateOptions& options, const OwnWords& own_words);

}  // namespace oscar
