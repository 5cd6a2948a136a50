// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Calibration text that the model writes itself (--self-generate): continuations of prompts from
// the data, which are added to the data as documents. A low-bit cache first fails on text that the
// model itself has written, above all long reasoning.
// The job's directory keeps the text, so that a resumed run reads it instead of writing it again.
// The tokens depend on the last bits of the arithmetic, so another machine may write different
// text. Every artifact holds the digest of the data, including this text.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "capture/files/strict_json.h"
#include "capture/model/generate/token_sampler.h"
#include "capture/model/run/layer_loop.h"
#include "capture/text/data/data_source.h"

namespace oscar {

struct SelfGenerationOptions {
  int64_t tokens = 0;      // number of tokens to generate in all documents; 0: none
  int64_t longest = 1024;  // most tokens in a continuation
  SamplingOptions sampling = {};
  bool stream = false;  // if the weights do not fit: read them again for every token
};

inline constexpr const char* kSelfGeneratedFile = "self_generated.json";  // file name in a job

// A model and the prompts that it continues.
struct SelfGeneration {
  const Checkpoint& checkpoint;
  const ModelSpec& spec;
  at::Device device = at::kCPU;
  at::ScalarType dtype = at::kFloat;
  ReadMode read = ReadMode::kAuto;  // how weights reach a GPU
  SelfGenerationOptions options;
  std::vector<Document> prompts;
  std::string chat_format;  // for the prompts, as in DataSet
  Json chat_template = nullptr;
  std::vector<int32_t> stop_ids;
  int64_t max_sequence = 0;  // limit for a prompt with its continuation; longer prompts are refused
};

// The cost of self-generation if no continuation ends early.
struct SelfGenerationPlan {
  bool resident = true;       // all weights are in memory
  int64_t batch = 0;          // continuations generated at once
  int64_t steps = 0;          // each adds one token to every sequence
  uint64_t weight_bytes = 0;  // in the compute dtype, without the embedding table
  uint64_t cache_bytes = 0;   // for a batch
  uint64_t memory_bytes = 0;  // in total
  uint64_t bytes_read = 0;    // bytes read from disk
  double seconds = 0;         // compute time, extrapolated from a short benchmark of the device
  LoopOptions loop = {};      // how weights are loaded
};
// `limit`: usable bytes of device memory. Throws ResourceError with the costs if the model does not
// fit and options.stream is off. Throws UsageError if continuations of the prompts cannot have that
// many tokens.
SelfGenerationPlan PlanSelfGeneration(const SelfGeneration& model, uint64_t limit);

struct SelfGenerationProgress {
  int64_t tokens = 0;     // tokens so far
  int64_t documents = 0;  // finished so far
};
struct SelfGenerationHooks {
  std::function<void(const SelfGenerationProgress&)> on_step, on_batch;
  std::function<bool()> stop_requested;  // called after every step
};

// Returns the prompts with their continuations, in order, without those whose continuation is
// empty. Reads the documents that `job` holds for the same `key` (JSON of model, data, machine).
// Generates the rest in batches; calls `plan` only if there is a rest. To restart, use
// JobLock::DiscardJob. Throws Interrupted if the hook asked to stop; the job keeps all finished
// batches. Throws InputError if the job's file is damaged or belongs to another run, or if no
// prompt has a continuation.
struct SelfGenerated {
  std::vector<Document> documents;
  int64_t tokens = 0;     // generated
  int64_t prompts = 0;    // used
  bool from_job = false;  // everything came from the job
};
SelfGenerated GenerateDocuments(const SelfGeneration& model,
                                const std::function<SelfGenerationPlan()>& plan,
                                const std::filesystem::path& job, const Json& key,
                                const SelfGenerationHooks& hooks);

// Describes options, stop tokens and the digest of the prompts, for the key and the provenance.
Json DescribeSelfGeneration(const SelfGeneration& model);
// Adds the documents to the data, after the others: counts, digest, provenance.
void AddSelfGenerated(const SelfGeneration& model, const SelfGenerated& generated, DataSet& data);
// Returns placeholder documents with the same number of tokens and the same lengths, for a plan.
SelfGenerated PlannedDocuments(const SelfGeneration& model);

}  // namespace oscar
