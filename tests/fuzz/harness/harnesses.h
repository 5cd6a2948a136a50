// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Declares all harnesses. A new one needs a row here and in AllHarnesses().
#pragma once

#include "tests/fuzz/fuzz.h"

namespace oscar::fuzz {

// checkpoints.cc: files of a model directory
extern const Harness kSafetensors, kWeightIndex, kConfig, kQuantization;
std::vector<std::string> QuantizationSeeds();  // a config.json for each way to quantize weights
// gguf_models.cc: models in GGUF
extern const Harness kGgufModel;
// texts.cc: tokenizer, data, settings
extern const Harness kTokenizer, kRows, kYaml;
// templates.cc
extern const Harness kJinja;
// rotation_files.cc: files of matrices that other programs write
extern const Harness kPickle, kPt, kGguf, kNpy;
// artifacts.cc: files of artifacts and shards, and entries of a zoo
extern const Harness kReport, kArtifact, kMoments, kZooEntry, kShard;
// zoo_files.cc: other files of a zoo, and signatures
extern const Harness kBundle, kZooJson;
// stored_values.cc: packed weights; dumps of attention
extern const Harness kWeights, kDump;

}  // namespace oscar::fuzz
