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
  OptionTable table("oscar-export",
                    "Writes the files that runtimes load from an artifact, imports theirs, or "
                    "shows what a file holds.");
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
       .help = "runtime or format to write for (--list says what each is given); "
               "folded-checkpoint: a copy of --model that computes the same with keys that are "
               "easier to quantize in any runtime; absorbed-checkpoint: one whose values are "
               "rotated, by its v_proj and back by its o_proj",
       .scope = OptionScope::kRun});
  table.Add(&options->folded, {.name = "folded",
                               .help = "write what was chosen for a folded copy of the model (--to "
                                       "folded-checkpoint), where the runtime has such a choice",
                               .scope = OptionScope::kRun});
  table.AddChoice(&options->rotations, rotations,
                  {.name = "rotations",
                   .help = "which rotations are written: what oscar-calibrate chose for the "
                           "runtime (chosen; sglang-oct always), or those of the paper "
                           "(oscar); auto: chosen if the artifact has a choice, else oscar",
                   .scope = OptionScope::kRun});
  table.AddChoice(&options->from, sources,
                  {.name = "from",
                   .help = "what to import; published: rotations, key means "
                           "or moments of any format that --list names, as they are and "
                           "unverified; INPUT may be KEYS:VALUES, of which one may be none",
                   .scope = OptionScope::kRun});
  table.Add(&options->inspect, {.name = "inspect",
                                .help = "print what the input holds, or refuse it with exit code 3",
                                .scope = OptionScope::kRun});
  table.Add(&options->list,
            {.name = "list",
             .help = "print what --to can write and what of an artifact's choice each can carry",
             .scope = OptionScope::kRun});
  table.Add(&options->merge_into,
            {.name = "merge_into",
             .help = "of --to llamacpp: a model's GGUF; a copy of it with the rotations is written "
                     "under its name",
             .scope = OptionScope::kRun});
  table.Add(
      &options->gguf,
      {.name = "gguf",
       .help = "of --to kv-mean-center: the model's GGUF, whose layers are compared and whose "
               "SHA-256 goes into the file",
       .scope = OptionScope::kRun});
  table.Add(
      &options->model,
      {.name = "model",
       .help = "of --to folded-checkpoint, absorbed-checkpoint, kv-scales and modelopt: directory "
               "of the model, or ORG/NAME[@REVISION] in the local Hugging Face cache",
       .scope = OptionScope::kRun,
       .path = true});
  table.Add(&options->copy, {.name = "copy",
                             .help = "of --to kv-scales and modelopt: the whole model with its "
                                     "scales instead of files to lay over a copy",
                             .scope = OptionScope::kRun});
  table.Add(&options->per_head,
            {.name = "per_head",
             .help = "of --to kv-scales: a scale for each KV head, which vLLM's "
                     "FlashAttention takes",
             .scope = OptionScope::kRun});
  table.Add(&options->bits,
            {.name = "bits",
             .help = "of --to oscar-torch: the choice at that budget, one of those that "
                     "oscar-calibrate --bits was given as a list; of --to modelopt and trtllm: "
                     "another budget than oscar-calibrate's, bits per value with scales; needs no "
                     "model, because the artifact holds what every type costs; 0: as calibrated",
             .min = 0,
             .max = 16,
             .scope = OptionScope::kRun});
  table.Add(
      &options->fold.runtime,
      {.name = "for",
       .help = "of --to folded-checkpoint and absorbed-checkpoint: the runtime that will load the "
               "copy, as --inspect names it; if not given, the artifact's own choice is used, or "
               "for a folded copy the first choice that needs one",
       .scope = OptionScope::kRun});
  table.Add(&options->device,
            {.name = "device",
             .help = "of --to folded-checkpoint and absorbed-checkpoint: what computes the logits "
                     "of model and copy: auto, cpu, cuda or cuda:N",
             .scope = OptionScope::kRun});
  table.AddChoice(&options->fold.scales, scales,
                  {.name = "fold_scales",
                   .help = "what is folded into q and k: the scales that the artifact's automatic "
                           "choice is made for (chosen), or fitted to its moments (exact, "
                           "power_of_two: the logits stay bit for bit; calibrate the copy); auto: "
                           "chosen if there are any, else power_of_two, and of an absorbed copy "
                           "none",
                   .scope = OptionScope::kRun});
  table.Add(&options->fold_values,
            {.name = "fold_values",
             .help = "fold balanced values into v_proj and o_proj too; calibrate the copy",
             .scope = OptionScope::kRun});
  table.OnlyWith({"fold_values"}, "to", "folded-checkpoint");
  table.OnlyWith({"device", "for", "fold_scales"}, "to",
                 {"folded-checkpoint", "absorbed-checkpoint"});
  table.OnlyWith({"model", "copy"}, "to");
  table.OnlyWith({"per_head"}, "to", "kv-scales");
  table.OnlyWith({"folded", "rotations", "bits"}, "to");
  table.OnlyWith({"merge_into"}, "to", "llamacpp");
  table.OnlyWith({"gguf"}, "to", "kv-mean-center");
  table.NotWith({"output", "to", "from"}, "inspect", "it writes nothing");
  table.NotWith({"input", "output", "to", "from", "inspect"}, "list", "it looks at nothing");
  table.Example(
      "oscar-export Qwen3-8B-oscar --to folded-checkpoint --model Qwen/Qwen3-8B -o folded",
      "a copy of the model without outlier channels in its keys");
  table.Example(
      "oscar-export Qwen3-8B-oscar --to absorbed-checkpoint --model Qwen/Qwen3-8B -o absorbed",
      "a copy whose values lie rotated in the cache, for a runtime that knows of no rotation");
  table.Example("oscar-export Qwen3-8B-oscar --to sglang -o rotations",
                "what was chosen for OSCAR's SGLang, as it loads it");
  table.Example("oscar-export Qwen3-8B-oscar --to oscar-torch --bits 3 -o cache",
                "what oscar-calibrate --bits 2,2.5,3,4 chose at 3 bits");
  table.Example("oscar-export Qwen3-8B-oscar --to sglang --rotations oscar -o rotations",
                "the paper's rotations of any artifact");
  table.Example(
      "oscar-export Qwen3-8B-oscar --to llamacpp --merge-into Qwen3-8B-Q4_K_M.gguf -o merged",
      "a copy of a model's GGUF with rotations for llama.cpp");
  table.Example("oscar-export Qwen3-8B-oscar --to kv-scales --model Qwen/Qwen3-8B -o scales",
                "scales of an FP8 cache for vLLM and SGLang");
  table.Example("oscar-export --list", "what each runtime can be given");
  table.Example("oscar-export k_rotation_qqt_r_h_pbr.pt --inspect", "a look into a published file");
  table.Example("oscar-export published/Qwen3-8B --from published -o imported",
                "what somebody published, as it is, to be written for others");
  table.ShowFirst({"output", "to", "folded", "rotations", "from", "inspect", "list", "merge_into",
                   "model", "for"});
  return table;
}

}  // namespace oscar
