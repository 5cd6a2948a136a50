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
  DumpArguments dump;  // instead of the model
  RankOptions ranks;
  std::string scope = "auto";        // see ApplyScope
  std::string output;                // empty: into the artifact if it is of record, else beside it
  bool replace = false;              // the validation of record that is there
  std::vector<std::string> combine;  // reports to put on one page; nothing is validated then
  std::vector<std::string> table_rows;  // of the table that --combine makes
  std::string table_into;               // a file with marks where that table stands; or empty
  std::string csv;                      // a file for the arms' numbers; or empty
  std::string write;                    // a directory for WriteReportFiles; or empty
  std::vector<std::string> runtimes;    // whose caches are simulated
  OwnArmArguments own;                  // methods and arms that the user brings
  // Artifacts among them, opened.
  std::vector<std::shared_ptr<const Artifact>> others = {};
  std::vector<std::string> data;  // files; empty: the built-in evaluation text
  int64_t sequences = 0;          // 0: the scope's
  int64_t length = 0;             // tokens of each; 0: usual_length, or what the model supports
  int64_t usual_length = 4096;    // the scope's
  // Of arms with windows, and of groups; -1: as the artifact recommends.
  int64_t sink_tokens = -1, recent_tokens = -1, quant_group_size = -1;
  bool pack = true;
  std::string separator;
  ChatArguments chat;  // of rows with messages
  std::vector<int64_t>
      needle_lengths;  // empty: the longest the model supports, and a quarter of it
  OwnWordsArguments own_words;
  int64_t needle_samples = -1;         // of each task and length; 0: none; -1: the scope's
  std::vector<int64_t> needle_depths;  // percent
  std::vector<std::string> needle_tasks;
  int64_t tool_calls = 0;                  // samples of each task and length; 0: none
  std::vector<int64_t> tool_call_lengths;  // empty: as needle_lengths
  std::vector<std::string> tool_call_tasks;
  ContinuationArguments continuations;
  std::vector<std::string> methods;      // "all" or names; become arms as their authors use them
  std::vector<std::string> method_data;  // files; empty: the built-in calibration text
  int64_t method_tokens = 16384;
  int64_t prefill_tokens = 0;  // 0: a whole sequence
  std::string measure = "auto";
  std::string cache_dtype = "bf16";
  std::string gate;
  int64_t show_samples = 0;
  bool allow_other_model = false;
  std::string served, served_model;  // a server that is asked; empty: none, its only model
  int64_t served_tokens = 64;        // that it generates behind each prompt
  int64_t served_timeout = 300;      // seconds
  bool restart = false;              // discard what an interrupted run left
  bool kernels = false;
  int64_t k_bits = 2, v_bits = 2;  // of the cache that the kernels write
  ValidationOptions validation;
};

OptionTable ValidateTable(ValidateOptions* options);

}  // namespace oscar
