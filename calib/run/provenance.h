// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Describes the origin of a calibration or dump, as JSON: members of the manifest, and the
// fingerprint that a resumed run must match. Trap: include only facts that equal runs share; never
// dates, host names or paths.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "calib/run/calibrate.h"
#include "capture/checkpoint/model_location.h"
#include "capture/checkpoint/weights_sample.h"
#include "capture/dump/attention_dump.h"
#include "capture/files/strict_json.h"
#include "capture/text/data/data_source.h"

namespace oscar {

// Describes a model: id, revision, type, the rope that is applied, unknown fields of config.json,
// layers that read another layer's cache, and digests of config.json, tokenizer files and weight
// files. Reads every weight file once.
// This is meant to run alongside the calibration, whose reads go first (Checkpoint::turns). Throws
// Interrupted if the turns are closed meanwhile. Trap: if the page cache cannot hold the files, it
// reads no further than the calibration has loaded. So before waiting for the result, a caller must
// say that nothing more will be loaded (ReadTurns::Reach(1)).
Json DescribeModel(const ModelLocation& location, const ModelSpec& spec,
                   const Checkpoint& checkpoint);

// Returns the model_digest of a dump: SHA-256 over the digests of config.json and of every weight
// file in DescribeModel's JSON. Files with equal content have equal digests, wherever they are.
std::string ModelDigest(const Json& model);

// Throws InputError naming the first file whose digest in `own` differs from the one in `read`,
// which `who` has reported; both are "weights" from DescribeModel. For the message, `than` is "
// than" followed by the reader of `own`, or "".
void CheckSameWeights(std::string_view who, const Json& read, std::string_view than,
                      const Json& own);

// Describes a dump: the members of DescribeModel that the dump has, and "dump", with its format,
// digest, size and what it says about the model, tokenizer and data. Reads every file of the dump
// once.
Json DescribeDump(const std::filesystem::path& path, const AttentionDump& dump);
// Returns a dump's token ids as documents, which have no ids if the format does not store them.
DataSet DumpData(const AttentionDump& dump);
Json DescribeDumpData(const AttentionDump& dump);

Json SampleWeights(const Checkpoint& checkpoint);  // SampleWeightFiles for all files

Json DescribeData(const DataSet& data);
Json DescribeOptions(const CalibrationOptions& options, const HeldOutSplit& split,
                     const std::vector<LayerSpec>& layers);
int CpuThreads();  // set by operators; results do not depend on it
// Describes LibTorch and the device, on which the last bits of a result depend.
Json DescribeMachine(at::Device device, at::ScalarType dtype);
// Adds how many tokens and queries the model processed at a time, which may depend on memory.
Json DescribeMachine(const CalibrationInput& input);

// Returns a run's identity for JobDirectory. `origin` comes from FingerprintModel or
// FingerprintDump, `data` from DescribeData or DescribeDumpData.
Json Fingerprint(const Json& origin, const Json& data, const CalibrationInput& input,
                 const HeldOutSplit& split, const std::string& program_version);
Json FingerprintModel(const ModelLocation& location, const Checkpoint& checkpoint);
// Returns the FileIdentities (capture/checkpoint/weights_sample.h) of a dump, for a local job.
Json DumpIdentities(const std::filesystem::path& path);
Json FingerprintDump(const std::filesystem::path& path, const AttentionDump& dump);

}  // namespace oscar
