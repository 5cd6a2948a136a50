// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/run/self_generation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "calib/job/job_directory.h"
#include "capture/files/atomic_file.h"
#include "capture/model/generate/generate.h"
#include "linalg/base/error.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr int kFileVersion = 1;

int64_t PromptTokens(const Document& prompt) { return std::ssize(prompt.ids); }

// Returns the maximum number of tokens that continue a prompt.
int64_t RoomFor(const SelfGeneration& model, const Document& prompt) {
  return std::min(model.options.longest, model.max_sequence - PromptTokens(prompt));
}

// The documents written so far, in memory and in the job's file.
class Written {
 public:
  Written(fs::path job, const Json& key)
      : job_(std::move(job)), file_(job_ / kSelfGeneratedFile), key_(key) {
    const std::string what = file_.string();
    if (!fs::exists(file_)) {
      CheckNoOtherRun();
      return;
    }
    const Json stored = ReadJsonFile(what);
    if (JsonInt(stored, "version", what) != kFileVersion)
      throw InputError(what + ": written by another version of oscar", Remedy::kStartOver);
    CheckSameRun(job_, JsonMember(stored, "key", what), key_);
    for (const Json& document : JsonMember(stored, "documents", what)) {
      result.documents.push_back({JsonString(document, "origin", what),
                                  JsonMember(document, "ids", what).get<std::vector<int32_t>>()});
    }
    if (const std::string digest = JsonString(stored, "digest", what);
        digest != DataDigest(result.documents)) {
      throw InputError(
          fmt::format("{}: damaged: its documents have the digest {}, but {} was recorded; start "
                      "over with --restart",
                      what, DataDigest(result.documents), digest));
    }
    result.tokens = JsonInt(stored, "tokens", what);
    result.prompts = JsonInt(stored, "prompts", what);
    result.from_job = true;
  }

  void Save() const {
    Json documents = Json::array();
    for (const Document& document : result.documents)
      documents.push_back({{"origin", document.origin}, {"ids", document.ids}});
    WriteFileAtomically(file_, CanonicalJson({{"version", kFileVersion},
                                              {"key", key_},
                                              {"documents", documents},
                                              {"digest", DataDigest(result.documents)},
                                              {"tokens", result.tokens},
                                              {"prompts", result.prompts}}));
  }

  SelfGenerated result;

 private:
  // Refuses a job whose run has no self-generated text, before hours of generation are lost.
  void CheckNoOtherRun() const {
    const fs::path fingerprint = job_ / kFingerprintFile;
    if (!fs::exists(fingerprint)) return;
    const Json was = ReadJsonFile(fingerprint.string());
    const Json data = was.value("data", Json::object());
    const Json self = data.value("self_generated", Json());
    if (self.is_null()) CheckSameRun(job_, {{"self_generated", self}}, {{"self_generated", key_}});
  }

  fs::path job_, file_;
  const Json& key_;
};

// Returns the next prompts that are needed, and how long each continuation may become.
std::vector<PromptToContinue> NextBatch(const SelfGeneration& model, const SelfGenerated& written,
                                        int64_t batch) {
  const int64_t left = model.options.tokens - written.tokens;
  const int64_t wanted = (left + model.options.longest - 1) / model.options.longest;
  const int64_t count = std::min({batch, wanted, std::ssize(model.prompts) - written.prompts});
  std::vector<PromptToContinue> prompts;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t number = written.prompts + i;
    const Document& prompt = model.prompts[static_cast<size_t>(number)];
    // Room is shared equally; the first continuations may be one token longer.
    const int64_t share = left / wanted + (i < left % wanted ? 1 : 0);
    prompts.push_back(
        {prompt.ids, std::min(share, RoomFor(model, prompt)), static_cast<uint64_t>(number)});
  }
  return prompts;
}

}  // namespace

Json DescribeSelfGeneration(const SelfGeneration& model) {
  const SelfGenerationOptions& options = model.options;
  return {{"tokens_asked_for", options.tokens},
          {"longest", options.longest},
          {"temperature", options.sampling.temperature},
          {"top_p", options.sampling.top_p},
          {"seed", options.sampling.seed},
          {"stop_ids", model.stop_ids},
          {"max_sequence", model.max_sequence},
          {"prompts_digest", DataDigest(model.prompts)},
          {"chat_format", model.chat_format},
          {"chat_template", model.chat_template}};
}

SelfGenerated GenerateDocuments(const SelfGeneration& model,
                                const std::function<SelfGenerationPlan()>& plan,
                                const fs::path& job, const Json& key,
                                const SelfGenerationHooks& hooks) {
  Written written(job, key);
  SelfGenerated& result = written.result;
  std::optional<SelfGenerationPlan> way;
  std::optional<DecodeLoop> decoder;
  while (result.tokens < model.options.tokens && result.prompts < std::ssize(model.prompts)) {
    result.from_job = false;
    if (!decoder) {
      way = plan();
      decoder.emplace(model.checkpoint, model.spec, model.device, model.dtype, way->resident,
                      way->loop);
    }
    const std::vector<PromptToContinue> prompts = NextBatch(model, result, way->batch);
    SelfGenerationProgress progress{result.tokens, std::ssize(result.documents)};
    const auto continuations =
        Generate(*decoder, prompts, model.stop_ids, model.options.sampling, [&](int64_t tokens) {
          progress.tokens += tokens;
          if (hooks.on_step) hooks.on_step(progress);
          return !(hooks.stop_requested && hooks.stop_requested());
        });
    if (!continuations) {
      throw Interrupted(fmt::format("stopped after {} of {} self-generated tokens; they are in {}",
                                    result.tokens, model.options.tokens, job.string()));
    }
    for (size_t i = 0; i < prompts.size(); ++i) {
      const std::vector<int32_t>& ids = (*continuations)[i].ids;
      if (ids.empty()) continue;
      Document document = model.prompts[static_cast<size_t>(prompts[i].number)];
      document.ids.insert(document.ids.end(), ids.begin(), ids.end());
      result.documents.push_back(std::move(document));
      result.tokens += std::ssize(ids);
    }
    result.prompts += std::ssize(prompts);
    written.Save();
    progress = {result.tokens, std::ssize(result.documents)};
    if (hooks.on_batch) hooks.on_batch(progress);
  }
  if (result.documents.empty()) {
    throw InputError(
        fmt::format("self-generated text: the model ends each of {} answers immediately (stop "
                    "tokens {}); check that the chat template is the model's own",
                    result.prompts, fmt::join(model.stop_ids, ", ")),
        Remedy::kOtherPrompts);
  }
  return std::move(result);
}

void AddSelfGenerated(const SelfGeneration& model, const SelfGenerated& generated, DataSet& data) {
  data.self_generated = DescribeSelfGeneration(model);
  data.self_generated["tokens"] = generated.tokens;
  data.self_generated["prompts"] = generated.prompts;
  data.self_generated["documents"] = generated.documents.size();
  for (const Document& document : generated.documents) {
    const auto tokens = std::ssize(document.ids);
    ++data.counts.documents_sent;
    ++data.counts.documents_used;
    data.counts.tokens_sent += tokens;
    data.counts.tokens_used += tokens;
    data.documents.push_back(document);
  }
  data.name += fmt::format(" and {} self-generated documents", generated.documents.size());
  data.digest = DataDigest(data.documents);
}

SelfGenerated PlannedDocuments(const SelfGeneration& model) {
  SelfGenerated planned;
  while (planned.tokens < model.options.tokens && planned.prompts < std::ssize(model.prompts)) {
    for (const PromptToContinue& prompt : NextBatch(model, planned, model.options.tokens)) {
      Document document{"self:planned", prompt.ids};
      document.ids.resize(document.ids.size() + static_cast<size_t>(prompt.longest));
      planned.documents.push_back(std::move(document));
      planned.tokens += prompt.longest;
      ++planned.prompts;
    }
  }
  return planned;
}

}  // namespace oscar
