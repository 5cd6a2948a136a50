// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/capture/capture_options.h"

namespace oscar {

OptionTable CaptureTable(CaptureOptions* options) {
  OptionTable table("oscar-capture",
                    "Runs a model over text and writes the queries, keys, values, outputs and "
                    "scores of attention in every layer.");
  AddModelOption(table, &options->model);
  table.Add(&options->output, {.name = "output",
                               .help = "the dump to write, which must not exist yet: a file, or a "
                                       "directory with --format upstream",
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
               "which upstream's compute_kv_rotation.py reads; chunk 0 repeats the first 6 tokens, "
               "because that script skips chunk 0 as the server's warm-up",
       .main = true});
  table.Add(
      &options->scores,
      {.name = "scores",
       .help = "rows of attention weights to write, each with its log-sum-exp; rows: the last "
               "--score-rows queries of each sequence; all: every query; none: no rows; if not "
               "given: rows for hdf5, none for upstream, whose format has no place for them",
       .choices = {"rows", "all", "none"},
       .main = true});
  table.Add(
      &options->score_rows,
      {.name = "score_rows",
       .help = "for --scores rows: number of queries at the end of each sequence whose attention "
               "weights are written",
       .unit = "rows",
       .min = 1});
  table.Add(&options->logits,
            {.name = "logits", .help = "also write the final logits of every token"});
  table.Add(&options->deflate, {.name = "deflate",
                                .help = "compression level of hdf5, from 1 (fast) to 9 (small); "
                                        "any level is slower than most disks; 0: none",
                                .min = 0,
                                .max = 9});

  table.Group("Running");
  AddMachineOptions(table, &options->model);
  AddAllowOptions(table, &options->model);
  AddRankOptions(table, &options->ranks, /*plans=*/false);

  table.OnlyWith({"score_rows"}, "scores", "rows");
  table.OnlyWith({"deflate"}, "format", "hdf5");
  table.Example("oscar-capture Qwen/Qwen3-8B --tokens 8192 -o qwen3.h5",
                "captures attention on 8192 tokens of the built-in corpus");
  table.Example("oscar-calibrate --from qwen3.h5", "fits rotations to the dump, without the model");
  return table;
}

}  // namespace oscar
