// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A validation compares every arm (a way to store the cache) with the unquantized model on held-out
// text, in one pass over the weights. On a dump it measures only local errors, without the model.
// It makes most of report.json's member "validation" (export/report/schema.md).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "calib/held_out.h"  // CountedQueries
#include "calib/job/job_directory.h"
#include "capture/model/run/attention_source.h"
#include "capture/model/run/layer_loop.h"
#include "export/artifact/artifact_reader.h"
#include "export/evaluate/needle.h"
#include "export/simulate/cache_method.h"
#include "export/validate/arm.h"
#include "export/validate/arm_share.h"

namespace oscar {

struct ValidationOptions {
  std::vector<std::string> arms;         // see ParseArms
  ArmsOfRank share;                      // the part of the arms that this rank runs
  std::string headline_arm;              // empty: the artifact's own; see HeadlineArm
  std::vector<std::string> needle_arms;  // see RecallArms
  MethodContext::Options methods;
  int64_t rows_per_sequence = 320;  // query rows where attention is compared; 0: all
  bool measure_in_float32 = false;  // instead of float64
  bool round_to_bf16 = true;        // rounds queries, keys and values, as a bf16 cache does
  bool local_only = false;          // each layer gets exact inputs: no perplexity, no needles
  int64_t score_from = -1;          // first scored token of each text, if its query sees a
                                    // quantized key; -1: after a quarter
  int64_t resamples = 1000;         // for bootstrap intervals
  uint64_t seed = 0;
};

struct ValidationHooks {
  std::function<void(size_t layers_done, size_t num_layers, double seconds)> on_layer;
  // Called often with the finished share of the current layer, in [0, 1], and the current work.
  std::function<void(double part, const std::string& doing)> on_part = {};
  // Called after the last layer with the scored share of the next tokens.
  std::function<void(double part, const std::string& what)> on_scored = {};
  std::function<bool()> stop_requested;                                // called after each layer
  std::function<void(const std::string& arm, double seconds)> on_arm;  // at the end: time of caches
  LayerObserver* beside = nullptr;  // called after the validation's observer, with the same data
  // For a model: the directory from which a stopped run resumes; null: the run cannot resume. A
  // killed run loses the layers since the last write: about 10 s of work, or 20 times the duration
  // of a write if that is longer.
  JobDirectory* job = nullptr;
};

// The data of a validation. Texts are scored, and attention is compared on them. Own words are only
// scored. In both, only tokens whose query sees a quantized key count. Needles, tool calls and
// continuations are scored with some of the arms. Calibration text runs through the exact model,
// for methods that are fitted to rows.
struct ValidationData {
  std::vector<std::vector<int32_t>> texts;
  std::vector<std::vector<int32_t>> own_words = {};  // sampled from the model at temperature 1
  CountedQueries counted = {};            // in `texts`; other rows and next tokens are not measured
  std::vector<std::string> domains = {};  // domain of each text; empty: all are of one domain
  bool builtin = true;                    // whether `texts` are built in, not chosen by the user
  std::vector<NeedleSample> needles = {};
  std::vector<NeedleSample> tool_calls = {};
  // Texts that the exact model continued with its most likely tokens, after a prefix of
  // `prefix_tokens` tokens.
  std::vector<std::vector<int32_t>> continuations = {};
  int64_t prefix_tokens = 0;
  std::vector<std::vector<int32_t>> calibration = {};
};

// Returns `options.methods`, extended by the model's weights, which are read on demand.
MethodContext::Options MethodOptions(const ValidationOptions& options, const Checkpoint& checkpoint,
                                     const ModelSpec& spec);

// Returns {"source", "settings", "headline_arm", "arms"}, and if they apply "by_distance",
// "verdict_text", "recall", "tool_call" and "capacity".
//
// Throws UsageError for unknown arms, ResourceError if the arms' hidden states do not fit into
// memory, and Interrupted if a stop was requested. Errors of reading the artifact and the model are
// passed on.
Json ValidateModel(const Checkpoint& checkpoint, const ModelSpec& spec, at::Device device,
                   at::ScalarType dtype, const ValidationData& data, const Artifact& artifact,
                   const ValidationOptions& options, const ValidationHooks& hooks);

// Measures local errors on all sequences of a dump. A dump has no calibration text, so lists of
// arms leave out methods that need it. `domains` has one name per sequence; if it is empty, all
// sequences are of one domain.
Json ValidateDump(AttentionSource& source, const CountedQueries& counted, const Artifact& artifact,
                  const ValidationOptions& options, const ValidationHooks& hooks,
                  const std::vector<std::string>& domains = {});

}  // namespace oscar
