// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Longer than 400 lines because it is the one table of all options. Reports store the options' keys
// and values, so no key or meaning may change.
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
      "configurations to measure, each METHOD[+clip[=RATIO]][+windows][+bf16]; METHOD is one of "
      "the {} that --methods help describes; or one of the lists default, published (every method "
      "as its authors use it), all (every method plain and with its modifiers), quick (bf16, the "
      "artifact's own choice, Hadamard, OSCAR as published, a random rotation); by default those "
      "of --scope, unless --methods names some",
      CacheMethods().size());
}

std::string ToolCallTasksHelp() {
  return fmt::format("names of the tool-call tasks; by default all of {}",
                     fmt::join(ToolCallTaskNames(), ", "));
}

std::string GateHelp() {
  std::string names;
  for (const Measure& metric : GateMetrics())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", metric.name);
  return fmt::format(
      "limits on the headline configuration, such as kl<=0.05,ppl_ratio<=1.02; the exit code is 1 "
      "if one is exceeded; kl is attention-KL, token_kl is next-token KL. Metrics: {}",
      names);
}

void AddInputOptions(OptionTable& table, ValidateOptions* options) {
  table.Add(&options->artifact, {.name = "artifact",
                                 .help = "directory written by oscar-calibrate or oscar-export",
                                 .scope = OptionScope::kRun,
                                 .positional = true,
                                 .path = true});
  table.Add(&options->model.model, {.name = "model",
                                    .help = kModelHelp,
                                    .scope = OptionScope::kRun,
                                    .main = true,
                                    .path = true});
  table.Add(
      &options->output,
      {.name = "output",
       .help =
           "write report.json and report.html to this new directory; empty: write them into the "
           "artifact if this is its validation of record, else to ARTIFACT-comparison next to it",
       .short_name = 'o',
       .scope = OptionScope::kRun,
       .main = true,
       .path = true});
  table.Add(
      &options->scope,
      {.name = "scope",
       .help = "how much is measured unless other options say so. quick: five configurations on 4 "
               "sequences of 2048 tokens, no recall; normal: the default configurations on 6 "
               "sequences of 4096, the model's own words, recall; thorough: also every method, 16 "
               "sequences, 4 recall samples; auto: quick on a CPU, normal on a GPU",
       .choices = {"auto", "quick", "normal", "thorough"},
       .main = true});
  table.Add(
      &options->replace,
      {.name = "replace",
       .help = "replace the artifact's validation of record. A validation counts as the validation "
               "of record if its headline is the artifact's own choice, measured on the artifact's "
               "model with its windows and groups, on at least 1024 scored tokens",
       .scope = OptionScope::kRun});

  table.Add(&options->csv,
            {.name = "csv",
             .help = "also write the numbers of the configurations to this file, one row each; "
                     "with --combine, those of all reports, and no page unless --output is given",
             .scope = OptionScope::kRun});
  table.Add(&options->write,
            {.name = "write",
             .help = "also write files for other tools to this new directory: numbers.csv with "
                     "intervals, tokens, seed and commit; for every configuration, a results file "
                     "of lm-evaluation-harness and the lines of llama-perplexity --kl-divergence; "
                     "the page's charts as SVG; with --combine, from finished reports",
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
                     "fitted to is refused; by default, the built-in evaluation text is used",
             .scope = OptionScope::kRun,
             .main = true,
             .path = true});
  table.Add(&options->sequences, {.name = "sequences",
                                  .help = "number of text sequences; 0: as --scope sets it",
                                  .min = 0,
                                  .main = true});
  table.Add(&options->length, {.name = "length",
                               .help = "length of each sequence; 0: as --scope sets it, or what "
                                       "the model supports if that is less",
                               .unit = "tokens",
                               .min = 0,
                               .main = true});
  table.Add(&options->pack,
            {.name = "pack",
             .help = "join documents with the separator and cut them into sequences of exactly "
                     "--length; otherwise each document is a sequence of at most that length"});
  AddSeparatorOption(table, &options->separator);
  AddChatOptions(table, &options->chat);
  table.Add(&validation.score_from,
            {.name = "score_from",
             .help = "first position of a sequence that counts for perplexity, if its token is "
                     "predicted from a quantized token; auto: a quarter of the sequence",
             .unit = "tokens",
             .min = -1});
  table.Add(&options->show_samples, {.name = "show_samples",
                                     .help = "print the first N sequences and needles as the model "
                                             "will see them, and stop; 0: do not print any",
                                     .min = 0,
                                     .scope = OptionScope::kRun});

  table.Group("The model's own words");
  AddOwnWordsOptions(table, &options->own_words);
  table.Add(
      &options->restart,
      {.name = "restart",
       .help = "generate the model's own words again instead of continuing an interrupted run",
       .scope = OptionScope::kRun});
}

void AddRecallOptions(OptionTable& table, ValidateOptions* options) {
  ValidationOptions& validation = options->validation;
  table.Group("Needles");
  table.Add(&options->needle_lengths,
            {.name = "needle_lengths",
             .help = "context lengths of the recall tasks; by default the longest that the model "
                     "supports (at most 8192) and a quarter of it",
             .unit = "tokens"});
  table.Add(&options->needle_samples,
            {.name = "needle_samples",
             .help = "samples of each task and length; 0: no recall tasks; auto: as --scope sets "
                     "it, but at least one if an option or a gate needs recall",
             .min = -1});
  table.Add(&options->needle_depths,
            {.name = "needle_depths",
             .help = "depths at which needles are hidden, from 0 to 100, each with its own samples "
                     "and its own row in the report; tasks with several answers spread their "
                     "needles; by default all needles are spread",
             .unit = "percent",
             .min = 0,
             .max = 100});
  table.Add(
      &options->needle_tasks,
      {.name = "needle_tasks",
       .help = "names of the recall tasks; by default RULER's eight needle variants and variable "
               "tracking, and passages, which hides random tokens in the model's own words"});
  table.Add(&validation.needle_arms,
            {.name = "needle_arms",
             .help = "configurations that the recall tasks run on, or all; by default bf16, naive, "
                     "hadamard, the headline, and those that --arms names individually"});

  table.Group("Tool calls");
  table.Add(
      &options->tool_calls,
      {.name = "tool_calls",
       .help = "number of conversations per task and length that end in a call whose arguments "
               "appear far earlier in the context; measures exact match of the arguments and KL on "
               "their tokens, for the configurations of the recall tasks; 0: none",
       .min = 0});
  table.Add(&options->tool_call_lengths,
            {.name = "tool_call_lengths",
             .help = "lengths of the tool-call conversations; by default the longest that the "
                     "model supports, at most 8192",
             .unit = "tokens"});
  table.Add(&options->tool_call_tasks, {.name = "tool_call_tasks", .help = ToolCallTasksHelp()});

  table.Group("Reasoning");
  AddContinuationOptions(table, &options->continuations);
}

void AddArmOptions(OptionTable& table, ValidateOptions* options) {
  ValidationOptions& validation = options->validation;
  table.Group("Configurations");
  table.Add(&validation.arms, {.name = "arms", .help = ArmHelp(), .main = true});
  table.Add(
      &options->methods,
      {.name = "methods",
       .help =
           "methods to compare as their authors use them, with or without windows and clipping; "
           "all: every method except the null controls; help: print a list of the methods",
       .main = true});
  table.Add(&options->runtimes,
            {.name = "runtime",
             .help = "serving runtimes to simulate exactly as they compute and store; half of each "
                     "text is the prompt unless --prefill-tokens sets its length; "
                     "runtime_NAME_auto loads the choice for NAME, _lm writes codes with "
                     "SGLANG_LLOYD_MAX=1, and a name without either loads the rotations of OSCAR's "
                     "paper",
             .choices = RuntimeNames(),
             .main = true});
  table.Add(
      &options->own.rotations,
      {.name = "rotation",
       .help = "other rotations to compare with, as NAME=FILE or NAME=KEYS:VALUES (one may be "
               "'none'): .pt of OSCAR's versions 1 to 3, .safetensors, or .npy of [layers, d, d] "
               "or [layers, heads, d, d]; the configuration is NAME+clip+windows",
       .scope = OptionScope::kRun,
       .verbatim = true});
  table.Add(
      &options->own.other_artifacts,
      {.name = "other_artifact",
       .help = "another artifact of this model, as NAME=DIR; its OSCAR rotations and automatic "
               "choice are also measured, and each of its methods can be named as NAME:METHOD",
       .scope = OptionScope::kRun,
       .verbatim = true});
  table.Add(
      &options->own.quantized,
      {.name = "quantized",
       .help = "quantized keys and values of another program, for the dump given with --from, as "
               "NAME=FILE: HDF5 with the dump's input_ids and layer/ID/k and v (c_kv for latent "
               "attention) in any float type, and an attribute bits_per_element; a copy of the "
               "dump with other k and v will do. The configurations are NAME, which reads every "
               "row from the file, and NAME+windows. --cache-dtype compute compares with the dump "
               "as captured, not rounded to bf16",
       .scope = OptionScope::kRun,
       .verbatim = true});
  table.Add(&options->own.sweep,
            {.name = "sweep",
             .help = "also measure the headline configuration (OSCAR's, unless one is named) at "
                     "each of these clip ratios, given as clip=FIRST:LAST:STEP; for a single "
                     "ratio, give METHOD+clip=RATIO to --arms"});
  table.Add(&validation.headline_arm, {.name = "headline_arm",
                                       .help = "the configuration that the verdict and the gate "
                                               "judge; empty: the artifact's own choice"});
  table.Add(&options->gate, {.name = "gate", .help = GateHelp(), .main = true});
  table.Add(&options->sink_tokens, {.name = "sink_tokens",
                                    .help = "number of first tokens that configurations with "
                                            "windows keep exact; auto: as the artifact recommends",
                                    .unit = "tokens",
                                    .min = -1});
  table.Add(&options->recent_tokens,
            {.name = "recent_tokens",
             .help = "number of most recent tokens that configurations with windows keep exact; "
                     "auto: as the artifact recommends",
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
             .help = "clip ratio of keys for methods without their own (OSCAR has its own)",
             .min = 0,
             .max = 1});
  table.Add(&validation.methods.v_clip,
            {.name = "v_clip",
             .help = "clip ratio of values for methods without their own",
             .min = 0,
             .max = 1});

  table.Add(
      &options->prefill_tokens,
      {.name = "prefill_tokens",
       .help = "number of tokens of a sequence that are written at once; the others follow one at "
               "a time, which matters for methods that write a prompt differently; 0: all",
       .unit = "tokens",
       .min = 0});
  table.Add(&options->method_data,
            {.name = "method_data",
             .help = "files of text, as for oscar-calibrate, for methods that are fitted to "
                     "tokens; by default the built-in calibration text",
             .scope = OptionScope::kRun,
             .path = true});
  table.Add(&options->method_tokens,
            {.name = "method_tokens",
             .help = "how much of --method-data to use; it is read only if a method needs it",
             .unit = "tokens",
             .min = 1});
}

void AddMeasurementOptions(OptionTable& table, ValidateOptions* options) {
  ValidationOptions& validation = options->validation;
  table.Group("Measurement");
  table.Add(&validation.rows_per_sequence,
            {.name = "rows",
             .help = "query rows of each sequence on which attention is compared, spread over its "
                     "length; 0: all; auto: as --scope sets it",
             .min = -1});
  table.Add(&validation.local_only, {.name = "local_only",
                                     .help = "measure only the errors at the model's own queries, "
                                             "keys and values; no perplexity, no needles"});
  table.Add(&options->measure,
            {.name = "measure",
             .help = "precision of attention errors; auto: f64 on a CPU, f32 on a GPU and in the "
                     "quick scope, where the methods also compute in f32",
             .choices = {"auto", "f64", "f32"}});
  table.Add(&options->cache_dtype,
            {.name = "cache_dtype",
             .help = "type that queries, keys and values are rounded to before they are stored",
             .choices = {"bf16", "compute"}});
  table.Add(&validation.resamples, {.name = "bootstrap",
                                    .help = "number of bootstrap resamples for the 95 % intervals",
                                    .min = 1});
  table.Add(&validation.seed,
            {.name = "seed", .help = "seed for needles, random rotations and the bootstrap"});

  table.Group("Kernels");
  table.Add(&options->kernels,
            {.name = "kernels",
             .help = "also send the texts' queries, keys and values through the CUDA write and "
                     "decode kernels; the exit code is 1 unless their codes equal the codec's"});
  table.Add(&options->k_bits, {.name = "k_bits",
                               .help = "bits of keys in the cache that --kernels writes",
                               .min = 2,
                               .max = 4});
  table.Add(&options->v_bits, {.name = "v_bits",
                               .help = "bits of values in the cache that --kernels writes",
                               .min = 2,
                               .max = 4});

  table.Group("Server");
  table.Add(&options->served,
            {.name = "served",
             .help = "address of a server of the model (vLLM, SGLang, llama.cpp, or another one "
                     "with /v1/completions and logprobs): reports which cache it behaves like, "
                     "from the text it generates after --sequences prompts of --length tokens "
                     "(1024 unless given); the exit code is 1 unless it is this artifact's cache "
                     "at 95 % confidence; -o then names a JSON file. OPENAI_API_KEY may hold a key",
             .scope = OptionScope::kRun,
             .main = true});
  table.Add(&options->served_model,
            {.name = "served_model",
             .help = "name of the model on the server; empty: the server's only or first model",
             .scope = OptionScope::kRun});
  table.Add(&options->served_tokens,
            {.name = "served_tokens",
             .help = "number of tokens that the server generates after each prompt",
             .unit = "tokens",
             .min = 2,
             .scope = OptionScope::kRun});
  table.Add(&options->served_timeout, {.name = "served_timeout",
                                       .help = "time limit for one answer",
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
             .help = "validate on a model other than the one the artifact was made from (such as a "
                     "fine-tune); the report says so"});

  table.Group("Combine");
  table.Add(
      &options->combine,
      {.name = "combine",
       .help = "put these reports of several models (files, or directories with a report.json) on "
               "one page in the new directory --output, without validating anything",
       .scope = OptionScope::kRun,
       .main = true,
       .path = true});
  table.Add(
      &options->table_rows,
      {.name = "table_rows",
       .help = "with --combine: configurations that its Markdown table shows first, in this order",
       .scope = OptionScope::kRun});
  table.Add(&options->table_into, {.name = "table_into",
                                   .help = "with --combine: Markdown file, such as a README, in "
                                           "which the table between two marks is replaced",
                                   .scope = OptionScope::kRun});
}

// Adds rules against options that contradict each other, with the reasons.
void AddRules(OptionTable& table) {
  table.OnlyWith({"table_rows", "table_into"}, "combine");
  for (const Option& option : table.options()) {
    const std::string& name = option.spec.name;
    if (option.group != "Combine" && name != "output" && name != "csv" && name != "write")
      table.NotWith({option.spec.name}, "combine", "it only reads finished reports");
  }
  table.NotWith({"data", "sequences", "length", "pack", "separator", "chat_template",
                 "template_var", "date", "show_samples"},
                "from", "the dump contains its own data");
  table.NotWith({"needle_lengths", "needle_samples", "needle_depths", "needle_tasks", "tool_calls",
                 "reasoning", "score_from", "method_data", "method_tokens", "unknown_config",
                 "allow_other_model", "local_only"},
                "from", "only attention can be measured on a dump");
  table.NotWith({"needle_lengths", "needle_samples", "needle_depths", "needle_tasks", "tool_calls",
                 "reasoning", "score_from"},
                "local_only", "only attention is measured");
  table.NotWith({"needle_lengths", "needle_depths", "needle_tasks"}, "needle_samples", "", 0);
  table.OnlyWith({"tool_call_lengths", "tool_call_tasks"}, "tool_calls");
  table.OnlyWith({"quantized"}, "from");
  table.OnlyWith({"separator"}, "pack");
  table.OnlyWith({"served_model", "served_tokens", "served_timeout"}, "served");
  table.NotWith(
      {"replace", "csv", "methods", "rotation", "other_artifact", "sweep", "gate", "local_only",
       "kernels", "from", "quantized", "self_generate", "needle_lengths", "needle_samples",
       "needle_tasks", "tool_calls", "reasoning", "score_from", "prefill_tokens"},
      "served", "the server is only compared with caches of the artifact");
  table.OnlyWith({"k_bits", "v_bits"}, "kernels");
}

}  // namespace

OptionTable ValidateTable(ValidateOptions* options) {
  options->validation.rows_per_sequence = -1;  // the scope decides
  OptionTable table(
      "oscar-validate",
      "Measures what an artifact's rotations do to the model's attention, predictions and recall, "
      "compared with other methods and null controls, and writes a report.");
  AddInputOptions(table, options);
  AddTextOptions(table, options);
  AddRecallOptions(table, options);
  AddArmOptions(table, options);
  AddMeasurementOptions(table, options);
  AddOtherOptions(table, options);
  AddRules(table);
  table.Example(
      "oscar-validate Qwen3-8B-oscar --model Qwen/Qwen3-8B --gate 'kl<=0.05,ppl_ratio<=1.02'",
      "writes the report into the artifact; exit code 1 if a limit is exceeded");
  table.Example("oscar-validate Qwen3-8B-oscar --model Qwen/Qwen3-8B --runtime sglang vllm",
                "measures what the servers lose compared with the method");
  table.Example(
      "oscar-validate Qwen3-8B-oscar --model Qwen/Qwen3-8B --rotation mine=k.npy:v.npy -o report",
      "compares other rotations with the artifact's");
  table.Example(
      "oscar-validate Qwen3-8B-oscar --from dump.h5 --quantized mine=quantized.h5 -o report",
      "measures another quantizer on the keys and values of oscar-capture");
  table.Example("oscar-validate Qwen3-8B-oscar --model Qwen/Qwen3-8B --served http://gpu:8000",
                "checks whether a running server uses its cache as the artifact says");
  table.Example(
      "oscar-validate --combine Qwen3-8B-oscar --write numbers",
      "converts a finished report for lm-eval's tools, llama-perplexity's users and papers");
  return table;
}

}  // namespace oscar
