// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// oscar-export: converts artifacts to the files of runtimes and back, or inspects a file. It does
// not load LibTorch; oscar-capture runs a model for it if necessary.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "calib/consumers.h"
#include "capture/checkpoint/checkpoint.h"
#include "capture/checkpoint/gguf/gguf_model.h"  // IsGgufPath
#include "capture/checkpoint/model_location.h"
#include "capture/files/mapped_file.h"
#include "capture/files/sandbox.h"
#include "capture/model/spec/model_spec.h"
#include "export/artifact/chosen_rotations.h"
#include "export/artifact/foreign_rotations.h"  // InspectArtifact
#include "export/fold/fold_checkpoint.h"
#include "export/fold/fold_plan.h"
#include "export/formats/inspect.h"
#include "export/formats/loaders.h"
#include "export/runtimes/exporter.h"
#include "export/runtimes/imports.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"
#include "tools/cli/build_info.h"
#include "tools/cli/command.h"
#include "tools/cli/output_path.h"
#include "tools/cli/text_table.h"
#include "tools/export/artifact_text.h"
#include "tools/export/compare_logits.h"
#include "tools/export/export_options.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

std::string_view ClipText(ClipScope scope) {
  switch (scope) {
    case ClipScope::kHead:
      return "per head";
    case ClipScope::kLayer:
      return "per layer and side";
    case ClipScope::kSide:
      return "per side";
    case ClipScope::kModel:
      return "one";
  }
  return "";
}

// Lists the rules that each runtime sets for a choice.
CommandResult List(CommandContext& context) {
  TextTable table({"--to", "rotation", "key means", "queries' matrix", "clip ratio", "latents"});
  Json targets = Json::array();
  std::string written;
  const auto yes = [](bool carried) { return carried ? "yes" : ""; };
  for (const Exporter& exporter : AllExporters()) {
    const Loader& loader = LoaderOf(exporter.name);
    written += fmt::format("{}: {}{}{}\n  {}\n", exporter.name, exporter.help,
                           exporter.carries.empty() ? "" : "; holds ", exporter.carries,
                           fmt::join(LoaderLines(loader), "\n  "));
    Json target = {{"to", exporter.name},
                   {"writes", exporter.help},
                   {"loaded_by", loader.source},
                   {"released", loader.released},
                   {"hardware", loader.hardware}};
    if (!exporter.carries.empty()) {
      target["carries"] = exporter.carries;
      targets.push_back(std::move(target));
      continue;
    }
    const auto rules =
        std::ranges::find(AllConsumers(), exporter.name, &ConsumerRules::export_target);
    OSCAR_CHECK(rules != AllConsumers().end());
    const bool latents = rules->latents && exporter.why_no_latents.empty();
    table.AddRow({std::string(exporter.name), rules->per_head ? "per KV head" : "per layer",
                  yes(rules->key_mean), yes(rules->query_matrix),
                  std::string(ClipText(rules->clip)), yes(latents)});
    target.update({{"rotation_per_head", rules->per_head},
                   {"key_mean", rules->key_mean},
                   {"query_matrix", rules->query_matrix},
                   {"clip_ratio", ClipText(rules->clip)},
                   {"latents", latents}});
    targets.push_back(std::move(target));
  }
  context.out << table.ToString() << "\n"
              << kSglangTrees << "\n\n"
              << written
              << "folded-checkpoint: a copy of the model, for any runtime\nabsorbed-checkpoint: a "
                 "copy of the model with the rotation of values in v_proj and o_proj, for any "
                 "runtime that stores keys as they are or rotates them itself\n"
              << "\nWhat --from published reads:\n"
              << ImportedKinds();
  return {.json = {{"targets", targets}}};
}

CommandResult Inspect(const ExportOptions& options, CommandContext& context) {
  EnterReadOnlySandbox();  // it reads untrusted files and writes to the terminal
  const bool artifact = Artifact::LooksLikeOne(options.input);
  const Json report = artifact ? InspectArtifact(options.input) : InspectFile(options.input);
  const bool imported = artifact && Artifact::OpenAny(options.input).imported();
  context.out << (imported   ? ImportedText(Artifact::OpenAny(options.input))
                  : artifact ? ArtifactText(Artifact::Open(options.input))
                             : InspectText(report));
  return {.json = report};
}

// Throws if a copy's logits differ from the model's. `exact`: they must be bit-identical.
Json CheckLogits(const ExportOptions& options, const Checkpoint& checkpoint, const ModelSpec& spec,
                 bool exact, const fs::path& copy, Log& log) {
  const LogitsAgreement found =
      CompareLogitsOfCopy(checkpoint.directory(), copy, spec, options.device);
  const DType stored = checkpoint.info(spec.layers.front().attention.o.weight).dtype;
  const double allowed = exact ? 0 : AllowedByRounding(stored, spec.layers.size());
  const std::string why = exact ? "every scale is a power of two, so no difference is expected"
                                : fmt::format("rounding its weights to {} explains at most {:.2g}",
                                              DTypeName(stored), allowed);
  if ((exact ? found.worst : found.middle) > allowed) {
    throw NumericalError(
        fmt::format("the copy does not compute the same as {}: {}; {}; nothing was written",
                    checkpoint.directory().string(), found.Text(), why));
  }
  const Json json = {{"tokens", found.tokens},
                     {"median_difference", found.middle},
                     {"largest_difference", found.worst},
                     {"allowed_difference", allowed},
                     {"same_next_token", found.same_next}};
  log.Info("logits",
           exact ? fmt::format("the copy's logits equal the model's bit for bit on {} tokens",
                               found.tokens)
                 : fmt::format("the copy's logits: {}; {}", found.Text(), why),
           json);
  return json;
}

// Returns the directory of the model whose checkpoint is copied or changed.
fs::path CheckpointDirectory(const ExportOptions& options) {
  const fs::path model = ResolveModel(options.model).directory;
  if (!IsGgufPath(model)) return model;
  throw InputError(
      fmt::format("{}: a GGUF cannot be copied, because the copy is written as safetensors; give "
                  "the directory that the GGUF was made from",
                  model.string()));
}

Json Fold(const ExportOptions& options, Log& log) {
  const bool absorbs = options.to.copy == Copy::kAbsorbed;
  const fs::path directory = CheckpointDirectory(options);
  const Checkpoint checkpoint = Checkpoint::Open(directory);
  const ModelSpec spec = ReadModelSpec(directory, {.unknown_config = UnknownConfig::kIgnore});
  CheckTensors(spec, checkpoint);
  FoldOptions fold = options.fold;
  if (options.fold_values) fold.values = FoldValues::kBalanced;
  if (absorbs) fold.values = FoldValues::kRotation;
  fold.chosen = options.rotations != Rotations::kOscar;
  const FoldPlan plan = PlanFold(Artifact::Open(options.input), checkpoint, spec, fold);
  CheckSpace(options.output, checkpoint.total_bytes(), "the copy");
  Json json;
  WriteFoldedCheckpoint(
      checkpoint, spec, plan.layers, plan.record, options.output, [&](const fs::path& copy) {
        json["logits"] = CheckLogits(options, checkpoint, spec, plan.exact, copy, log);
      });
  if (absorbs) {
    json["choice"] = plan.choice;
    log.Info("absorbed",
             "in a runtime that loads the copy, use no value rotation, or the identity");
  }
  return json;
}

void Write(const ExportOptions& options, const Exporter& exporter) {
  const Artifact artifact = Artifact::OpenAny(options.input);
  const bool takes_own =
      exporter.carries.empty() && (exporter.why_no_own_rotations.empty() || HoldsLatents(artifact));
  if (options.rotations == Rotations::kOscar && !takes_own) {
    throw UsageError(
        fmt::format("--rotations oscar: {} {}", exporter.name, exporter.why_no_own_rotations));
  }
  const bool chosen = !takes_own || options.rotations == Rotations::kChosen ||
                      (options.rotations == Rotations::kAuto && artifact.has_choices());
  const fs::path model = exporter.needs_model ? CheckpointDirectory(options) : fs::path();
  if (options.copy) {
    CheckSpace(options.output, Checkpoint::Open(model).total_bytes(), "the copy");
  } else if (!options.merge_into.empty()) {
    CheckSpace(options.output, MappedFile::Open(options.merge_into).bytes().size(), "the copy");
  }
  WriteForRuntime(exporter, artifact,
                  {.chosen = chosen,
                   .folded = options.folded,
                   .merge_into = options.merge_into,
                   .model_gguf = options.gguf,
                   .checkpoint = model,
                   .whole_copy = options.copy,
                   .per_head = options.per_head,
                   .bits = options.bits},
                  options.output);
}

// Throws UsageError if --bits is given but the target has only one bit width.
void CheckBits(const ExportOptions& options) {
  const Exporter* exporter = options.to.exporter;
  if (options.bits == 0 || (exporter != nullptr && exporter->any_bits)) {
    if (options.bits > 0 && options.folded)
      throw UsageError("--bits writes choices for the unchanged checkpoint; leave out --folded");
    return;
  }
  std::string others;
  for (const Exporter& other : AllExporters()) {
    if (other.any_bits) others += fmt::format("{}{}", others.empty() ? "" : ", ", other.name);
  }
  const bool codes = exporter != nullptr && exporter->carries.empty();
  throw UsageError(fmt::format("--bits {:g}: {} {}; --bits works with --to {}", options.bits,
                               exporter == nullptr ? "a copy of the checkpoint" : exporter->name,
                               codes ? "stores 2 bits everywhere" : "has a fixed number of bits",
                               others));
}

CommandResult Export(const ExportOptions& options, CommandContext& context) {
  if (options.list) return List(context);
  if (options.input.empty())
    throw UsageError("no INPUT given; expected an artifact, or a file to inspect");
  const int actions = (options.inspect ? 1 : 0) + (options.to.given() ? 1 : 0) +
                      (options.from != Source::kNone ? 1 : 0);
  if (actions != 1) throw UsageError("give exactly one of --to, --from, --inspect and --list");
  if (options.inspect) return Inspect(options, context);
  if (options.output.empty()) throw UsageError("no output given; give -o DIRECTORY");
  const bool fold = options.to.copy != Copy::kNone;
  const bool no_choice = options.to.copy == Copy::kFolded ||
                         (options.to.exporter != nullptr && !options.to.exporter->carries.empty());
  if (no_choice && options.rotations != Rotations::kAuto) {
    throw UsageError(
        "--rotations has no effect with this --to; it selects among rotations for a runtime");
  }
  if (options.folded &&
      (options.to.exporter == nullptr || no_choice || options.rotations == Rotations::kOscar))
    throw UsageError("--folded has no effect here; it writes a choice that was made for a runtime");
  CheckBits(options);
  const bool needs_model =
      fold || (options.to.exporter != nullptr && options.to.exporter->needs_model);
  if (needs_model && options.model.empty()) {
    throw UsageError(fmt::format("--to {} needs --model",
                                 options.to.copy == Copy::kFolded     ? "folded-checkpoint"
                                 : options.to.copy == Copy::kAbsorbed ? "absorbed-checkpoint"
                                                                      : options.to.exporter->name));
  }
  if (!needs_model && !options.model.empty()) {
    throw UsageError(
        "--model has no effect with this --to; only folded-checkpoint, absorbed-checkpoint, "
        "kv-scales and modelopt use it");
  }
  if (options.copy && (fold || !needs_model))
    throw UsageError("--copy works only with --to kv-scales and modelopt");
  CheckNewOutput(options.output);
  if (context.dry_run) {
    context.out << fmt::format("would write {} from {}\n", options.output, options.input);
    return {};
  }
  Json json = Json::object();
  if (options.from == Source::kPublished) {
    ImportPublished(options.input, ProgramJson(), options.output);
  } else if (fold) {
    json = Fold(options, context.log);
  } else {
    Write(options, *options.to.exporter);
    const Loader& loader = LoaderOf(options.to.exporter->name);
    for (const std::string& line : LoaderLines(loader)) context.log.Info("loader", line);
    if (loader.target.starts_with("sglang")) context.log.Info("loader", std::string(kSglangTrees));
    json = {
        {"loaded_by", loader.source}, {"released", loader.released}, {"hardware", loader.hardware}};
  }
  return {ExitCode::kDone, options.output, json};
}

}  // namespace
}  // namespace oscar

int main(int argc, char** argv) {
  oscar::ExportOptions options;
  return oscar::RunCommand(
      argc, argv, oscar::ExportTable(&options),
      [&](oscar::CommandContext& context) { return oscar::Export(options, context); });
}
