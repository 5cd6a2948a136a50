// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A validation compares every arm with the unquantized model on held-out text, in one pass over the
// weights. With a dump it measures only local errors, without the model. It makes the "arms" and
// "settings" of report.json's member "validation" (export/report/schema.md).
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
  bool local_only = false;          // no error propagation, hence no perplexity and no needles
  int64_t score_from = -1;          // first scored token of each text, if its query sees a
                                    // quantized key; -1: after a quarter
  int64_t resamples = 1000;         // for bootstrap intervals
  uint64_t seed = 0;
};

struct ValidationHooks {
  std::function<void(size_t layers_done, size_t num_layers, double seconds)> on_layer;
  // Called often with the part of the current layer that is done, in [0, 1], and the current work.
  std::function<void(double part, const std::string& doing)> on_part = {};
  // Called after the last layer with the part of the next tokens that is scored.
  std::function<void(double part, const std::string& what)> on_scored = {};
  std::function<bool()> stop_requested;                                // called after each layer
  std::function<void(const std::string& arm, double seconds)> on_arm;  // at the end, for its caches
  LayerObserver* beside = nullptr;  // called after the validation's observer, with the same data
  // For a model: the directory from which a stopped run resumes. Up to 10 s of work may be lost, or
  // 20 times the time for storing its hidden states. Null: the run starts anew.
  JobDirectory* job = nullptr;
};

// The data of a validation. Texts are scored, and attention is compared on them. Own words are only
// scored. Needles, tool calls and continuations are scored with some of the arms. In texts and own
// words, only tokens whose query sees a quantized key count. The calibration text runs through the
// exact model, for methods that are fitted to rows.
struct ValidationData {
  std::vector<std::vector<int32_t>> texts;
  std::vector<std::vector<int32_t>> own_words = {};  // sampled from the model at temperature 1
  CountedQueries counted = {};            // in `texts`; other rows and next tokens are not measured
  std::vector<std::string> domains = {};  // domain of each text; empty: all are of one domain
  bool builtin = true;                    // whether `texts` are built in, not chosen by the user
  std::vector<NeedleSample> needles = {};
  std::vector<NeedleSample> tool_calls = {};
  // Texts that begin with a prefix of `prefix_tokens` tokens. The rest is the exact model's own
  // most likely tokens.
  std::vector<std::vector<int32_t>> continuations = {};
  int64_t prefix_tokens = 0;
  std::vector<std::vector<int32_t>> calibration = {};
};

// Returns the options of methods on a model: those of `options`, and the model's weights, which are
// read on demand.
MethodContext::Options MethodOptions(const ValidationOptions& options, const Checkpoint& checkpoint,
                                     const ModelSpec& spec);

// Returns {"source", "settings", "headline_arm", "arms", "by_distance", "verdict_text", "recall",
// "tool_call"}, the last three if they apply. Throws the errors of reading the artifact and the
// model; UsageError for unknown arms; ResourceError if the arms' hidden states do not fit into
// memory; Interrupted if a stop was requested.
Json ValidateModel(const Checkpoint& checkpoint, const ModelSpec& spec, at::Device device,
                   at::ScalarType dtype, const ValidationData& data, const Artifact& artifact,
                   const ValidationOptions& options, const ValidationHooks& hooks);

// Measures local errors on all sequences of a dump, for methods that need no calibration text.
// `domains`: one per sequence; empty: all sequences are of one domain.
Json ValidateDump(AttentionSource& source, const CountedQueries& counted, const Artifact& artifact,
                  const ValidationOptions& options, const ValidationHooks& hooks,
                  const std::vector<std::string>& domains = {});

}  // namespace oscar
