// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/capture/capture_options.h"

namespace oscar {

OptionTable CaptureTable(CaptureOptions* options) {
  OptionTable table("oscar-capture",
                    "Runs a model over text and writes what its attention sees: queries, keys, "
                    "values, output and scores of every layer.");
  AddModelOption(table, &options->model);
  table.Add(&options->output, {.name = "output",
                               .help = "the dump, which must not exist: a file, or a directory "
                                       "with --format upstream",
                               .short_name = 'o',
                               .scope = OptionScope::kRun,
                               .main = true,
                               .path = true});

  AddDataOptions(table, &options->data);

  table.Group("Dump");
  table.AddChoice(
      &options->format,
      ChoiceNames<CaptureFormat>{{"hdf5", CaptureFormat::kHdf5},
                                 {"upstream", CaptureFormat::kUpstream}},
      {.name = "format",
       .help = "hdf5: one file with everything; upstream: layer_<id>/{q,k,v,seq_lens}/<chunk>.pt, "
               "which upstream's compute_kv_rotation.py reads; its chunk 0 repeats the first 6 "
               "tokens, because that script leaves chunk 0 out as the server's warm-up",
       .main = true});
  table.Add(&options->scores,
            {.name = "scores",
             .help = "softmax rows, and the log-sum-exp of every row: rows: of the last "
                     "--score-rows queries of each sequence; all: of every query; none; if not "
                     "given: rows in hdf5 (upstream's format has none)",
             .choices = {"rows", "all", "none"},
             .main = true});
  table.Add(&options->score_rows, {.name = "score_rows",
                                   .help = "query rows of each sequence that --scores rows takes",
                                   .unit = "rows",
                                   .min = 1});
  table.Add(&options->logits,
            {.name = "logits", .help = "write the final logits of every token too"});
  table.Add(&options->deflate,
            {.name = "deflate",
             .help = "compression of hdf5, 1 fast to 9 small, slower than most disks; 0: none",
             .min = 0,
             .max = 9});

  table.Group("Running");
  AddMachineOptions(table, &options->model);
  AddAllowOptions(table, &options->model);
  AddRankOptions(table, &options->ranks, /*plans=*/false);

  table.OnlyWith({"score_rows"}, "scores", "rows");
  table.OnlyWith({"deflate"}, "format", "hdf5");
  table.Example("oscar-capture Qwen/Qwen3-8B --tokens 8192 -o qwen3.h5",
                "writes what attention sees in 8192 tokens of the built-in corpus");
  table.Example("oscar-calibrate --from qwen3.h5", "fits rotations to it, without the model");
  return table;
}

}  // namespace oscar
