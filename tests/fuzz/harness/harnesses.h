// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Every harness by name: one row here and in AllHarnesses() for a new one.
#pragma once

#include "tests/fuzz/fuzz.h"

namespace oscar::fuzz {

// checkpoints.cc: what a model directory holds
extern const Harness kSafetensors, kWeightIndex, kConfig, kQuantization;
// texts.cc: tokenizer, templates, data, settings
extern const Harness kTokenizer, kJinja, kRows, kYaml;
// rotation_files.cc: other people's files of matrices
extern const Harness kPickle, kPt, kGguf, kNpy;
// artifacts.cc: what a zoo holds
extern const Harness kReport, kArtifact, kMoments, kZooEntry;

}  // namespace oscar::fuzz
