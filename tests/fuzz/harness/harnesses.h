// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Every harness by name: one row here and in AllHarnesses() for a new one.
#pragma once

#include "tests/fuzz/fuzz.h"

namespace oscar::fuzz {

// checkpoints.cc: what a model directory holds
extern const Harness kSafetensors, kWeightIndex, kConfig, kQuantization;
std::vector<std::string> QuantizationSeeds();  // a config.json for each way to quantize weights
// gguf_models.cc: models in GGUF
extern const Harness kGgufModel;
// texts.cc: tokenizer, data, settings
extern const Harness kTokenizer, kRows, kYaml;
// templates.cc
extern const Harness kJinja;
// rotation_files.cc: other people's files of matrices
extern const Harness kPickle, kPt, kGguf, kNpy;
// artifacts.cc: what a zoo holds, and what a shard says of itself
extern const Harness kReport, kArtifact, kMoments, kZooEntry, kShard;
// zoo_files.cc: its other files, and signatures
extern const Harness kBundle, kZooJson;
// stored_values.cc: packed weights; dumps of attention
extern const Harness kWeights, kDump;

}  // namespace oscar::fuzz
