// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// See model_input.h.
#include "tools/model_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "calib/provenance.h"
#include "capture/text/packing.h"
#include "linalg/error.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

void LogModel(const ModelInput& input, Log& log) {
  log.Info(
      "model",
      fmt::format("model: {}{} ({}, {} layers, {})", input.location.id,
                  input.location.revision.empty() ? "" : "@" + input.location.revision,
                  input.spec.model_type, input.spec.layers.size(), input.spec.rope_description),
      {{"id", input.location.id},
       {"revision", input.location.revision},
       {"directory", input.location.directory.string()}});
  for (const std::string& field : input.spec.ignored_config) {
    log.Info(
        "ignored_config",
        fmt::format("config.json: '{}' is not known and was let pass by --allow-unknown-config",
                    field));
  }
}

void LogData(const DataSet& data, Log& log) {
  const DataCounts& c = data.counts;
  Json fields = DescribeData(data);
  fields.erase("fingerprints");  // long, and for programs that compare data sets alone
  log.Info(
      "data",
      fmt::format("data: {}: {} of {} documents, {} of {} tokens used; {} documents truncated ({} "
                  "tokens cut), {} dropped ({} tokens)",
                  data.name, c.documents_used, c.documents_sent, c.tokens_used, c.tokens_sent,
                  c.documents_truncated, c.tokens_truncated, c.documents_dropped, c.tokens_dropped),
      fields);
}

}  // namespace

void AddModelOption(OptionTable& table, ModelArguments* model) {
  table.Add(&model->model, {.name = "model",
                            .help = "directory of the model, or ORG/NAME[@REVISION] in the local "
                                    "Hugging Face cache; nothing is downloaded",
                            .scope = OptionScope::kRun,
                            .positional = true});
}

void AddDataOptions(OptionTable& table, DataArguments* data) {
  table.Group("Data");
  table.Add(&data->data,
            {.name = "data",
             .help = "files of text: .jsonl with text, messages or input_ids in each row, anything "
                     "else is one plain-text document; none: the built-in corpus",
             .scope = OptionScope::kRun,
             .several = true});
  table.Add(&data->tokens,
            {.name = "tokens",
             .help = "token budget; documents are taken whole, in order, until it is full",
             .unit = "tokens",
             .min = 1});
  table.Add(&data->max_sequence,
            {.name = "max_sequence",
             .help = "longest document; longer ones are cut there and counted; 0: what the model "
                     "supports, up to the budget",
             .unit = "tokens",
             .min = 0});
  table.Add(&data->pack,
            {.name = "pack",
             .help = "join the documents with a separator between them and cut the whole into "
                     "sequences of exactly --max-sequence tokens"});
  table.Add(&data->separator,
            {.name = "separator",
             .help = "token (or its id) that --pack puts between documents; empty: <|endoftext|> "
                     "if the tokenizer has it, else the model's end of text"});
}

void AddMachineOptions(OptionTable& table, ModelArguments* model) {
  table.Add(&model->device, {.name = "device",
                             .help = "auto (a GPU if there is one), cpu, cuda or cuda:N",
                             .scope = OptionScope::kRun});
  table.Add(&model->dtype,
            {.name = "dtype",
             .help = "arithmetic of the model; auto: as stored on a GPU, f32 on a CPU",
             .choices = {"auto", "bf16", "f16", "f32"}});
}

void AddUnknownConfigOption(OptionTable& table, ModelArguments* model) {
  table.Add(&model->allow_unknown_config,
            {.name = "allow_unknown_config",
             .help = "let pass fields of config.json that no table knows"});
}

std::vector<std::vector<int32_t>> TokenIds(const DataSet& data) {
  std::vector<std::vector<int32_t>> sequences;
  for (const Document& document : data.documents) sequences.push_back(document.ids);
  return sequences;
}

ModelInput OpenModel(const ModelArguments& model, Log& log) {
  ModelInput input;
  input.location = ResolveModel(model.model);
  input.spec =
      ReadModelSpec(input.location.directory, {.allow_unknown_config = model.allow_unknown_config});
  input.checkpoint = Checkpoint::Open(input.location.directory);
  CheckTensors(input.spec, input.checkpoint);
  LogModel(input, log);
  if (const fs::path file = input.location.directory / "tokenizer.json"; fs::exists(file))
    input.tokenizer = Tokenizer::Load(file);
  return input;
}

DataSet LoadModelData(const DataArguments& data, BuiltinText builtin, Log& log,
                      const ModelInput& input) {
  if (data.max_sequence > input.spec.max_positions) {
    throw UsageError(fmt::format("--max-sequence {}: the model supports {} positions",
                                 data.max_sequence, input.spec.max_positions));
  }
  if (!data.separator.empty() && !data.pack)
    throw UsageError("--separator stands between packed documents: give --pack too");
  DataOptions options;
  options.files.assign(data.data.begin(), data.data.end());
  options.builtin = builtin;
  options.token_budget = data.tokens;
  options.max_sequence =
      data.max_sequence > 0 ? data.max_sequence : std::min(input.spec.max_positions, data.tokens);
  if (data.pack) {
    options.pack =
        FindSeparator(input.location.directory, input.tokenizer_or_null(), data.separator);
  }
  DataSet set = LoadData(options, input.tokenizer_or_null(), input.spec.vocab_size);
  LogData(set, log);
  return set;
}

ModelInput OpenModelInput(const ModelArguments& model, const DataArguments& data, Log& log) {
  ModelInput input = OpenModel(model, log);
  input.data = LoadModelData(data, BuiltinText::kCalibration, log, input);
  return input;
}

}  // namespace oscar
