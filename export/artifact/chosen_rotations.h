// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Converts the automatic choice of an artifact for a runtime's files. A choice with pair scales
// fits only the folded copy of the checkpoint; its means are of that copy's post-rope keys.
#pragma once

#include "calib/consumers.h"
#include "export/artifact/artifact_reader.h"
#include "export/formats/mla_folder.h"
#include "export/formats/sglang_choice.h"

namespace oscar {

// Returns the choice for a runtime, for the original checkpoint or a folded copy. Throws InputError
// if the artifact has none.
SglangChoice ChosenForRuntime(const Artifact& artifact, Consumer consumer, bool folded);

// Returns OSCAR's own rotations in the same form: one rotation per layer, as OSCAR publishes them.
SglangChoice OwnRotations(const Artifact& artifact);

// Returns layers of latent attention for SGLang's October tree: the automatic choice, or OSCAR's
// own rotations (`chosen` false). Throws InputError as above, and if the choice clips, which that
// tree does not support.
MlaFolder LatentsForSglang(const Artifact& artifact, bool chosen);

// Whether all layers have latent attention. Throws InputError if only some do, because the two
// kinds need different files, and no runtime loads both.
bool HoldsLatents(const Artifact& artifact);

}  // namespace oscar
