// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/export/export_options.h"

#include <fmt/format.h>

namespace oscar {

OptionTable ExportTable(ExportOptions* options) {
  const ChoiceNames<Source> sources = {{"none", Source::kNone}, {"published", Source::kPublished}};
  ChoiceNames<Target> targets = {{"none", Target()}};
  for (const Exporter& exporter : AllExporters())
    targets.emplace_back(exporter.name, Target{.exporter = &exporter});
  targets.emplace_back("folded-checkpoint", Target{.copy = Copy::kFolded});
  targets.emplace_back("absorbed-checkpoint", Target{.copy = Copy::kAbsorbed});
  const ChoiceNames<Rotations> rotations = {
      {"auto", Rotations::kAuto}, {"chosen", Rotations::kChosen}, {"oscar", Rotations::kOscar}};
  const ChoiceNames<FoldScales> scales = {{"auto", FoldScales::kAuto},
                                          {"chosen", FoldScales::kChosen},
                                          {"exact", FoldScales::kExact},
                                          {"power_of_two", FoldScales::kPowerOfTwo}};
  OptionTable table(
      "oscar-export",
      "Writes the files that runtimes load, imports theirs, or shows what a file contains.");
  table.Add(&options->input,
            {.name = "input",
             .help = "an artifact; with --from: a directory with a K and a V file; with --inspect: "
                     "a .pt or .safetensors file, a checkpoint or an artifact",
             .scope = OptionScope::kRun,
             .positional = true,
             .path = true});
  table.Add(&options->output, {.name = "output",
                               .help = "directory to write, which must not exist",
                               .short_name = 'o',
                               .scope = OptionScope::kRun,
                               .path = true});
  table.AddChoice(
      &options->to, targets,
      {.name = "to",
       .help = "runtime or format to write for (--list describes each); folded-checkpoint: a copy "
               "of --model that computes the same, with keys that are easier to quantize in any "
               "runtime; absorbed-checkpoint: a copy whose v_proj rotates the values and whose "
               "o_proj rotates them back",
       .scope = OptionScope::kRun});
  table.Add(&options->folded, {.name = "folded",
                               .help = "write the choice for a folded copy of the model (--to "
                                       "folded-checkpoint), if there is one for the runtime",
                               .scope = OptionScope::kRun});
  table.AddChoice(&options->rotations, rotations,
                  {.name = "rotations",
                   .help = "which rotations are written: those that oscar-calibrate chose for the "
                           "runtime (chosen; always used for sglang-oct), or those of the paper "
                           "(oscar); auto: chosen if the artifact has a choice, else oscar",
                   .scope = OptionScope::kRun});
  table.AddChoice(&options->from, sources,
                  {.name = "from",
                   .help = "what to import; published: rotations, key means or moments in any "
                           "format that --list names, unchanged and unverified; INPUT may be "
                           "KEYS:VALUES, where one of the two may be 'none'",
                   .scope = OptionScope::kRun});
  table.Add(&options->inspect,
            {.name = "inspect",
             .help = "print what the input contains, or refuse it with exit code 3",
             .scope = OptionScope::kRun});
  table.Add(&options->list, {.name = "list",
                             .help = "print what --to can write, and which parts of an artifact's "
                                     "choice each target can hold",
                             .scope = OptionScope::kRun});
  table.Add(&options->merge_into, {.name = "merge_into",
                                   .help = "for --to llamacpp: the model's GGUF; a copy that "
                                           "includes the rotations is written under the same name",
                                   .scope = OptionScope::kRun});
  table.Add(&options->gguf,
            {.name = "gguf",
             .help = "for --to kv-mean-center: the model's GGUF; its layers are compared with the "
                     "artifact's, and its SHA-256 is stored in the file",
             .scope = OptionScope::kRun});
  table.Add(
      &options->model,
      {.name = "model",
       .help = "for --to folded-checkpoint, absorbed-checkpoint, kv-scales and modelopt: directory "
               "of the model, or ORG/NAME[@REVISION] in the local Hugging Face cache",
       .scope = OptionScope::kRun,
       .path = true});
  table.Add(&options->copy, {.name = "copy",
                             .help = "for --to kv-scales and modelopt: write the whole model with "
                                     "its scales, instead of only the files to add to a copy of it",
                             .scope = OptionScope::kRun});
  table.Add(&options->per_head, {.name = "per_head",
                                 .help = "for --to kv-scales: write a scale for each KV head, "
                                         "which vLLM's FlashAttention backend supports",
                                 .scope = OptionScope::kRun});
  table.Add(&options->bits,
            {.name = "bits",
             .help = "for --to oscar-torch: which of the budgets given to oscar-calibrate --bits "
                     "to write; for --to modelopt and trtllm: a budget that may differ from "
                     "oscar-calibrate's, in bits per value including scales, which needs no model "
                     "because the artifact holds the cost of every type; 0: as calibrated",
             .min = 0,
             .max = 16,
             .scope = OptionScope::kRun,
             .main = true});
  table.Add(&options->fold.runtime,
            {.name = "for",
             .help = "for --to folded-checkpoint and absorbed-checkpoint: the runtime that will "
                     "load the copy, as --inspect names it; if not given, the artifact's own "
                     "choice is used, or, for a folded copy, the first choice that needs one",
             .scope = OptionScope::kRun});
  table.Add(&options->device,
            {.name = "device",
             .help = "for --to folded-checkpoint and absorbed-checkpoint: device that computes the "
                     "logits of the model and its copy: auto, cpu, cuda or cuda:N",
             .scope = OptionScope::kRun});
  table.AddChoice(
      &options->fold.scales, scales,
      {.name = "fold_scales",
       .help = "which scales are folded into q and k: those that the artifact's automatic choice "
               "is made for (chosen), or scales fitted to its moments (exact, or power_of_two, "
               "which keeps the logits bit for bit; calibrate the copy); auto: chosen if there are "
               "any, else power_of_two; an absorbed copy gets none",
       .scope = OptionScope::kRun});
  table.Add(&options->fold_values,
            {.name = "fold_values",
             .help = "also fold balanced values into v_proj and o_proj; calibrate the copy",
             .scope = OptionScope::kRun});
  table.OnlyWith({"fold_values"}, "to", "folded-checkpoint");
  table.OnlyWith({"device", "for", "fold_scales"}, "to",
                 {"folded-checkpoint", "absorbed-checkpoint"});
  table.OnlyWith({"model", "copy"}, "to");
  table.OnlyWith({"per_head"}, "to", "kv-scales");
  table.OnlyWith({"folded", "rotations", "bits"}, "to");
  table.OnlyWith({"merge_into"}, "to", "llamacpp");
  table.OnlyWith({"gguf"}, "to", "kv-mean-center");
  table.NotWith({"output", "to", "from"}, "inspect", "--inspect writes nothing");
  table.NotWith({"input", "output", "to", "from", "inspect"}, "list", "--list reads no input");
  table.Example(
      "oscar-export Qwen3-8B-oscar --to folded-checkpoint --model Qwen/Qwen3-8B -o folded",
      "a copy of the model without outlier channels in its keys");
  table.Example(
      "oscar-export Qwen3-8B-oscar --to absorbed-checkpoint --model Qwen/Qwen3-8B -o absorbed",
      "a copy whose cache holds rotated values, for a runtime that has no rotations");
  table.Example("oscar-export Qwen3-8B-oscar --to sglang -o rotations",
                "the choice for OSCAR's SGLang, in the format that it loads");
  table.Example("oscar-export Qwen3-8B-oscar --to oscar-torch --bits 3 -o cache",
                "the choice that oscar-calibrate --bits 2,2.5,3,4 made at 3 bits");
  table.Example("oscar-export Qwen3-8B-oscar --to sglang --rotations oscar -o rotations",
                "the paper's rotations, which any artifact contains");
  table.Example(
      "oscar-export Qwen3-8B-oscar --to llamacpp --merge-into Qwen3-8B-Q4_K_M.gguf -o merged",
      "a copy of a model's GGUF with rotations for llama.cpp");
  table.Example("oscar-export Qwen3-8B-oscar --to kv-scales --model Qwen/Qwen3-8B -o scales",
                "scales of an FP8 cache for vLLM and SGLang");
  table.Example("oscar-export --list", "what can be written for each runtime");
  table.Example("oscar-export k_rotation_qqt_r_h_pbr.pt --inspect",
                "shows what a published file contains");
  table.Example(
      "oscar-export published/Qwen3-8B --from published -o imported",
      "imports published files unchanged, so that they can be written for other runtimes");
  table.ShowFirst({"output", "to", "folded", "rotations", "from", "inspect", "list", "merge_into",
                   "model", "for"});
  return table;
}

}  // namespace oscar
