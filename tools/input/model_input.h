// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The input of commands that run a model: the options for its data and machine, and everything that
// is known before any weight is read. Trap: artifacts store the keys and values of these options,
// so no key or meaning may change.
#pragma once

#include <cstdint>
#include <future>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capture/checkpoint/checkpoint.h"
#include "capture/checkpoint/model_location.h"
#include "capture/model/spec/model_spec.h"
#include "capture/text/data/data_source.h"
#include "capture/text/tokenizer/tokenizer_files.h"
#include "tools/cli/log.h"
#include "tools/cli/option_table.h"

namespace oscar {

// Options for turning chat messages into text (capture/text/data/chat_format.h).
struct ChatArguments {
  std::string chat_template;  // template file; empty: the model's own
  std::vector<std::string> template_var;
  std::string date = ChatOptions().date;
};
void AddChatOptions(OptionTable& table, ChatArguments* chat);

// The help of every option that takes a model.
inline constexpr const char* kModelHelp =
    "directory of the model, a .gguf file (the first of a split set), or ORG/NAME[@REVISION] in "
    "the "
    "local Hugging Face cache; nothing is downloaded";

struct DataArguments {
  std::vector<std::string> data = {};  // files; empty: the built-in corpus
  int64_t tokens = 30000;              // 0: DefaultTokens
  int64_t max_sequence = 0;  // 0: 4096 if packed, else the model's limit; never more than `tokens`
  bool pack = false;
  // Whether documents are packed by default. A calibration needs long contexts, which short
  // documents do not have.
  bool packs_by_default = false;
  bool whole_documents = false;  // documents must not be packed
  std::string separator = {};    // a token or its id; empty: see FindSeparator
  std::vector<double> data_weights = {};
  std::vector<int64_t> length_buckets = {};
  ChatArguments chat = {};
  bool chat_for_prompts = false;  // see DataOptions
  // The names of these options in messages about cut text. One unit of `tokens_flag` is
  // `tokens_piece` tokens.
  std::string tokens_flag = "--tokens", length_flag = "--max-sequence";
  int64_t tokens_piece = 1;
};
void AddDataOptions(OptionTable& table, DataArguments* data);
// Returns a calibration's default tokens: 98,304 on a GPU, 16,384 (four times 4,096) on a CPU.
int64_t DefaultTokens(const std::string& device);
void AddSeparatorOption(OptionTable& table, std::string* separator);  // the separator for --pack

struct ModelArguments {
  std::string model;  // directory or Hugging Face id
  std::string device = "auto";
  std::string dtype = "auto";
  UnknownConfig unknown_config = UnknownConfig::kCheck;
  bool allow_small_vocabulary = false;
};
void AddModelOption(OptionTable& table, ModelArguments* model);
void AddMachineOptions(OptionTable& table, ModelArguments* model);  // device and dtype
void AddAllowOptions(OptionTable& table, ModelArguments* model);    // which checks may fail

// A tokenizer must cover at least this share of a model's vocabulary. Models that pad their
// vocabulary to a power of two leave 97 % or more (phi-2: 50,295 of 51,200).
inline constexpr double kSmallestVocabularyShare = 0.5;
// Returns why this cannot be the model's tokenizer, or "" if it can.
std::string WhyOtherTokenizer(const Tokenizer& tokenizer, const ModelSpec& spec);

std::vector<std::vector<int32_t>> TokenIds(const DataSet& data);  // per document

// The name of the placeholder data in a plan without a tokenizer.
inline constexpr std::string_view kPlaceholderData = "placeholders";

struct ModelInput {
  ModelLocation location;
  Checkpoint checkpoint;
  ModelSpec spec;
  LazyTokenizer tokenizer;  // converts to false if the model has none
  DataSet data;

  std::vector<std::vector<int32_t>> Sequences() const { return TokenIds(data); }
};

// Starts the GPU that --device names, in the background. Ignores a failure, because it will occur
// again when the GPU is used.
std::future<void> StartGpu(const std::string& device);

// Opens the model without data. Like the functions below, throws UsageError or InputError and logs
// what it found. `planning`: no model will run, so weights may be missing.
ModelInput OpenModel(const ModelArguments& model, Log& log, bool planning = false);
// Returns the options for the data that the arguments name, or for `builtin` if they name no files.
DataOptions MakeDataOptions(const DataArguments& data, BuiltinText builtin,
                            const ModelInput& input);
// Throws InputError for a file that cannot be opened. Runs before a model is opened.
void CheckDataFiles(const std::vector<std::string>& files);
// Loads the data that these options describe.
DataSet LoadModelData(const DataArguments& data, BuiltinText builtin, Log& log,
                      const ModelInput& input);
// Opens the model and loads the data, for a calibration or a capture.
ModelInput OpenModelInput(const ModelArguments& model, const DataArguments& data, Log& log,
                          bool planning = false);

}  // namespace oscar
