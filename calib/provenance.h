// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Where a calibration comes from, as JSON: members of the manifest, and the fingerprint that a
// resumed run must match. Trap: only facts that equal runs share; dates, host names and paths never
// enter.
#pragma once

#include <string>
#include <vector>

#include "calib/calibrate.h"
#include "capture/checkpoint/model_location.h"
#include "capture/files/strict_json.h"
#include "capture/text/data_source.h"

namespace oscar {

// Id, revision, type, rope really applied, digests of config.json, tokenizer files and every weight
// file. Reads every weight file once; meant to run beside the calibration.
Json DescribeModel(const ModelLocation& location, const ModelSpec& spec,
                   const Checkpoint& checkpoint);

// Cheap identity of the weights for the fingerprint: header and 256 pages spread over each file.
// Sees an edit of any tensor that touches one of them, and any fine-tune; the full digests stand in
// the manifest.
Json SampleWeights(const Checkpoint& checkpoint);

Json DescribeData(const DataSet& data);
Json DescribeOptions(const CalibrationOptions& options, const HeldOutSplit& split,
                     const ModelSpec& spec);
// LibTorch, device and threads: what the last bits of a result depend on.
Json DescribeMachine(at::Device device, at::ScalarType dtype);

// What a run is, for JobDirectory.
Json Fingerprint(const ModelLocation& location, const CalibrationInput& input,
                 const HeldOutSplit& split, const DataSet& data,
                 const std::string& program_version);

}  // namespace oscar
