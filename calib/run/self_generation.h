// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Calibration text that the model writes itself (--self-generate): continuations of prompts from
// the data, which become documents beside the others. A cache in few bits fails first on text that
// a model reads back from itself, above all long reasoning. The job's directory keeps the text, so
// a resumed run reads it instead of writing it again. The tokens depend on the last bits of the
// arithmetic, so another machine may write another text. Every artifact holds the digest of the
// data, which is that of the text itself.
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
  int64_t tokens = 0;      // that the model writes, of all documents together; 0: none
  int64_t longest = 1024;  // tokens of a continuation
  SamplingOptions sampling = {};
  bool stream = false;  // where the weights do not fit: read them again for every token
};

inline constexpr const char* kSelfGeneratedFile = "self_generated.json";  // of a job

// A model and the prompts that it continues.
struct SelfGeneration {
  const Checkpoint& checkpoint;
  const ModelSpec& spec;
  at::Device device = at::kCPU;
  at::ScalarType dtype = at::kFloat;
  ReadMode read = ReadMode::kAuto;  // of weights to a GPU
  SelfGenerationOptions options;
  std::vector<Document> prompts;
  std::string chat_format;  // of the prompts, as in DataSet
  Json chat_template = nullptr;
  std::vector<int32_t> stop_ids;
  int64_t max_sequence = 0;  // tokens of a prompt and its continuation; longer prompts are refused
};

// The cost of self-generation if no continuation ends early.
struct SelfGenerationPlan {
  bool resident = true;       // all weights are in memory
  int64_t batch = 0;          // continuations written at once
  int64_t steps = 0;          // of one token of each of them
  uint64_t weight_bytes = 0;  // of the model in the compute dtype, but for the embedding
  uint64_t cache_bytes = 0;   // of a batch
  uint64_t memory_bytes = 0;  // all together
  uint64_t bytes_read = 0;    // from disk
  double seconds = 0;         // of arithmetic, from a short measurement of the device
  LoopOptions loop = {};      // how weights come
};
// `limit`: bytes of device memory that may be used. Throws ResourceError with the costs if the
// model does not fit and options.stream does not allow for that. Throws UsageError if the prompts
// cannot become that many tokens.
SelfGenerationPlan PlanSelfGeneration(const SelfGeneration& model, uint64_t limit);

struct SelfGenerationProgress {
  int64_t tokens = 0;     // so far
  int64_t documents = 0;  // finished so far
};
struct SelfGenerationHooks {
  std::function<void(const SelfGenerationProgress&)> on_step, on_batch;
  std::function<bool()> stop_requested;  // asked after every step
};

// The documents of prompts in order, each a prompt and its continuation; those with an empty
// continuation are left out. Documents that `job` holds for the same `key` (model, data, machine:
// JSON) are read. The rest is written, batch by batch; only then is `plan` called. To restart, use
// JobLock::DiscardJob. Throws Interrupted, with all finished batches in the job, if the hook asked
// to stop. Throws InputError if the job's file is damaged or another run's, or if no prompt has a
// continuation.
struct SelfGenerated {
  std::vector<Document> documents;
  int64_t tokens = 0;     // written
  int64_t prompts = 0;    // used
  bool from_job = false;  // all of it was there
};
SelfGenerated GenerateDocuments(const SelfGeneration& model,
                                const std::function<SelfGenerationPlan()>& plan,
                                const std::filesystem::path& job, const Json& key,
                                const SelfGenerationHooks& hooks);

// Describes options, stop tokens and the digest of the prompts, for the key and the provenance.
Json DescribeSelfGeneration(const SelfGeneration& model);
// Adds the documents to the data, after the others: counts, digest, provenance.
void AddSelfGenerated(const SelfGeneration& model, const SelfGenerated& generated, DataSet& data);
// Returns placeholder documents with as many tokens and the same length, for a plan.
SelfGenerated PlannedDocuments(const SelfGeneration& model);

}  // namespace oscar
