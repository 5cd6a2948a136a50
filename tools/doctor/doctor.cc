// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/doctor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "capture/checkpoint/hub_cache.h"
#include "capture/files/atomic_file.h"
#include "capture/model/run/device.h"
#include "linalg/base/error.h"
#include "linalg/rotation.h"
#include "tools/calibrate/calibrate_plan.h"
#include "tools/cli/command.h"  // DescribeFailure
#include "tools/cli/command_line.h"
#include "tools/cli/output_path.h"
#include "tools/doctor/model_doctor.h"
#include "tools/doctor/support_tables.h"
#include "tools/export/artifact_text.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

std::string SettingsText(const CalibrationOptions& options) {
  return fmt::format(
      "automatic choices {}, rotations {} for {}, clip {}, quantization groups of {}, {} first and "
      "{} last tokens in 16 bits",
      options.automatic.enabled ? "on" : "off", CompositionName(options.fit.composition),
      options.fit.value_target == ValueTarget::kDiagonal ? "diagonal" : "attention_output",
      options.clip.mode == ClipMode::kSearch
          ? "searched"
          : fmt::format("{:g} and {:g}", options.clip.fixed_k, options.clip.fixed_v),
      options.clip.quant_group_size == 0 ? "a head"
                                         : fmt::format("{} values", options.clip.quant_group_size),
      options.sink_tokens, options.recent_tokens);
}

struct Prognosis {
  std::vector<Fact> facts;
  std::string of_ranks;  // a table, or empty
  Json plan;
};

// Adds to `missing` the resources of which this machine has too little.
void CheckMachine(const CalibrateOptions& options, const CalibrationInput& input,
                  const CalibrationPlan& plan, std::vector<std::string>& missing) {
  if (input.device.is_cpu() && options.model.device == "auto")
    missing.emplace_back("a GPU: none was found, so the CPU is used");
  if (const std::string memory = HostMemoryProblem(plan); !memory.empty())
    missing.push_back("memory: " + memory);
  const fs::path output = options.output.empty() ? "artifact" : options.output;
  const std::string disk = SpaceProblem(output, plan.disk_while_running, "the run");
  if (!disk.empty()) missing.push_back("disk: " + disk);
  std::error_code error;
  if (!options.output.empty() && fs::exists(output, error) && !fs::exists(options.output + ".job"))
    missing.push_back(
        fmt::format("an unused name for the artifact: {} exists already", options.output));
}

void Plan(const CalibrateOptions& options, const PlanFunction& plan, Log& log, Diagnosis& diagnosis,
          Prognosis& prognosis) {
  try {
    const auto [input, numbers, self_generation, ranks] = plan(options, log);
    prognosis.facts.emplace_back("settings", SettingsText(options.calibration));
    const std::string text = PlanNumbers(input, numbers) + self_generation;
    for (size_t at = 0; at < text.size();) {
      const size_t end = text.find('\n', at);
      const std::string line = text.substr(at, end - at);
      constexpr size_t kName = 18;
      const size_t last = line.substr(0, kName).find_last_not_of(' ');
      prognosis.facts.emplace_back(line.substr(0, last + 1), line.substr(kName));
      at = end + 1;
    }
    prognosis.plan = PlanJson(input, numbers);
    if (!ranks.empty()) {
      prognosis.of_ranks = RankPlanText(ranks);
      prognosis.plan["ranks"] = RankPlanJson(ranks);
    }
    CheckMachine(options, input, numbers, diagnosis.missing);
  } catch (const ResourceError& error) {
    diagnosis.missing.push_back(DescribeFailure(error).message);
  } catch (const Error& error) {
    diagnosis.reasons.push_back(DescribeFailure(error).message);
  }
}

// Returns a command that can be pasted, or "" if there is none.
std::string NextCommand(const DoctorOptions& options, const OptionTable& table,
                        const std::vector<std::string>& arguments, const Diagnosis& diagnosis) {
  // The next command is without the verb: "oscar-calibrate MODEL --x".
  std::string command = ResumeCommand(table, "oscar-calibrate", arguments);
  constexpr std::string_view kVerb = "oscar-calibrate doctor";
  if (command.starts_with(kVerb)) command = "oscar-calibrate" + command.substr(kVerb.size());
  if (diagnosis.supported()) {
    if (diagnosis.has_weights) {
      const bool needs_ids = !diagnosis.has_tokenizer && options.calibrate.data.data.empty();
      return command + (needs_ids ? " --data INPUT_IDS.jsonl" : "");
    }
    const auto id = ParseHubId(diagnosis.location.id);
    const std::string directory = diagnosis.location.directory.string();
    return !diagnosis.location.revision.empty() && id
               ? DownloadCommand(*id) + " && " + command
               : fmt::format("hf download ORG/NAME --local-dir {} && {}", directory, command);
  }
  if (diagnosis.unknown_fields_only) return command + " --unknown-config ignore";
  return "";
}

void PrintFacts(const std::vector<Fact>& facts, std::ostream& out) {
  for (const auto& [name, value] : facts) {
    std::string text = value;
    for (size_t at = text.find('\n'); at != text.npos; at = text.find('\n', at + 1))
      text.insert(at + 1, 18, ' ');
    out << fmt::format("{:<18}{}\n", name, text);
  }
}

void PrintList(const char* heading, const std::vector<std::string>& lines, std::ostream& out) {
  if (lines.empty()) return;
  out << '\n' << heading << '\n';
  for (const std::string& line : lines) out << "- " << line << '\n';
}

Json FactsJson(const std::vector<Fact>& facts) {
  Json json = Json::object();
  for (const auto& [name, value] : facts) json[name] = value;
  return json;
}

CommandResult Tables(const DoctorOptions& options, CommandContext& context) {
  if (options.into.empty()) {
    context.out << SupportTables();
    return {};
  }
  const std::string page = WithSupportTables(options.into);
  if (!context.dry_run) WriteFileAtomically(options.into, page);
  return {ExitCode::kDone, options.into};
}

// Shows what an artifact says about its model, mainly which layers need more bits.
CommandResult Calibrated(const DoctorOptions& options, CommandContext& context) {
  const Artifact artifact = Artifact::Open(options.calibrate.model.model);
  if (options.json) {
    context.out << CanonicalJson({{"artifact", artifact.directory().string()},
                                  {"identity", artifact.identity()},
                                  {"serving", artifact.report().at("serving")}});
  } else {
    context.out << ArtifactText(artifact);
  }
  return {};
}

CommandResult Doctor(DoctorOptions& options, const OptionTable& table,
                     const std::vector<std::string>& arguments, const PlanFunction& plan,
                     CommandContext& context) {
  CalibrateOptions& calibrate = options.calibrate;
  if (options.tables) return Tables(options, context);
  if (!options.into.empty()) throw UsageError("--into has no effect without --tables");
  if (!calibrate.dump.from.empty() || !calibrate.merge.empty())
    throw UsageError(
        "doctor describes a model, but --from and --merge work without one; leave them out");
  if (calibrate.model.model.empty())
    throw UsageError(
        "no MODEL given; expected a directory, a .gguf file, or ORG/NAME in the local Hugging Face "
        "cache");

  if (Artifact::LooksLikeOne(calibrate.model.model)) return Calibrated(options, context);
  Diagnosis diagnosis = DiagnoseModel(calibrate.model, calibrate.data.chat);
  Prognosis prognosis;
  Log quiet(context.log.console(), LogFormat::kText, /*quiet=*/true);
  if (diagnosis.supported()) Plan(calibrate, plan, quiet, diagnosis, prognosis);
  if (diagnosis.supported()) {
    for (Fact& fact : UseFacts(*diagnosis.spec, diagnosis.attention_codes))
      prognosis.facts.push_back(std::move(fact));
  }
  const std::string next = NextCommand(options, table, arguments, diagnosis);
  const ExitCode code = diagnosis.supported() ? ExitCode::kDone : ExitCode::kInput;

  if (options.json) {
    context.out << CanonicalJson({{"model", diagnosis.location.id},
                                  {"directory", diagnosis.location.directory.string()},
                                  {"supported", diagnosis.supported()},
                                  {"facts", FactsJson(diagnosis.facts)},
                                  {"prognosis", FactsJson(prognosis.facts)},
                                  {"plan", prognosis.plan},
                                  {"reasons", diagnosis.reasons},
                                  {"missing", diagnosis.missing},
                                  {"next", next}});
    return {code, ""};
  }
  std::ostream& out = context.out;
  out << fmt::format("{:<18}{}{}\n", "model", diagnosis.location.id,
                     diagnosis.location.revision.empty() ? "" : "@" + diagnosis.location.revision);
  PrintFacts(diagnosis.facts, out);
  if (!prognosis.facts.empty()) out << "\nWhat will happen:\n";
  PrintFacts(prognosis.facts, out);
  out << prognosis.of_ranks;
  PrintList("What is missing:", diagnosis.missing, out);
  PrintList("It cannot be calibrated, because:", diagnosis.reasons, out);
  if (!next.empty()) {
    out << fmt::format(
        "\n{}\n    {}\n",
        diagnosis.supported() ? "Next:" : "Next, if these fields do not matter:", next);
  }
  return {code, ""};
}

}  // namespace

Verb DoctorVerb(DoctorOptions* options, std::vector<std::string> arguments, PlanFunction plan) {
  OptionTable table(
      "oscar-calibrate doctor",
      "Describes a model, what will happen to it, what is missing, and the next command; if the "
      "model cannot be calibrated, prints all reasons and ends with exit code 3. Describes an "
      "artifact's contents and which layers need more than 2 bits.");
  table.Group("Doctor");
  table.Add(&options->json, {.name = "json",
                             .help = "print one JSON object",
                             .scope = OptionScope::kRun,
                             .only_once = true});
  table.Add(&options->tables, {.name = "tables",
                               .help = "do not describe a model, but print the supported families, "
                                       "weight formats and tokenizers as Markdown",
                               .scope = OptionScope::kRun,
                               .only_once = true});
  table.Add(&options->into, {.name = "into",
                             .help = "file that holds these tables between two marks, such as "
                                     "README.md; the tables in it are replaced",
                             .scope = OptionScope::kRun,
                             .only_once = true});
  table.Group("");
  AddCalibrateOptions(table, &options->calibrate);
  table.ShowFirst({"model", "json", "tables", "into", "data", "tokens", "self_generate", "for",
                   "bits", "device", "max_vram", "output"});
  table.Example("oscar-calibrate doctor Qwen/Qwen3-8B", "describes a model before anything is run");
  table.Example("oscar-calibrate doctor --tables --into configs/docs/support.md",
                "updates the tables after a family was added");
  return {table, [=](CommandContext& context) {
            return Doctor(*options, table, arguments, plan, context);
          }};
}

}  // namespace oscar
