// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Longer than 400 lines because it is one table.
//
// Reports store the keys and their meanings, so nothing may be renamed.
#include "tools/validate/validate_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "export/evaluate/gate.h"
#include "export/evaluate/tool_calls.h"
#include "export/simulate/cache_method.h"
#include "tools/validate/runtime_arms.h"

namespace oscar {
namespace {

std::string ArmHelp() {
  return fmt::format(
      "what is compared: METHOD[+clip[=RATIO]][+windows][+bf16]; METHOD is one of the {} that "
      "--methods help describes; or lists: default, published (every method as its authors use "
      "it), all "
      "(every method plain and with its modifiers), quick (bf16, the artifact's own choice, "
      "Hadamard, "
      "OSCAR as published, a random rotation); none: as --scope has it, unless --methods names "
      "some",
      CacheMethods().size());
}

std::string ToolCallTasksHelp() {
  return fmt::format("names of them; none: all of {}", fmt::join(ToolCallTaskNames(), ", "));
}

std::string GateHelp() {
  std::string names;
  for (const Measure& metric : GateMetrics())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", metric.name);
  return fmt::format(
      "limits on the headline arm, as kl<=0.05,ppl_ratio<=1.02; beyond one the exit code is 1. "
      "Metrics: {}",
      names);
}

void AddInputOptions(OptionTable& table, ValidateOptions* options) {
  table.Add(&options->artifact, {.name = "artifact",
                                 .help = "directory written by oscar-calibrate or oscar-export",
                                 .scope = OptionScope::kRun,
                                 .positional = true,
                                 .path = true});
  table.Add(&options->model.model,
            {.name = "model",
             .help = "directory of the model, or ORG/NAME[@REVISION] in the local "
                     "Hugging Face cache",
             .scope = OptionScope::kRun,
             .main = true,
             .path = true});
  table.Add(&options->output, {.name = "output",
                               .help = "write report.json and report.html to this new directory; "
                                       "empty: into the artifact if this is its validation of "
                                       "record, else beside it, in ARTIFACT-comparison",
                               .short_name = 'o',
                               .scope = OptionScope::kRun,
                               .main = true,
                               .path = true});
  table.Add(
      &options->scope,
      {.name = "scope",
       .help = "how much is measured where no option says so. quick: five arms on 4 sequences "
               "of 2048 tokens, no recall; normal: the default arms on 6 of 4096, the model's "
               "own words, recall; thorough: every method too, 16 sequences, 4 recall "
               "samples; auto: quick on a CPU, normal on a GPU",
       .choices = {"auto", "quick", "normal", "thorough"},
       .main = true});
  table.Add(&options->replace,
            {.name = "replace",
             .help = "replace the artifact's validation of record. A validation is of record if "
                     "its headline is the artifact's own choice, measured on the artifact's model "
                     "with its windows and groups, on at least 1024 scored tokens",
             .scope = OptionScope::kRun});

  table.Add(&options->csv, {.name = "csv",
                            .help = "also write the arms' numbers to this file, a row each; with "
                                    "--combine those of all reports, and no page without --output",
                            .scope = OptionScope::kRun});
  table.Add(&options->write,
            {.name = "write",
             .help = "also write what other tools read to this new directory: numbers.csv with "
                     "intervals, tokens, seed and commit; for every arm a results file of "
                     "lm-evaluation-harness and the lines of llama-perplexity --kl-divergence; the "
                     "page's charts as SVG; with --combine from finished reports",
             .scope = OptionScope::kRun,
             .path = true});

  AddRankOptions(table, &options->ranks, /*plans=*/false);
}

void AddTextOptions(OptionTable& table, ValidateOptions* options) {
  ValidationOptions& validation = options->validation;
  table.Group("Held-out text");
  table.Add(&options->data,
            {.name = "data",
             .help = "files to evaluate on, as for oscar-calibrate; text that the rotations were "
                     "fitted to is refused; none: the built-in evaluation text",
             .scope = OptionScope::kRun,
             .main = true,
             .path = true});
  table.Add(&options->sequences, {.name = "sequences",
                                  .help = "how many sequences of text; 0: as --scope has it",
                                  .min = 0,
                                  .main = true});
  table.Add(&options->length,
            {.name = "length",
             .help = "of each sequence; 0: as --scope has it, or what the model supports if that "
                     "is less",
             .unit = "tokens",
             .min = 0,
             .main = true});
  table.Add(&options->pack,
            {.name = "pack",
             .help = "join documents with the separator and cut them into sequences of exactly "
                     "--length; otherwise each document is a sequence of at most that"});
  AddSeparatorOption(table, &options->separator);
  AddChatOptions(table, &options->chat);
  table.Add(&validation.score_from,
            {.name = "score_from",
             .help = "first token of a sequence that counts for perplexity, if it is predicted "
                     "from a quantized one; auto: a quarter in",
             .unit = "tokens",
             .min = -1});
  table.Add(
      &options->show_samples,
      {.name = "show_samples",
       .help = "print the first N sequences and needles as they will be fed, and stop; 0: go on",
       .min = 0,
       .scope = OptionScope::kRun});

  table.Group("The model's own words");
  AddOwnWordsOptions(table, &options->own_words);
  table.Add(&options->restart, {.name = "restart",
                                .help = "draw them anew, in place of what an interrupted run left",
                                .scope = OptionScope::kRun});
}

void AddRecallOptions(OptionTable& table, ValidateOptions* options) {
  ValidationOptions& validation = options->validation;
  table.Group("Needles");
  table.Add(
      &options->needle_lengths,
      {.name = "needle_lengths",
       .help = "context lengths of the recall tasks; none: the longest the model supports, up "
               "to 8192, and a quarter of it",
       .unit = "tokens"});
  table.Add(
      &options->needle_samples,
      {.name = "needle_samples",
       .help = "samples of each task and length; 0: no recall tasks; auto: as --scope has it, "
               "at least one where an option or a gate is about recall",
       .min = -1});
  table.Add(&options->needle_depths,
            {.name = "needle_depths",
             .help = "depths at which needles are hidden, 0 to 100, each with samples of its own "
                     "and a row in the report; tasks with several answers spread theirs; none: "
                     "all are spread",
             .unit = "percent",
             .min = 0,
             .max = 100});
  table.Add(&options->needle_tasks, {.name = "needle_tasks",
                                     .help = "names of tasks; none: RULER's eight needle variants "
                                             "and variable tracking, and passages, which hides "
                                             "random tokens in the model's own words"});
  table.Add(&validation.needle_arms,
            {.name = "needle_arms",
             .help = "arms that the recall tasks run on, or all; none: bf16, naive, hadamard, the "
                     "headline, and those that --arms names by themselves"});

  table.Group("Tool calls");
  table.Add(&options->tool_calls,
            {.name = "tool_calls",
             .help = "conversations of each task and length that end in a call whose arguments "
                     "stand far back: exact match of arguments, and KL on their tokens, on the "
                     "arms of the recall tasks; 0: none",
             .min = 0});
  table.Add(&options->tool_call_lengths,
            {.name = "tool_call_lengths",
             .help = "of these conversations; none: the longest the model supports, up to 8192",
             .unit = "tokens"});
  table.Add(&options->tool_call_tasks, {.name = "tool_call_tasks", .help = ToolCallTasksHelp()});

  table.Group("Reasoning");
  AddContinuationOptions(table, &options->continuations);
}

void AddArmOptions(OptionTable& table, ValidateOptions* options) {
  ValidationOptions& validation = options->validation;
  table.Group("Arms");
  table.Add(&validation.arms, {.name = "arms", .help = ArmHelp(), .main = true});
  table.Add(&options->methods,
            {.name = "methods",
             .help = "methods to compare as their authors use them, with or without windows and "
                     "clipping; all: every one but the null controls; help: print what there is",
             .main = true});
  table.Add(
      &options->runtimes,
      {.name = "runtime",
       .help = "serving runtimes whose caches are simulated as they compute and store, beside "
               "the arms that they are meant to be; half of each text is their prompt unless "
               "--prefill-tokens says otherwise",
       .choices = RuntimeNames(),
       .main = true});
  table.Add(
      &options->own.rotations,
      {.name = "rotation",
       .help = "anybody's rotations beside ours, as NAME=FILE or NAME=KEYS:VALUES (one may be "
               "none): .pt of OSCAR's versions 1 to 3, .safetensors, or .npy of [layers, d, "
               "d] or [layers, heads, d, d]; the arm is NAME+clip+windows",
       .scope = OptionScope::kRun,
       .verbatim = true});
  table.Add(
      &options->own.other_artifacts,
      {.name = "other_artifact",
       .help = "another artifact of this model, as NAME=DIR, whose OSCAR and automatic choice "
               "are measured too; every method of it is an arm NAME:METHOD",
       .scope = OptionScope::kRun,
       .verbatim = true});
  table.Add(
      &options->own.quantized,
      {.name = "quantized",
       .help = "anybody's quantized keys and values of the dump --from, read back, as NAME=FILE: "
               "HDF5 with the dump's input_ids and layer/ID/k and v (c_kv of latent attention), "
               "in any float type, and an attribute bits_per_element; a copy of the dump with "
               "other k and v will do. Arms are NAME, which reads every row from the file, and "
               "NAME+windows. --cache-dtype compute compares with the dump as captured, not "
               "rounded to bf16",
       .scope = OptionScope::kRun,
       .verbatim = true});
  table.Add(&options->own.sweep,
            {.name = "sweep",
             .help = "the headline arm (OSCAR's, unless one is named) at each of these ratios, as "
                     "clip=FIRST:LAST:STEP; one alone is METHOD+clip=RATIO in --arms"});
  table.Add(&validation.headline_arm,
            {.name = "headline_arm",
             .help = "the arm that verdict and gate are about; empty: the artifact's own choice"});
  table.Add(&options->gate, {.name = "gate", .help = GateHelp(), .main = true});
  table.Add(
      &options->sink_tokens,
      {.name = "sink_tokens",
       .help = "first tokens that arms with windows keep exact; auto: as the artifact recommends",
       .unit = "tokens",
       .min = -1});
  table.Add(
      &options->recent_tokens,
      {.name = "recent_tokens",
       .help =
           "most recent tokens that arms with windows keep exact; auto: as the artifact recommends",
       .unit = "tokens",
       .min = -1});
  table.Add(
      &options->quant_group_size,
      {.name = "quant_group_size",
       .help = "values that share a scale; 0: the whole head; auto: as the artifact recommends",
       .unit = "values",
       .min = -1});
  table.Add(&validation.methods.k_clip,
            {.name = "k_clip",
             .help = "clip ratio for keys, of methods that bring none (OSCAR brings its own)",
             .min = 0,
             .max = 1});
  table.Add(&validation.methods.v_clip,
            {.name = "v_clip", .help = "the same for values", .min = 0, .max = 1});

  table.Add(
      &options->prefill_tokens,
      {.name = "prefill_tokens",
       .help = "tokens of a sequence that are written at once before the others come one at a "
               "time, to methods that write them differently; 0: all",
       .unit = "tokens",
       .min = 0});
  table.Add(
      &options->method_data,
      {.name = "method_data",
       .help = "files of text, as for oscar-calibrate, that methods are fitted to whose rules "
               "come from tokens; none: the built-in calibration text",
       .scope = OptionScope::kRun,
       .path = true});
  table.Add(&options->method_tokens, {.name = "method_tokens",
                                      .help = "how much of it; read only if there is such a method",
                                      .unit = "tokens",
                                      .min = 1});
}

void AddMeasurementOptions(OptionTable& table, ValidateOptions* options) {
  ValidationOptions& validation = options->validation;
  table.Group("Measurement");
  table.Add(&validation.rows_per_sequence,
            {.name = "rows",
             .help = "query rows of each sequence on which attention is compared, spread over its "
                     "length; 0: all; auto: as --scope has it",
             .min = -1});
  table.Add(&validation.local_only,
            {.name = "local_only",
             .help = "errors at the model's own queries, keys and values alone; no perplexity, no "
                     "needles"});
  table.Add(
      &options->measure,
      {.name = "measure",
       .help = "precision of attention errors; auto: f64 on a CPU, f32 on a GPU and in the quick "
               "scope, where the methods compute in it too",
       .choices = {"auto", "f64", "f32"}});
  table.Add(&options->cache_dtype,
            {.name = "cache_dtype",
             .help = "what queries, keys and values are rounded to before they are stored",
             .choices = {"bf16", "compute"}});
  table.Add(&validation.resamples,
            {.name = "bootstrap", .help = "resamples of the 95 % intervals", .min = 1});
  table.Add(&validation.seed, {.name = "seed", .help = "of needles, random rotations, bootstrap"});

  table.Group("Kernels");
  table.Add(&options->kernels,
            {.name = "kernels",
             .help = "send the texts' queries, keys and values through the CUDA write and decode "
                     "kernels too: codes must be the codec's, or the exit code is 1"});
  table.Add(&options->k_bits, {.name = "k_bits",
                               .help = "bits of a key in the cache that --kernels writes",
                               .min = 2,
                               .max = 4});
  table.Add(&options->v_bits,
            {.name = "v_bits", .help = "the same of a value", .min = 2, .max = 4});

  table.Group("Server");
  table.Add(&options->served,
            {.name = "served",
             .help = "address of a server of the model (vLLM, SGLang, llama.cpp, or another one "
                     "with /v1/completions and logprobs): says which cache it behaves like, by "
                     "what it generates behind --sequences prompts of --length tokens (1024 "
                     "unless given); exit code 1 unless it is this artifact's at 95 % confidence; "
                     "-o is then a JSON file. A key is read from OPENAI_API_KEY",
             .scope = OptionScope::kRun,
             .main = true});
  table.Add(
      &options->served_model,
      {.name = "served_model",
       .help = "the model as the server names it; empty: the only one that it has, or its first",
       .scope = OptionScope::kRun});
  table.Add(&options->served_tokens, {.name = "served_tokens",
                                      .help = "what the server generates behind each prompt",
                                      .unit = "tokens",
                                      .min = 2,
                                      .scope = OptionScope::kRun});
  table.Add(&options->served_timeout, {.name = "served_timeout",
                                       .help = "how long one answer may take",
                                       .unit = "seconds",
                                       .min = 1,
                                       .scope = OptionScope::kRun});

  AddDumpOptions(table, &options->dump);
}

void AddOtherOptions(OptionTable& table, ValidateOptions* options) {
  table.Group("Machine");
  AddMachineOptions(table, &options->model);
  AddAllowOptions(table, &options->model);
  table.Add(&options->allow_other_model,
            {.name = "allow_other_model",
             .help = "validate on a model other than the one the artifact was made from (a "
                     "fine-tune, a twin); the report says so"});

  table.Group("Combine");
  table.Add(
      &options->combine,
      {.name = "combine",
       .help = "put these reports (files, or directories with a report.json) of several models on "
               "one page, in the new directory --output; nothing is validated",
       .scope = OptionScope::kRun,
       .main = true,
       .path = true});
  table.Add(&options->table_rows,
            {.name = "table_rows",
             .help = "--combine: arms that its table in Markdown shows first, in this order",
             .scope = OptionScope::kRun});
  table.Add(&options->table_into,
            {.name = "table_into",
             .help = "--combine: a file of Markdown, a README, whose table is replaced by it, "
                     "between two marks",
             .scope = OptionScope::kRun});
}

// Adds rules against options that do not make sense together, with the reasons.
void AddRules(OptionTable& table) {
  table.OnlyWith({"table_rows", "table_into"}, "combine");
  for (const Option& option : table.options()) {
    const std::string& name = option.spec.name;
    if (option.group != "Combine" && name != "output" && name != "csv" && name != "write")
      table.NotWith({option.spec.name}, "combine", "it reads finished reports alone");
  }
  table.NotWith({"data", "sequences", "length", "pack", "separator", "chat_template",
                 "template_var", "date", "show_samples"},
                "from", "the dump holds its data");
  table.NotWith({"needle_lengths", "needle_samples", "needle_depths", "needle_tasks", "tool_calls",
                 "reasoning", "score_from", "method_data", "method_tokens", "unknown_config",
                 "allow_other_model", "local_only"},
                "from", "attention alone is measured on a dump");
  table.NotWith({"needle_lengths", "needle_samples", "needle_depths", "needle_tasks", "tool_calls",
                 "reasoning", "score_from"},
                "local_only", "attention alone is measured");
  table.NotWith({"needle_lengths", "needle_depths", "needle_tasks"}, "needle_samples", "", 0);
  table.OnlyWith({"tool_call_lengths", "tool_call_tasks"}, "tool_calls");
  table.OnlyWith({"quantized"}, "from");
  table.OnlyWith({"separator"}, "pack");
  table.OnlyWith({"served_model", "served_tokens", "served_timeout"}, "served");
  table.NotWith(
      {"replace", "csv", "methods", "rotation", "other_artifact", "sweep", "gate", "local_only",
       "kernels", "from", "quantized", "self_generate", "needle_lengths", "needle_samples",
       "needle_tasks", "tool_calls", "reasoning", "score_from", "prefill_tokens"},
      "served", "the server is compared with caches of the artifact, and nothing else");
  table.OnlyWith({"k_bits", "v_bits"}, "kernels");
}

}  // namespace

OptionTable ValidateTable(ValidateOptions* options) {
  options->validation.rows_per_sequence = -1;  // the scope decides
  OptionTable table(
      "oscar-validate",
      "Measures what an artifact's rotations do to the model's attention, predictions "
      "and recall, beside other methods and null controls, and writes the report.");
  AddInputOptions(table, options);
  AddTextOptions(table, options);
  AddRecallOptions(table, options);
  AddArmOptions(table, options);
  AddMeasurementOptions(table, options);
  AddOtherOptions(table, options);
  AddRules(table);
  table.Example(
      "oscar-validate Qwen3-8B-oscar --model Qwen/Qwen3-8B --gate 'kl<=0.05,ppl_ratio<=1.02'",
      "report in the artifact, exit code 1 if a limit is broken");
  table.Example("oscar-validate Qwen3-8B-oscar --model Qwen/Qwen3-8B --runtime sglang vllm",
                "what is lost between the method and the servers");
  table.Example(
      "oscar-validate Qwen3-8B-oscar --model Qwen/Qwen3-8B --rotation mine=k.npy:v.npy -o report",
      "somebody's rotations beside the artifact's");
  table.Example(
      "oscar-validate Qwen3-8B-oscar --from dump.h5 --quantized mine=quantized.h5 -o report",
      "somebody's quantizer on the keys and values of oscar-capture");
  table.Example("oscar-validate Qwen3-8B-oscar --model Qwen/Qwen3-8B --served http://gpu:8000",
                "whether a running server reads its cache as the artifact says");
  table.Example("oscar-validate --combine Qwen3-8B-oscar --write numbers",
                "a finished report for lm-eval's tools, llama-perplexity's users and papers");
  return table;
}

}  // namespace oscar
