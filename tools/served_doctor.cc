// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/served_doctor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "capture/files/quote.h"
#include "export/served/served_checks.h"
#include "export/served/served_directory.h"

namespace oscar {
namespace {

std::string GeometryLine(const ServedDirectory& served) {
  if (served.layers.empty()) return "no config.json that says its layers";
  const ServedLayer& layer = served.layers.front();
  const bool alike = std::ranges::all_of(served.layers, [&](const ServedLayer& other) {
    return other.num_kv_heads == layer.num_kv_heads && other.head_dim == layer.head_dim;
  });
  return fmt::format("{}, {} layers, {} with a cache of {}", Escaped(served.model_type, 40),
                     served.num_layers, served.layers.size(),
                     served.latent ? "latents (MLA)"
                     : alike ? fmt::format("{} KV heads of {}", layer.num_kv_heads, layer.head_dim)
                             : "several geometries");
}

std::vector<std::string> Holdings(const ServedDirectory& served) {
  std::vector<std::string> lines;
  std::map<std::string_view, size_t> spellings;
  for (const StoredScale& scale : served.scales) ++spellings[scale.spelling->k];
  for (const auto& [spelling, count] : spellings)
    lines.push_back(fmt::format("{} scales named {}", count, spelling.substr(1)));
  for (const CacheRecipe& recipe : served.recipes) {
    const std::string declared =
        recipe.declares() ? "a cache of " + Escaped(recipe.Algorithm(), 40) : "no cache type";
    lines.push_back(
        fmt::format("{}: {} declares {}", recipe.file, Escaped(recipe.method, 40), declared));
  }
  for (const ScaleFile& file : served.scale_files) {
    const char* what = file.kind == ScaleFileKind::kSglang     ? "factors for SGLang"
                       : file.kind == ScaleFileKind::kMlaOuter ? "scales of NVFP4 latents"
                                                               : "scales for onnxruntime-genai";
    lines.push_back(fmt::format("{}: {}", Escaped(file.file), what));
  }
  for (const ServedRotations& rotations : served.rotations)
    lines.push_back(fmt::format("{}: rotations, format {}", Escaped(rotations.file),
                                RotationKindName(rotations.content.kind)));
  for (const ServedGguf& gguf : served.ggufs)
    lines.push_back(fmt::format("{}: {}", Escaped(gguf.file),
                                gguf.is_means   ? "key means"
                                : gguf.is_model ? "a model"
                                                : "tensors without a model"));
  if (served.values_absorbed) lines.emplace_back("values rotated by v_proj, and back by o_proj");
  if (lines.empty()) lines.emplace_back("nothing for a quantized cache: it stays in 16 bits");
  return lines;
}

Json FindingJson(const ServedFinding& finding) {
  return {{"check", finding.check->name},    {"effect", ServedEffectName(finding.check->effect)},
          {"found", finding.found},          {"why", finding.check->verdict},
          {"remedy", finding.check->remedy}, {"looks_at", finding.check->looks_at}};
}

Json VerdictJson(const ServedVerdict& verdict) {
  Json findings = Json::array();
  for (const ServedFinding& finding : verdict.findings) findings.push_back(FindingJson(finding));
  return {{"runtime", verdict.runtime},
          {"right", !verdict.wrong()},
          {"loads", verdict.loads},
          {"findings", findings}};
}

void PrintVerdict(const ServedVerdict& verdict, std::ostream& out) {
  out << fmt::format("\n{}: {}\n", verdict.runtime,
                     verdict.wrong() ? "not what the directory says" : "as the directory says");
  if (!verdict.loads.empty()) out << fmt::format("  reads {}\n", fmt::join(verdict.loads, ", "));
  for (const ServedFinding& finding : verdict.findings) {
    out << fmt::format("- {} {}: {}\n", ServedEffectName(finding.check->effect), finding.found,
                       finding.check->verdict);
    if (!finding.check->remedy.empty())
      out << fmt::format("  instead: {}\n", finding.check->remedy);
  }
}

}  // namespace

void AddServedOptions(OptionTable& table, ServedOptions* options) {
  table.Add(
      &options->directory,
      {.name = "served",
       .help = "instead of looking at a model: a checkpoint directory as runtimes load it: "
               "which scales, rotations, means and recipes of a KV cache are in it, and which "
               "of them a runtime would load, ignore or misread",
       .scope = OptionScope::kRun,
       .only_once = true,
       .path = true});
  ChoiceNames<unsigned> names = {{"any", 0}};
  for (const NamedRuntime& runtime : ServedRuntimes())
    names.emplace_back(runtime.name, runtime.runtime);
  names.emplace_back("onnxruntime", kServedOnnx);  // as its project is called
  table.AddChoice(
      &options->runtime, names,
      {.name = "runtime",
       .help = "of --served: the runtime that will load it; any: exit code 3 only where "
               "none loads it right",
       .scope = OptionScope::kRun,
       .only_once = true});
  table.OnlyWith({"runtime"}, "served");
}

CommandResult DoctorServed(const ServedOptions& options, bool json, CommandContext& context) {
  const ServedDirectory served = ReadServedDirectory(options.directory);
  const std::vector<ServedVerdict> verdicts = JudgeServed(served, options.runtime);
  const bool wrong = !verdicts.empty() && std::ranges::all_of(verdicts, &ServedVerdict::wrong);
  const ExitCode code = wrong ? ExitCode::kInput : ExitCode::kDone;
  if (json) {
    Json judged = Json::array(), unread = Json::object();
    for (const ServedVerdict& verdict : verdicts) judged.push_back(VerdictJson(verdict));
    for (const ServedProblem& problem : served.unread) unread[Escaped(problem.file)] = problem.why;
    context.out << CanonicalJson({{"served", options.directory},
                                  {"model_type", served.model_type},
                                  {"layers", served.layers.size()},
                                  {"holds", Holdings(served)},
                                  {"unread", unread},
                                  {"runtimes", judged},
                                  {"right", !wrong}});
    return {code, ""};
  }
  std::ostream& out = context.out;
  out << fmt::format("served            {}\nmodel             {}\nholds             {}\n",
                     options.directory, GeometryLine(served),
                     fmt::join(Holdings(served), "\n                  "));
  for (const ServedVerdict& verdict : verdicts) PrintVerdict(verdict, out);
  return {code, ""};
}

}  // namespace oscar
