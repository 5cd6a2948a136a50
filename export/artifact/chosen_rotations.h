// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Converts an artifact's automatic choice into the form that runtimes' files hold. A choice with
// pair scales fits only the folded copy of the checkpoint; its means are means of that copy's
// post-rope keys.
#pragma once

#include "calib/consumers.h"
#include "export/artifact/artifact_reader.h"
#include "export/formats/mla_folder.h"
#include "export/formats/sglang_choice.h"

namespace oscar {

// Returns the choice for a runtime, for the original checkpoint or a folded copy. Throws InputError
// if the artifact has none.
SglangChoice ChosenForRuntime(const Artifact& artifact, Consumer consumer, bool folded);

// Returns OSCAR's own rotations in the same form, one per layer as OSCAR publishes them.
SglangChoice OwnRotations(const Artifact& artifact);

// Returns rotations of latent attention for the October tree of OSCAR's SGLang: the automatic
// choice if `chosen`, else OSCAR's own rotations. Throws InputError if the artifact has no such
// choice, or if the choice clips, which that tree does not support.
MlaFolder LatentsForSglang(const Artifact& artifact, bool chosen);

// Whether all layers have latent attention. Throws InputError if only some do: the two kinds of
// layers need different files, and no runtime loads both.
bool HoldsLatents(const Artifact& artifact);

}  // namespace oscar
