// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Longer than 400 lines because it is the one table of all options. Artifacts store the options'
// keys and values, so no key or meaning may change.
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
    throw UsageError(fmt::format("--bits: {} budgets were given, expected at most {}",
                                 budgets.size(), kMostBudgets));
  for (size_t i = 0; i < budgets.size(); ++i) {
    if (budgets[i] < 2) {
      throw UsageError(fmt::format(
          "--bits: found {:g} in a list, expected {} to {:g}{}", budgets[i], 2, kMostCodeBits,
          budgets[i] == kOscarsBits ? "; 0 cannot be part of a list" : ""));
    }
    if (std::ranges::count(budgets, budgets[i]) > 1)
      throw UsageError(fmt::format("--bits: {:g} is given twice", budgets[i]));
  }
  if (automatic.windows)
    throw UsageError("--windows auto needs a single budget; give --bits one number");
  if (automatic.refine > 0)
    throw UsageError("--refine learns the matrices of a single choice; give --bits one number");
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
  table.Add(
      &options->output,
      {.name = "output",
       .help =
           "directory to write the artifact to, which must not exist; empty: NAME-oscar in the "
           "current directory; while the command runs, its state is kept in OUTPUT.job next to it",
       .short_name = 'o',
       .scope = OptionScope::kRun,
       .main = true,
       .path = true});

  AddDataOptions(table, &options->data);
  AddSelfGenerateOptions(table, &options->self);
  table.Add(
      &options->show_samples,
      {.name = "show_samples",
       .help =
           "print the first N documents as the model will see them, and stop; 0: do not print any",
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
       .help =
           "second moment that the value rotations are fitted to: that of the attention output (as "
           "in the paper), or that of the values weighted by k C_Q k (as in upstream's script)"});
  ChoiceNames<Composition> compositions;
  for (Composition composition : AllCompositions())
    compositions.emplace_back(std::string(CompositionName(composition)), composition);
  table.AddChoice(&calibration.fit.composition, compositions,
                  {.name = "composition",
                   .help = "factors of the rotation, under upstream's names: r is the "
                           "eigenvectors, h a Hadamard matrix, pbr the bit-reversal permutation"});
  table.Add(&calibration.min_tokens,
            {.name = "min_tokens",
             .help = "number of tokens that every head must see; auto: 20 times its dimension",
             .unit = "tokens",
             .min = -1});
  table.Add(&calibration.held_out,
            {.name = "held_out",
             .help = "share of the tokens that is held out to judge clip ratios and errors",
             .min = 0,
             .max = 0.5});
}

void AddAutomaticOptions(OptionTable& table, CalibrateOptions* options) {
  CalibrationOptions& calibration = options->calibration;
  table.Group("Automatic choices");
  AutoOptions& automatic = calibration.automatic;
  table.Add(
      &automatic.enabled,
      {.name = "auto",
       .help = "choose transforms, clip ratios and bits for each layer by their attention-KL and "
               "output error on held-out tokens; without this, only OSCAR's rotations are fitted"});
  ChoiceNames<ForRuntime> runtimes;
  for (const ConsumerRules& rules : AllConsumers())
    runtimes.emplace_back(std::string(rules.name), ForRuntime{rules.consumer});
  for (const TypedRuntime& typed : TypedRuntimes())
    runtimes.emplace_back(std::string(typed.name), ForRuntime{Consumer::kAny, typed.name});
  table.AddChoice(
      &options->runtime, runtimes,
      {.name = "for",
       .help = "the runtime whose choice is searched in depth, measured and judged; all other "
               "runtimes get a choice too; for modelopt and trtllm, each layer gets a type of 8 or "
               "4 bits within --bits, according to the next-token KL that each type causes",
       .main = true});
  table.Add(&automatic.fold,
            {.name = "fold",
             .help = "judge the choice for a folded copy of the checkpoint, which may scale pairs "
                     "of key channels by powers of two, so that its logits equal the model's bit "
                     "for bit; choices for both checkpoints are always made"});
  table.Add(&automatic.feedback,
            {.name = "feedback",
             .help = "allow error feedback for keys with every runtime, for a server whose writer "
                     "was patched; the factors are stored in rotations.safetensors. Choices for "
                     "the runtime 'any' may always use it"});
  table.Add(
      &options->bits,
      {.name = "bits",
       .help =
           "mean number of bits stored per element of keys and values, including a 16-bit scale "
           "and zero for each quantization group; they go to the layers and sides where they lower "
           "the error most; 2: 2-bit codes, whatever their scales and zeros take; 0: the size of "
           "OSCAR's 2-bit cache, or 2-bit codes if the runtime has no others; at most 8, or 16 for "
           "types (--for modelopt and trtllm); a list such as 2,2.5,3,4 also makes a choice for "
           "the runtime 'any' at each budget, where 2 means the fewest bits that codes take; the "
           "first is the one that is judged and published",
       .min = 0,
       .max = 16,
       .check = [](const Json& bits) { return bits.empty() ? "an empty list" : ""; },
       .main = true,
       .one_text = true});
  const auto scopes = ChoiceNames<bool>{{"layer", false}, {"head", true}};
  table.AddChoice(&automatic.head_bits, scopes,
                  {.name = "bits_of",
                   .help = "whether --bits are assigned to each side of a layer or to each of its "
                           "KV heads, if the runtime supports that"});
  ChoiceNames<std::optional<BitPrice>> prices = {{"least", std::nullopt}};
  for (const BitPrice price : kBitPrices)
    prices.emplace_back(std::string(BitPriceName(price)), price);
  table.AddChoice(
      &automatic.price, prices,
      {.name = "bits_by",
       .help = "how --bits are distributed; least: try the other rules and keep the result with "
               "the least next-token KL when the whole cache is quantized; next_token: by the "
               "next-token KL that each side of a layer causes on its own; attention: by "
               "attention-KL and output error; uniform: equally, as far as the budget allows"});
  table.AddChoice(
      &automatic.head_clip, scopes,
      {.name = "clip_of",
       .help = "whether a clip ratio is chosen for each side of a layer, or also for single KV "
               "heads that held-out tokens favor, if the runtime supports that"});
  table.Add(&automatic.context,
            {.name = "context",
             .help = "length of the contexts that the cache will hold: keys are fitted to "
                     "positions up to this length, however short the calibration texts are; 0: "
                     "twice the longest text, at least 8192",
             .unit = "tokens",
             .min = 0});
  table.Add(&automatic.refine,
            {.name = "refine",
             .help = "steps of gradient descent on the chosen rotations, through attention itself "
                     "(OptR); a layer keeps the result only if held-out tokens confirm it; 0: none",
             .unit = "steps",
             .min = 0});
  ChoiceNames<std::optional<SearchEffort>> efforts = {{"auto", std::nullopt}};
  for (const SearchEffort effort :
       {SearchEffort::kQuick, SearchEffort::kNormal, SearchEffort::kThorough})
    efforts.emplace_back(std::string(SearchEffortName(effort)), effort);
  table.AddChoice(
      &options->effort, efforts,
      {.name = "effort",
       .help = "how much is measured to distribute --bits; quick: attention-KL and output error; "
               "normal: the KL of the next token, in extra passes of the model over its text that "
               "take about as long as the calibration; thorough: the same on four times the text, "
               "and also at 2 bits, where the cost of each side of a layer is reported; auto: "
               "normal on a GPU; quick on a CPU, unless --bits-by needs more",
       .main = true});
  table.AddChoice(&automatic.windows, ChoiceNames<bool>{{"given", false}, {"auto", true}},
                  {.name = "windows",
                   .help = "how the sink and recent windows are chosen; given: use --sink-tokens "
                           "and --recent-tokens, and report the size and KL of other windows; "
                           "auto: spend part of --bits on larger windows where that helps more"});
}

void AddClipOptions(OptionTable& table, CalibrateOptions* options) {
  CalibrationOptions& calibration = options->calibration;
  table.Group("Clipping and quantization");
  table.AddChoice(
      &calibration.clip.mode,
      ChoiceNames<ClipMode>{{"search", ClipMode::kSearch}, {"fixed", ClipMode::kFixed}},
      {.name = "clip",
       .help = "how clip ratios are chosen; search: use the ratio with the least weighted error on "
               "held-out tokens, for each layer and side; fixed: use --clip-k and --clip-v"});
  table.Add(&calibration.clip.fixed_k,
            {.name = "clip_k",
             .help = "quantile of |k| in a row at which --clip fixed clips; 0: no clipping",
             .min = 0,
             .max = 1});
  table.Add(&calibration.clip.fixed_v,
            {.name = "clip_v",
             .help = "quantile of |v| in a row at which --clip fixed clips; 0: no clipping",
             .min = 0,
             .max = 1});
  table.Add(&calibration.clip.candidates,
            {.name = "clip_candidates",
             .help = "ratios that --clip search tries, in ascending order",
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
                                         .help = "tokens kept in 16 bits at the end of a sequence",
                                         .unit = "tokens",
                                         .min = 0});
  table.Add(&calibration.error_rows,
            {.name = "error_rows",
             .help = "number of query rows per held-out document on which attention-KL is measured",
             .unit = "rows",
             .min = 1});
}

void AddRunOptions(OptionTable& table, CalibrateOptions* options) {
  table.Group("Running");
  AddMachineOptions(table, &options->model);
  table.Add(&options->max_vram, {.name = "max_vram",
                                 .help = "GPU memory that tensors may use; if it is less, fewer "
                                         "tokens go through a layer at a time; 0: all free memory",
                                 .unit = "GB",
                                 .min = 0,
                                 .scope = OptionScope::kRun,
                                 .main = true});
  table.AddChoice(
      &options->read,
      ChoiceNames<ReadMode>{
          {"auto", ReadMode::kAuto}, {"direct", ReadMode::kDirect}, {"cached", ReadMode::kCached}},
      {.name = "read",
       .help = "how weights reach a GPU: direct bypasses the page cache; cached and auto use it, "
               "so that the digests of the files are computed from the same bytes",
       .scope = OptionScope::kRun});
  AddAllowOptions(table, &options->model);
  AddRankOptions(table, &options->ranks);
  table.Add(&options->restart, {.name = "restart",
                                .help = "discard the state of an unfinished run",
                                .scope = OptionScope::kRun,
                                .only_once = true,
                                .main = true});
  table.Add(&options->verbose, {.name = "verbose",
                                .help = "also print a table of the measurements of each layer",
                                .short_name = 'v',
                                .scope = OptionScope::kCommandLine});
  table.Add(
      &options->shard,
      {.name = "shard",
       .help =
           "I/N, such as 2/8: run only the documents of job I of N and write OUTPUT.shard-I-of-N; "
           "the jobs need no network between them; --merge makes the artifact",
       .scope = OptionScope::kRun,
       .main = true});
  table.Add(
      &options->merge,
      {.name = "merge",
       .help = "do not run a model, but add up the moments of these artifacts and fit again (a "
               "single artifact is refitted); given MODEL, its options and all its shards instead, "
               "fit to what the shards observed, with the same result as a single run",
       .scope = OptionScope::kRun,
       .main = true,
       .path = true});

  const std::vector<std::string> data = {
      "data",         "tokens",          "max_sequence",   "pack",          "separator",
      "data_weights", "whole_documents", "length_buckets", "chat_template", "template_var",
      "date",         "self_generate",   "show_samples"};
  table.NotWith({"model", "unknown_config", "read"}, "from", "the dump replaces the model");
  table.NotWith(data, "from", "the dump contains its own data");
  table.NotWith({"gpus", "ranks"}, "from",
                "the documents of a dump cannot be divided among processes");
  table.NotWith({"gpus", "ranks"}, "merge", "it runs in one process");
  table.NotWith({"gpus", "ranks"}, "shard", "it runs in one process");
  table.NotWith({"from"}, "shard", "the documents of a dump cannot be divided among processes");
  table.NotWith({"show_samples"}, "shard");
  table.NotWith({"self_generate"}, "shard",
                "each shard would generate the text again; generate it once and give it to all "
                "shards as --data");
  table.NotWith({"merge"}, "shard", "make all shards first, then merge them");
  table.NotWhere({"from", "show_samples", "self_generate"}, "merge", AreShards,
                 "the shards contain their own data");
  table.NotWhere(
      {"model", "from", "unknown_config", "read", "max_vram", "restart", "device", "dtype"},
      "merge", AreArtifacts, "artifacts are merged from their moments alone");
  table.NotWhere(data, "merge", AreArtifacts, "artifacts are merged from their moments alone");
  const std::vector<std::string> choosing = {"for",     "fold",    "feedback", "bits",
                                             "bits_of", "bits_by", "clip_of",  "context",
                                             "refine",  "effort",  "windows"};
  table.NotWhere(choosing, "merge", AreArtifacts,
                 "the automatic choices of the artifact with the most tokens are fitted again; an "
                 "artifact stores no rows from which to choose others, but shards do (--shard)");
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
      throw UsageError(
          fmt::format("--bits: expected at most {:g}, unless --for asks for types", kMostCodeBits));
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
        fmt::format("--for {} takes one budget; oscar-export --to {} --bits B writes other budgets "
                    "from the same artifact",
                    types, types));
  }
  if (automatic.bits == kOscarsBits)
    throw UsageError(
        fmt::format("--for {} needs --bits, the number of bits per value including scales", types));
  if (automatic.effort == SearchEffort::kQuick) {
    throw UsageError(
        fmt::format("--effort quick does not measure the costs by which types for {} are chosen; "
                    "use --effort normal",
                    types));
  }
  if (!options.dump.from.empty())
    throw UsageError(fmt::format(
        "--for {} needs the model, because a dump cannot predict the next token", types));
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
                "describes the model, what will happen to it and what is missing");
  table.Example("oscar-calibrate Qwen/Qwen3-8B",
                "calibrates on the built-in corpus and writes Qwen3-8B-oscar");
  table.Example("oscar-calibrate ./model --data prompts.jsonl -o out --device cpu",
                "uses your own data, on the CPU");
  table.Example("oscar-calibrate Qwen/Qwen3-8B --self-generate 20000 --self-temperature 0.6",
                "also calibrates on text that the model generates");
  table.Example("oscar-calibrate --merge part1 part2 -o merged",
                "adds up two runs on different data");
  table.Example("oscar-calibrate ./model -o out --shard 2/8",
                "runs one of eight shards, in any order");
  table.Example("oscar-calibrate ./model -o out --merge out.shard-*",
                "makes the artifact from all eight shards");
  return table;
}

}  // namespace oscar
