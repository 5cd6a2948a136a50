// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Artifacts store the keys and their meanings (resolved configuration), so nothing may be renamed.
#include "tools/calibrate/calibrate_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "calib/choose/cache_types.h"
#include "calib/run/shard_directory.h"
#include "capture/model/run/device.h"
#include "linalg/base/error.h"
#include "linalg/rotation.h"

namespace oscar {
namespace {

constexpr double kMostCodeBits = 8;
constexpr size_t kMostBudgets = 8;

// Throws UsageError if the budgets of --bits are too many, equal or out of range.
void CheckBudgets(const std::vector<double>& budgets, const AutoOptions& automatic) {
  if (budgets.size() > kMostBudgets)
    throw UsageError(fmt::format("--bits: {} budgets, at most {}", budgets.size(), kMostBudgets));
  for (size_t i = 0; i < budgets.size(); ++i) {
    if (budgets[i] < 2) {
      throw UsageError(fmt::format("--bits: found {:g} in a list, expected {} to {:g}{}",
                                   budgets[i], 2, kMostCodeBits,
                                   budgets[i] == kOscarsBits ? "; 0 stands alone" : ""));
    }
    if (std::ranges::count(budgets, budgets[i]) > 1)
      throw UsageError(fmt::format("--bits: {:g} is given twice", budgets[i]));
  }
  if (automatic.windows)
    throw UsageError("--windows auto spends one budget on windows: give --bits one number");
  if (automatic.refine > 0)
    throw UsageError("--refine learns the matrices of one choice: give --bits one number");
}

// Returns whether --merge names shards. A missing path is reported later, when it is opened.
bool AreShards(const Json& paths) {
  return std::ranges::any_of(
      paths, [](const Json& path) { return ShardSet::LooksLikeOne(path.get<std::string>()); });
}

bool AreArtifacts(const Json& paths) {
  return !paths.empty() && !AreShards(paths) && std::ranges::all_of(paths, [](const Json& path) {
    return std::filesystem::exists(path.get<std::string>());
  });
}

void AddInputOptions(OptionTable& table, CalibrateOptions* options) {
  AddModelOption(table, &options->model);
  table.Add(&options->output,
            {.name = "output",
             .help = "the artifact's directory, which must not exist; empty: NAME-oscar in this "
                     "directory; its state while running lies beside it in OUTPUT.job",
             .short_name = 'o',
             .scope = OptionScope::kRun,
             .main = true,
             .path = true});

  AddDataOptions(table, &options->data);
  AddSelfGenerateOptions(table, &options->self);
  table.Add(&options->show_samples,
            {.name = "show_samples",
             .help = "print the first N documents as they will be fed, and stop; 0: go on",
             .min = 0,
             .scope = OptionScope::kRun,
             .only_once = true});

  AddDumpOptions(table, &options->dump);
}

void AddFitOptions(OptionTable& table, CalibrateOptions* options) {
  CalibrationOptions& calibration = options->calibration;
  table.Group("Fit");
  table.AddChoice(
      &calibration.fit.value_target,
      ChoiceNames<ValueTarget>{{"attention_output", ValueTarget::kAttentionOutput},
                               {"diagonal", ValueTarget::kDiagonal}},
      {.name = "value_target",
       .help = "second moment that value rotations are fitted to: that of the attention output "
               "(the paper), or values weighted by k C_Q k (upstream's script)"});
  ChoiceNames<Composition> compositions;
  for (Composition composition : AllCompositions())
    compositions.emplace_back(std::string(CompositionName(composition)), composition);
  table.AddChoice(&calibration.fit.composition, compositions,
                  {.name = "composition",
                   .help = "factors of the rotation by upstream's names: r eigenvectors, h "
                           "Hadamard, pbr bit reversal"});
  table.Add(&calibration.min_tokens,
            {.name = "min_tokens",
             .help = "tokens every head must see; auto: 20 times its dimension",
             .unit = "tokens",
             .min = -1});
  table.Add(&calibration.held_out,
            {.name = "held_out",
             .help = "share of the tokens that clip ratios and errors are judged on",
             .min = 0,
             .max = 0.5});
}

void AddAutomaticOptions(OptionTable& table, CalibrateOptions* options) {
  CalibrationOptions& calibration = options->calibration;
  table.Group("Automatic choices");
  AutoOptions& automatic = calibration.automatic;
  table.Add(&automatic.enabled,
            {.name = "auto",
             .help = "choose transforms, clip ratios and bits per layer by their attention-KL and "
                     "output error on held-out tokens; without: OSCAR's rotations alone"});
  ChoiceNames<ForRuntime> runtimes;
  for (const ConsumerRules& rules : AllConsumers())
    runtimes.emplace_back(std::string(rules.name), ForRuntime{rules.consumer});
  for (const TypedRuntime& typed : TypedRuntimes())
    runtimes.emplace_back(std::string(typed.name), ForRuntime{Consumer::kAny, typed.name});
  table.AddChoice(
      &options->runtime, runtimes,
      {.name = "for",
       .help = "the runtime whose choice is searched in depth, measured and judged; all "
               "others get one too; modelopt, trtllm: types of 8 and 4 "
               "bits layer by layer within --bits, by what each costs the next token",
       .main = true});
  table.Add(
      &automatic.fold,
      {.name = "fold",
       .help = "judge the choice for a folded copy of the checkpoint, which may scale pairs of "
               "key channels by powers of two, so that its logits are the model's bit for bit; "
               "choices for both are made in any case"});
  table.Add(&automatic.feedback,
            {.name = "feedback",
             .help = "let keys be written with error feedback whatever the runtime, for a server "
                     "whose writer was patched; its factors stand in rotations.safetensors. "
                     "Choices for any may have it anyway"});
  table.Add(
      &options->bits,
      {.name = "bits",
       .help = "mean bits stored per element of keys and values: codes, and a 16-bit scale and "
               "zero for each quantization group; they go to the layers and sides where "
               "they lower the error most; 2: codes of 2 bits, whatever those take; 0: as many as "
               "OSCAR's 2 bits take, which are codes of 2 bits where the runtime has no others; of "
               "types (--for modelopt and such) up to 16; a list, as 2,2.5,3,4: a choice of any at "
               "each, beside that of --for, where 2 is the fewest that codes take",
       .min = 0,
       .max = 16,
       .check = [](const Json& bits) { return bits.empty() ? "an empty list" : ""; },
       .main = true,
       .one_text = true});
  const auto scopes = ChoiceNames<bool>{{"layer", false}, {"head", true}};
  table.AddChoice(&automatic.head_bits, scopes,
                  {.name = "bits_of",
                   .help = "what --bits are given to, where the runtime takes it: each side of a "
                           "layer, or its KV heads one by one"});
  ChoiceNames<std::optional<BitPrice>> prices = {{"least", std::nullopt}};
  for (const BitPrice price : kBitPrices)
    prices.emplace_back(std::string(BitPriceName(price)), price);
  table.AddChoice(
      &automatic.price, prices,
      {.name = "bits_by",
       .help = "what --bits are shared out by: least: by each of the others, and what costs the "
               "next token least as a whole cache is taken; next_token: what each side of a layer "
               "costs it alone; attention; uniform: the same everywhere, as far as they go"});
  table.AddChoice(
      &automatic.head_clip, scopes,
      {.name = "clip_of",
       .help = "what a clip ratio is chosen for, where the runtime takes it: each side "
               "of a layer, or those of its KV heads that held-out tokens ask one for"});
  table.Add(
      &automatic.context,
      {.name = "context",
       .help = "tokens of the contexts that the cache will hold: keys are fitted to positions "
               "up to it, however short the calibration's texts are; 0: twice the longest, "
               "8192 at least",
       .unit = "tokens",
       .min = 0});
  table.Add(&automatic.refine,
            {.name = "refine",
             .help = "steps of gradient descent on the chosen rotations, through attention itself "
                     "(OptR); layers keep what they learned where held-out tokens agree; 0: none",
             .unit = "steps",
             .min = 0});
  ChoiceNames<std::optional<SearchEffort>> efforts = {{"auto", std::nullopt}};
  for (const SearchEffort effort :
       {SearchEffort::kQuick, SearchEffort::kNormal, SearchEffort::kThorough})
    efforts.emplace_back(std::string(SearchEffortName(effort)), effort);
  table.AddChoice(
      &options->effort, efforts,
      {.name = "effort",
       .help = "what --bits are shared out by: quick: by attention-KL and output error; normal: by "
               "the KL of the next token, which passes of the model over its text measure, "
               "about as long as the calibration; thorough: on four times the text, and at 2 bits "
               "too, where what each side of a layer costs is told; auto: quick on a CPU, where "
               "--bits-by "
               "asks for no more, and normal on a GPU",
       .main = true});
  table.AddChoice(&automatic.windows, ChoiceNames<bool>{{"given", false}, {"auto", true}},
                  {.name = "windows",
                   .help = "given: --sink-tokens and --recent-tokens, the price and KL of others "
                           "is reported; auto: spend --bits on larger ones too, where that helps "
                           "more"});
}

void AddClipOptions(OptionTable& table, CalibrateOptions* options) {
  CalibrationOptions& calibration = options->calibration;
  table.Group("Clipping and quantization");
  table.AddChoice(&calibration.clip.mode,
                  ChoiceNames<ClipMode>{{"search", ClipMode::kSearch}, {"fixed", ClipMode::kFixed}},
                  {.name = "clip",
                   .help = "search: per layer and side, the ratio with the least weighted error on "
                           "held-out tokens; fixed: --clip-k and --clip-v"});
  table.Add(&calibration.clip.fixed_k,
            {.name = "clip_k",
             .help = "percentile of |k| kept by --clip fixed; 0 clips nothing",
             .min = 0,
             .max = 1});
  table.Add(&calibration.clip.fixed_v,
            {.name = "clip_v",
             .help = "percentile of |v| kept by --clip fixed; 0 clips nothing",
             .min = 0,
             .max = 1});
  table.Add(&calibration.clip.candidates, {.name = "clip_candidates",
                                           .help = "ratios that --clip search tries, ascending",
                                           .min = 0.01,
                                           .max = 1});
  table.Add(&calibration.clip.quant_group_size,
            {.name = "quant_group_size",
             .help = "values that share a scale; 0: the whole head",
             .unit = "values",
             .min = 0});
  table.Add(&calibration.sink_tokens, {.name = "sink_tokens",
                                       .help = "tokens kept in 16 bits at the start of a sequence",
                                       .unit = "tokens",
                                       .min = 0});
  table.Add(&calibration.recent_tokens, {.name = "recent_tokens",
                                         .help = "tokens kept in 16 bits at its end",
                                         .unit = "tokens",
                                         .min = 0});
  table.Add(&calibration.error_rows,
            {.name = "error_rows",
             .help = "query rows per held-out document on which attention-KL is measured",
             .unit = "rows",
             .min = 1});
}

void AddRunOptions(OptionTable& table, CalibrateOptions* options) {
  table.Group("Running");
  AddMachineOptions(table, &options->model);
  table.Add(
      &options->max_vram,
      {.name = "max_vram",
       .help = "GPU memory that tensors may take; with less, fewer tokens go through a layer at "
               "a time; 0: what is free",
       .unit = "GB",
       .min = 0,
       .scope = OptionScope::kRun,
       .main = true});
  table.AddChoice(
      &options->read,
      ChoiceNames<ReadMode>{
          {"auto", ReadMode::kAuto}, {"direct", ReadMode::kDirect}, {"cached", ReadMode::kCached}},
      {.name = "read",
       .help = "how weights reach a GPU: past the page cache (direct) or through it (cached, and "
               "auto), where the digests of their files are taken of the same bytes",
       .scope = OptionScope::kRun});
  AddAllowOptions(table, &options->model);
  AddRankOptions(table, &options->ranks);
  table.Add(&options->restart, {.name = "restart",
                                .help = "discard the state of an unfinished run",
                                .scope = OptionScope::kRun,
                                .only_once = true,
                                .main = true});
  table.Add(&options->verbose, {.name = "verbose",
                                .help = "also print what was measured of each layer as a table",
                                .short_name = 'v',
                                .scope = OptionScope::kCommandLine});
  table.Add(&options->shard,
            {.name = "shard",
             .help = "I/N, as 2/8: run the documents of that one of N jobs alone, which need no "
                     "network between them, into OUTPUT.shard-I-of-N; --merge makes the artifact",
             .scope = OptionScope::kRun,
             .main = true});
  table.Add(&options->merge,
            {.name = "merge",
             .help = "instead of running a model: add up the moments of these artifacts and fit "
                     "again (one artifact: refit), or with MODEL and its options fit to what all "
                     "its shards have observed, with the result of one run",
             .scope = OptionScope::kRun,
             .main = true,
             .path = true});

  const std::vector<std::string> data = {
      "data",         "tokens",          "max_sequence",   "pack",          "separator",
      "data_weights", "whole_documents", "length_buckets", "chat_template", "template_var",
      "date",         "self_generate",   "show_samples"};
  table.NotWith({"model", "unknown_config", "read"}, "from", "the dump stands for the model");
  table.NotWith(data, "from", "the dump holds its data");
  table.NotWith({"gpus", "ranks"}, "from", "the documents of a dump are not shared out");
  table.NotWith({"gpus", "ranks"}, "merge", "it is the work of one process");
  table.NotWith({"gpus", "ranks"}, "shard", "it is the work of one process");
  table.NotWith({"from"}, "shard", "the documents of a dump are not shared out");
  table.NotWith({"show_samples"}, "shard");
  table.NotWith({"self_generate"}, "shard",
                "each shard would write that text again; give it to all of them as --data");
  table.NotWith({"merge"}, "shard", "a shard is merged when it is there");
  table.NotWhere({"from", "show_samples", "self_generate"}, "merge", AreShards,
                 "shards hold what they ran on");
  table.NotWhere(
      {"model", "from", "unknown_config", "read", "max_vram", "restart", "device", "dtype"},
      "merge", AreArtifacts, "it works from the moments of artifacts alone");
  table.NotWhere(data, "merge", AreArtifacts, "it works from the moments of artifacts alone");
  const std::vector<std::string> choosing = {"for",     "fold",    "feedback", "bits",
                                             "bits_of", "bits_by", "clip_of",  "context",
                                             "refine",  "effort",  "windows"};
  table.NotWhere(choosing, "merge", AreArtifacts,
                 "the automatic choices are those of the artifact of most tokens, fitted again");
  table.OnlyWith(choosing, "auto");
  table.OnlyWith({"bits_of", "bits_by"}, "for", "any");
  table.OnlyWith({"clip_k", "clip_v"}, "clip", "fixed");
  table.OnlyWith({"clip_candidates"}, "clip", "search");
}

}  // namespace

void AddCalibrateOptions(OptionTable& table, CalibrateOptions* options) {
  AddInputOptions(table, options);
  AddFitOptions(table, options);
  AddAutomaticOptions(table, options);
  AddClipOptions(table, options);
  AddRunOptions(table, options);
}

CalibrateOptions Resolved(CalibrateOptions options) {
  AutoOptions& automatic = options.calibration.automatic;
  automatic.consumer = options.runtime.consumer;
  const std::string_view types = options.runtime.types;
  const bool needs_passes = !types.empty() || automatic.price == BitPrice::kNextToken;
  automatic.effort = options.effort.value_or(
      !needs_passes && ParseDevice(options.model.device).is_cpu() ? SearchEffort::kQuick
                                                                  : SearchEffort::kNormal);
  const std::vector<double>& bits = options.bits.bits;
  const bool has_others = automatic.enabled && RulesOf(automatic.consumer).any_bits;
  automatic.bits = bits.at(0);
  if (types.empty()) {
    if (std::ranges::max(bits) > kMostCodeBits)
      throw UsageError(fmt::format("--bits: at most {:g} of codes", kMostCodeBits));
    if (bits.size() > 1) {
      CheckBudgets(bits, automatic);
      automatic.budgets = bits;
      if (!has_others) automatic.bits = 2;
    }
    if (automatic.bits == kOscarsBits && !has_others) automatic.bits = 2;
    return options;
  }
  if (bits.size() > 1) {
    throw UsageError(
        fmt::format("--for {} takes one budget; oscar-export --to {} --bits B writes "
                    "others from the same artifact",
                    types, types));
  }
  if (automatic.bits == kOscarsBits)
    throw UsageError(
        fmt::format("--for {} needs --bits: how many per value, scales included", types));
  if (automatic.effort == SearchEffort::kQuick) {
    throw UsageError(fmt::format(
        "--effort quick measures nothing that types for {} could be shared out by", types));
  }
  if (!options.dump.from.empty())
    throw UsageError(fmt::format("--for {} needs the model: a dump has no next token", types));
  options.types = {types, automatic.bits};
  automatic.bits = 2;
  return options;
}

OptionTable CalibrateTable(CalibrateOptions* options) {
  OptionTable table("oscar-calibrate",
                    "Fits the rotations that let a model keep its KV cache in 2 bits, and writes "
                    "them as a verified artifact.");
  AddCalibrateOptions(table, options);
  table.Example("oscar-calibrate doctor Qwen/Qwen3-8B",
                "what this model is, what will happen to it, what is missing");
  table.Example("oscar-calibrate Qwen/Qwen3-8B",
                "calibrates on the built-in corpus and writes Qwen3-8B-oscar");
  table.Example("oscar-calibrate ./model --data prompts.jsonl -o out --device cpu",
                "own data, on the CPU");
  table.Example("oscar-calibrate Qwen/Qwen3-8B --self-generate 20000 --self-temperature 0.6",
                "on what the model writes itself, too");
  table.Example("oscar-calibrate --merge part1 part2 -o merged",
                "adds up two runs on different data");
  table.Example("oscar-calibrate ./model -o out --shard 2/8", "an eighth of a run, in any order");
  table.Example("oscar-calibrate ./model -o out --merge out.shard-*",
                "and the artifact of all eighths");
  return table;
}

}  // namespace oscar
