// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The options of oscar-validate: one struct, one table.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "export/validate/validate.h"
#include "tools/cli/option_table.h"
#include "tools/input/continuations.h"
#include "tools/input/dump_input.h"
#include "tools/input/model_input.h"
#include "tools/input/own_words.h"
#include "tools/input/rank_job.h"
#include "tools/validate/own_arms.h"

namespace oscar {

struct ValidateOptions {
  std::string artifact;
  ModelArguments model;
  DumpArguments dump;  // replaces the model
  RankOptions ranks;
  std::string scope = "auto";           // see ApplyScope
  std::string output;                   // empty: into the artifact if of record, else beside it
  bool replace = false;                 // replaces the existing validation of record
  std::vector<std::string> combine;     // reports to combine on one page, instead of validating
  std::vector<std::string> table_rows;  // arms in the table of --combine
  std::string table_into;               // a file with markers around that table, or empty
  std::string csv;                      // a file for the numbers of all arms, or empty
  std::string write;                    // a directory for WriteReportFiles, or empty
  std::vector<std::string> runtimes;    // runtimes whose caches are simulated
  OwnArmArguments own;                  // methods and arms that the user provides
  // The opened artifacts of `own`.
  std::vector<std::shared_ptr<const Artifact>> others = {};
  std::vector<std::string> data;  // files; empty: the built-in evaluation text
  int64_t sequences = 0;          // 0: the scope decides
  int64_t length = 0;             // tokens each; 0: usual_length, or the model's limit
  int64_t usual_length = 4096;    // the default of the scope
  // The windows of arms that have some, and the values per scale; -1: as the artifact recommends.
  int64_t sink_tokens = -1, recent_tokens = -1, quant_group_size = -1;
  bool pack = true;
  std::string separator;
  ChatArguments chat;  // for rows with messages
  std::vector<int64_t>
      needle_lengths;  // empty: the longest that the model supports, and a quarter of it
  OwnWordsArguments own_words;
  int64_t needle_samples = -1;         // per task and length; 0: none; -1: the scope decides
  std::vector<int64_t> needle_depths;  // percent
  std::vector<std::string> needle_tasks;
  int64_t tool_calls = 0;                  // samples per task and length; 0: none
  std::vector<int64_t> tool_call_lengths;  // empty: as needle_lengths
  std::vector<std::string> tool_call_tasks;
  ContinuationArguments continuations;
  std::vector<std::string> methods;      // "all" or names; arms use them as their authors do
  std::vector<std::string> method_data;  // files; empty: the built-in calibration text
  int64_t method_tokens = 16384;
  int64_t prefill_tokens = 0;  // 0: a whole sequence
  std::string measure = "auto";
  std::string cache_dtype = "bf16";
  std::string gate;
  int64_t show_samples = 0;
  bool allow_other_model = false;
  std::string served, served_model;  // address of a server, or empty; empty model: its only one
  int64_t served_tokens = 64;        // tokens to generate after each prompt
  int64_t served_timeout = 300;      // seconds
  bool restart = false;              // discards what an interrupted run left
  bool kernels = false;
  int64_t k_bits = 2, v_bits = 2;  // bits of the cache that the kernels write
  ValidationOptions validation;
};

OptionTable ValidateTable(ValidateOptions* options);

}  // namespace oscar
