// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The automatic choice of an artifact on its way to a runtime's files. A choice with pair
// scales fits the folded copy of the checkpoint alone, whose post-rope keys the means are of.
#pragma once

#include "calib/consumers.h"
#include "export/artifact/artifact_reader.h"
#include "export/formats/mla_folder.h"
#include "export/formats/sglang_choice.h"

namespace oscar {

// What was chosen for a runtime, for the checkpoint as it is or for a folded copy. Throws
// InputError where the artifact has none.
SglangChoice ChosenForRuntime(const Artifact& artifact, Consumer consumer, bool folded);

// OSCAR's own in that form: what it publishes, one rotation for a layer.
SglangChoice OwnRotations(const Artifact& artifact);

// Layers of latent attention, for the October tree: the automatic choice, or OSCAR's own rotations
// (`chosen` false). Throws InputError as above, and where the choice clips, which that tree cannot.
MlaFolder LatentsForSglang(const Artifact& artifact, bool chosen);

// Whether all of its layers have latent attention. InputError where only some do: their files are
// of two kinds, and no runtime loads both.
bool HoldsLatents(const Artifact& artifact);

}  // namespace oscar
