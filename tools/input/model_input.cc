// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/input/model_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "calib/run/provenance.h"
#include "capture/checkpoint/weight_files.h"
#include "capture/files/mapped_file.h"
#include "capture/gpu/gpu_module.h"
#include "capture/model/run/device.h"
#include "capture/text/data/packing.h"
#include "linalg/base/error.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

void LogModel(const ModelInput& input, UnknownConfig rule, Log& log) {
  const std::string storage = DescribeStorage(input.spec, input.checkpoint);
  log.Info("model",
           fmt::format("model: {}{} ({}, {} layers, {}, weights {})", input.location.id,
                       input.location.revision.empty() ? "" : "@" + input.location.revision,
                       input.spec.model_type, AllLayers(input.spec).size(),
                       input.spec.rope_description, storage),
           {{"id", input.location.id},
            {"weights", storage},
            {"revision", input.location.revision},
            {"directory", input.location.directory.string()}});
  for (const std::string& field : input.spec.fields.unknown) {
    log.Info("unknown_config",
             fmt::format("config.json: the field '{}' is unknown; {}", field,
                         rule == UnknownConfig::kIgnore
                             ? "it is ignored (--unknown-config ignore)"
                             : "the loss of the text must show that the model works without it"),
             {{"field", field}});
  }
}

// Returns the reason for the length at which documents are cut.
std::string WhyCut(const DataArguments& data, const ModelSpec& spec) {
  if (data.max_sequence > 0 && data.max_sequence < spec.max_positions)
    return fmt::format("documents are limited to {} tokens ({})", data.max_sequence,
                       data.length_flag);
  if (data.max_sequence == 0 && data.tokens < spec.max_positions)
    return fmt::format("documents are limited to {} tokens ({})", data.tokens, data.tokens_flag);
  return fmt::format("the model supports {} positions ({})", spec.max_positions,
                     spec.positions_limit);
}

// Logs which data is not used, why, and how to use it.
void LogUnused(const DataArguments& data, const ModelSpec& spec, const DataCounts& counts,
               bool packed, Log& log) {
  if (data.data.empty()) return;  // the rest of the built-in corpus is not needed
  if (counts.tokens_truncated > 0 && !packed) {
    log.Info(
        "data_cut",
        fmt::format("data: {} of {} tokens are not used, because the ends of {} documents are cut "
                    "off: {}; --pack joins documents before cutting, so that no tokens are lost",
                    counts.tokens_truncated, counts.tokens_sent, counts.documents_truncated,
                    WhyCut(data, spec)),
        {{"tokens_truncated", counts.tokens_truncated}});
  }
  if (counts.tokens_dropped > 0) {
    log.Info(
        "data_dropped",
        fmt::format(
            "data: {} of {} tokens did not fit into the budget and are not used; {} {} uses all",
            counts.tokens_dropped, counts.tokens_sent, data.tokens_flag,
            (counts.tokens_sent + data.tokens_piece - 1) / data.tokens_piece),
        {{"tokens_dropped", counts.tokens_dropped}});
  }
}

void LogData(const DataSet& data, Log& log) {
  const DataCounts& c = data.counts;
  Json fields = DescribeData(data);
  fields.erase("fingerprints");  // long, and useful only for comparing data sets
  log.Info(
      "data",
      fmt::format("data: {}: {} of {} documents, {} of {} tokens used; {} documents truncated ({} "
                  "tokens cut), {} dropped ({} tokens)",
                  data.name, c.documents_used, c.documents_sent, c.tokens_used, c.tokens_sent,
                  c.documents_truncated, c.tokens_truncated, c.documents_dropped,
                  c.tokens_dropped) +
          (data.lost == 0 ? std::string()
                          : fmt::format("; {} bytes or characters without a token in the "
                                        "vocabulary are left out, as the tokenizers library does",
                                        data.lost)),
      fields);
  const auto say = [&](const char* event, int64_t count, const char* what) {
    if (count > 0) log.Info(event, fmt::format("data: {} {}", count, what), {{"count", count}});
  };
  say("data_padding", c.padding, "padding tokens (attention_mask 0) are left out");
  say("data_null", c.rows_null, "rows that are null are left out");
  say("data_beginning", c.beginnings_left_out,
      "texts already begin with the token that the tokenizer adds (BOS), so it is not added again");
  if (data.masked()) {
    log.Info("data_queries",
             fmt::format("data: the queries of {} of {} tokens count (loss_mask, labels)",
                         data.counted_queries(), c.tokens_used));
  }
}

// Packs documents into sequences of 4,096 tokens, or a quarter of a small budget. If no separator
// is found, leaves documents as they are.
void PackByDefault(const DataArguments& data, const ModelInput& input, DataOptions& options) {
  constexpr int64_t kSequence = 4096, kLeast = 512;
  const auto find = [&](const LazyTokenizer& tokenizer) {
    try {
      options.pack = FindSeparator(input.location.directory, tokenizer, data.separator);
    } catch (const InputError&) {
      if (!data.separator.empty()) throw;
    }
  };
  find(input.tokenizer);
  if (!options.pack) find({});  // config.json names a separator even if the tokenizer is unreadable
  if (!options.pack) return;
  options.pack_short = true;
  if (data.max_sequence == 0) {
    const int64_t quarter = std::max(data.tokens / 4, std::min(data.tokens, kLeast));
    options.max_sequence = std::min({options.max_sequence, kSequence, quarter});
  }
}

// Returns placeholder documents with as many tokens as the budget, each as long as possible.
DataSet Placeholders(const DataArguments& data, const ModelSpec& spec) {
  const int64_t longest = std::min(
      {spec.max_positions, data.tokens, data.max_sequence > 0 ? data.max_sequence : int64_t{4096}});
  DataSet set;
  set.name = kPlaceholderData;
  set.chat_format = "none";
  for (int64_t left = data.tokens; left > 0; left -= longest) {
    set.documents.push_back(
        {"placeholder", std::vector<int32_t>(static_cast<size_t>(std::min(left, longest)))});
  }
  set.counts.documents_sent = set.counts.documents_used = std::ssize(set.documents);
  set.counts.tokens_sent = set.counts.tokens_used = data.tokens;
  return set;
}

}  // namespace

void AddModelOption(OptionTable& table, ModelArguments* model) {
  table.Add(&model->model, {.name = "model",
                            .help = kModelHelp,
                            .scope = OptionScope::kRun,
                            .positional = true,
                            .path = true});
}

void AddDataOptions(OptionTable& table, DataArguments* data) {
  table.Group("Data");
  table.Add(
      &data->data,
      {.name = "data",
       .help =
           "files of text: each row of a .jsonl file holds messages (or conversations), prompt and "
           "completion, text, input_ids (with attention_mask, loss_mask or labels), or instruction "
           "and output; any other file is plain text, which is cut into chunks of --max-sequence "
           "tokens; .gz and .zst files are unpacked; by default, the built-in corpus is used",
       .scope = OptionScope::kRun,
       .main = true,
       .path = true});
  table.Add(&data->tokens,
            {.name = "tokens",
             .help = "token budget; documents are taken in order until it is full; 0: 98304 on a "
                     "GPU, 16384 on a CPU",
             .unit = "tokens",
             .min = 0,
             .main = true});
  table.Add(&data->max_sequence,
            {.name = "max_sequence",
             .help = "length of the longest document; longer rows are cut off and counted, and "
                     "longer plain text continues in another document; 0: what the model supports, "
                     "up to the budget, or 4096 for packed data",
             .unit = "tokens",
             .min = 0});
  table.Add(&data->pack, {.name = "pack",
                          .help = "join the documents with a separator between them, and cut the "
                                  "result into sequences of exactly --max-sequence tokens"});
  AddSeparatorOption(table, &data->separator);
  if (data->packs_by_default) {
    table.Add(&data->whole_documents,
              {.name = "whole_documents",
               .help = "take documents as they are; without this and without --length-buckets, the "
                       "documents of each domain are packed as with --pack, or into one shorter "
                       "sequence if there are too few"});
    table.NotWith({"whole_documents"}, "pack");
  }
  table.Add(&data->data_weights,
            {.name = "data_weights",
             .help = "share of the token budget of each file of --data, such as 3,1; tokens that "
                     "one file cannot supply are taken from the others; by default, files are read "
                     "in order until the budget is full",
             .min = 0});
  table.Add(&data->length_buckets,
            {.name = "length_buckets",
             .help = "divide the token budget equally among classes of document length, such as "
                     "1024,4096,16384: up to the first length, up to the second, and so on, and "
                     "longer than the last",
             .unit = "tokens",
             .min = 1});
  AddChatOptions(table, &data->chat);
  if (!data->packs_by_default) table.OnlyWith({"separator"}, "pack");
  table.OnlyWith({"data_weights"}, "data");
}

void AddSeparatorOption(OptionTable& table, std::string* separator) {
  table.Add(separator,
            {.name = "separator",
             .help = "token (or its id) that --pack puts between documents; empty: <|endoftext|> "
                     "if the tokenizer has it, else the model's end of text"});
}

void AddChatOptions(OptionTable& table, ChatArguments* chat) {
  table.Add(&chat->chat_template,
            {.name = "chat_template",
             .help = "file with the Jinja template that renders messages; empty: the model's own "
                     "template (chat_template.jinja or tokenizer_config.json)",
             .scope = OptionScope::kRun,
             .path = true});
  table.Add(&chat->template_var,
            {.name = "template_var",
             .help = "variables for the chat template as NAME=VALUE, such as "
                     "enable_thinking=false; VALUE is read as JSON, or as text if it is not JSON",
             .verbatim = true});
  table.Add(&chat->date, {.name = "date",
                          .help = "current date for the chat template (strftime_now), such as "
                                  "2026-01-31 or 2026-01-31T12:00:00; it is fixed, so that runs on "
                                  "different days give the same result"});
}

void AddMachineOptions(OptionTable& table, ModelArguments* model) {
  table.Add(&model->device, {.name = "device",
                             .help = "auto (a GPU if there is one), cpu, cuda or cuda:N",
                             .scope = OptionScope::kRun,
                             .main = true});
  table.Add(
      &model->dtype,
      {.name = "dtype",
       .help = "type in which the model computes; auto: the stored type on a GPU, f32 on a CPU",
       .choices = {"auto", "bf16", "f16", "f32"}});
}

void AddAllowOptions(OptionTable& table, ModelArguments* model) {
  table.AddChoice<UnknownConfig>(
      &model->unknown_config,
      {{"check", UnknownConfig::kCheck},
       {"refuse", UnknownConfig::kRefuse},
       {"ignore", UnknownConfig::kIgnore}},
      {.name = "unknown_config",
       .help = "how unknown fields of config.json are treated: check accepts them if the loss of "
               "the text shows that the forward pass works without them, but refuses names that "
               "mention rope, norm, scale, cap, window, alpha, limit, gate or bias; refuse accepts "
               "none; ignore accepts all"});
  table.Add(&model->allow_small_vocabulary,
            {.name = "allow_small_vocabulary",
             .help = "accept a tokenizer that covers less than half of the model's ids"});
}

std::string WhyOtherTokenizer(const Tokenizer& tokenizer, const ModelSpec& spec) {
  const double share =
      static_cast<double>(tokenizer.vocab_size()) / static_cast<double>(spec.vocab_size);
  if (share >= kSmallestVocabularyShare) return {};
  return fmt::format(
      "the tokenizer has {} ids and the model {}; a tokenizer that covers only {:.0f} % of the "
      "vocabulary belongs to another model (released models cover at least 97 %), and its text "
      "would be noise to this one. Use the model's own tokenizer, or accept this one with "
      "--allow-small-vocabulary",
      tokenizer.vocab_size(), spec.vocab_size, 100 * share);
}

std::vector<std::vector<int32_t>> TokenIds(const DataSet& data) {
  std::vector<std::vector<int32_t>> sequences;
  for (const Document& document : data.documents) sequences.push_back(document.ids);
  return sequences;
}

std::future<void> StartGpu(const std::string& device) {
  if (device != "cpu") (void)LoadGpuModule();  // must precede other work of LibTorch
  return std::async(std::launch::async, [device] {
    try {
      WarmUp(ParseDevice(device));
    } catch (const std::exception&) {
    }
  });
}

int64_t DefaultTokens(const std::string& device) {
  return ParseDevice(device).is_cpu() ? 16384 : 98304;
}

ModelInput OpenModel(const ModelArguments& model, Log& log, bool planning) {
  ModelInput input;
  input.location = ResolveModel(model.model, ProcessEnvironment(), /*needs_weights=*/!planning);
  input.spec = ReadModelSpec(input.location.directory, {.unknown_config = model.unknown_config});
  if (planning && !HasWeightFiles(input.location.directory)) {
    input.checkpoint = Checkpoint::WithoutWeights(input.location.directory);
  } else {
    input.checkpoint = Checkpoint::Open(input.location.directory);
    CheckTensors(input.spec, input.checkpoint);
  }
  LogModel(input, model.unknown_config, log);
  input.tokenizer = LazyTokenizer([directory = input.location.directory, spec = input.spec,
                                   any_size = model.allow_small_vocabulary] {
    std::optional<Tokenizer> tokenizer = OpenTokenizer(directory);
    const std::string why =
        tokenizer && !any_size ? WhyOtherTokenizer(*tokenizer, spec) : std::string();
    if (!why.empty()) throw InputError(fmt::format("{}: {}", directory.string(), why));
    return tokenizer;
  });
  return input;
}

DataOptions MakeDataOptions(const DataArguments& data, BuiltinText builtin,
                            const ModelInput& input) {
  if (data.max_sequence > input.spec.max_positions) {
    throw UsageError(fmt::format("--max-sequence {}: the model supports {} positions ({})",
                                 data.max_sequence, input.spec.max_positions,
                                 input.spec.positions_limit));
  }
  DataOptions options;
  options.files.assign(data.data.begin(), data.data.end());
  options.builtin = builtin;
  options.token_budget = data.tokens;
  options.max_sequence =
      data.max_sequence > 0 ? data.max_sequence : std::min(input.spec.max_positions, data.tokens);
  if (data.pack) {
    options.pack = FindSeparator(input.location.directory, input.tokenizer, data.separator);
  } else if (data.packs_by_default && !data.whole_documents && data.length_buckets.empty()) {
    PackByDefault(data, input, options);
  }
  options.mix = {data.data_weights, data.length_buckets};
  options.model_directory = input.location.directory;
  options.chat = {data.chat.chat_template, data.chat.template_var, data.chat.date};
  options.chat_for_prompts = data.chat_for_prompts;
  return options;
}

void CheckDataFiles(const std::vector<std::string>& files) {
  for (const std::string& file : files) (void)MappedFile::Open(file);
}

DataSet LoadModelData(const DataArguments& data, BuiltinText builtin, Log& log,
                      const ModelInput& input) {
  DataSet set =
      LoadData(MakeDataOptions(data, builtin, input), input.tokenizer, input.spec.vocab_size);
  LogData(set, log);
  LogUnused(data, input.spec, set.counts, set.separator.has_value(), log);
  return set;
}

ModelInput OpenModelInput(const ModelArguments& model, const DataArguments& given, Log& log,
                          bool planning) {
  DataArguments data = given;
  if (data.tokens == 0) data.tokens = DefaultTokens(model.device);
  CheckDataFiles(data.data);
  ModelInput input = OpenModel(model, log, planning);
  if (planning && !input.tokenizer && data.data.empty()) {
    input.data = Placeholders(data, input.spec);
    log.Info("data",
             "data: there is no tokenizer, so the plan assumes the requested number of tokens");
    return input;
  }
  input.data = LoadModelData(data, BuiltinText::kCalibration, log, input);
  return input;
}

}  // namespace oscar
