// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// oscar-bench: times kernels against their floors and checks their results in the same run.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "capture/files/strict_json.h"
#include "linalg/base/error.h"
#include "tools/bench/bench_bandwidth.h"
#include "tools/bench/bench_machine.h"
#include "tools/bench/bench_result.h"
#include "tools/bench/bench_table.h"
#include "tools/cli/build_info.h"
#include "tools/cli/command.h"

namespace oscar {
namespace {

constexpr int kBenchVersion = 1;  // version of the JSON format

struct BenchOptions {
  std::string kernel;
  std::string filter;
  int64_t samples = 100;
  bool list = false;
  bool json = false;
};

std::vector<BenchEntry> AllEntries() {
  std::vector<BenchEntry> all;
  for (const BenchEntries entries : BenchTable()) {
    for (BenchEntry& entry : entries()) all.push_back(std::move(entry));
  }
  return all;
}

OptionTable BenchOptionTable(BenchOptions* options) {
  std::vector<std::string> kernels = {"all"};
  for (const BenchEntry& entry : AllEntries()) {
    if (std::ranges::find(kernels, entry.kernel) == kernels.end()) kernels.push_back(entry.kernel);
  }
  OptionTable table("oscar-bench",
                    "Times the kernels against the limits of the machine's memory and arithmetic, "
                    "and checks their results in the same run.");
  table.Add(&options->kernel, {.name = "kernel",
                               .help = "the kernel to measure",
                               .choices = kernels,
                               .scope = OptionScope::kRun,
                               .positional = true,
                               .required = true});
  table.Add(&options->filter, {.name = "filter",
                               .help = "run only the cases whose names contain this text",
                               .unit = "text",
                               .scope = OptionScope::kRun});
  table.Add(&options->samples,
            {.name = "samples",
             .help = "how often each case is timed; a case that takes longer than 5 ms is timed a "
                     "fifth as often, but at least 20 times",
             .min = 1,
             .scope = OptionScope::kRun});
  table.Add(&options->list,
            {.name = "list", .help = "print the cases and stop", .scope = OptionScope::kRun});
  table.Add(&options->json, {.name = "json",
                             .help = "print one JSON object instead of a table",
                             .scope = OptionScope::kRun});
  table.Example("oscar-bench all --json",
                "measures every kernel and the kernel it is compared with");
  table.Example("oscar-bench decode --filter 'batch 1'", "measures some cases of one kernel");
  return table;
}

// Returns the requested cases in the table's order. Reference measurements always run, so they are
// left out.
std::vector<BenchEntry> Chosen(const BenchOptions& options) {
  std::set<std::string> references;
  for (const BenchEntry& entry : ReferenceBandwidth()) references.insert(entry.name);
  std::vector<BenchEntry> chosen;
  bool has_decode = false;
  const std::vector<BenchEntry> all = AllEntries();
  for (const BenchEntry& entry : all) {
    if (options.kernel != "all" && options.kernel != entry.kernel) continue;
    if (entry.name.find(options.filter) == std::string::npos) continue;
    has_decode = has_decode || entry.kernel == "decode";
    if (!references.contains(entry.name)) chosen.push_back(entry);
  }
  if (has_decode && options.kernel == "decode") {
    for (const BenchEntry& entry : all) {
      if (IsPeerOfDecode(entry)) chosen.push_back(entry);
    }
  }
  if (chosen.empty() && options.kernel != "bandwidth")
    throw UsageError(
        fmt::format("--filter {}: no case of {} has this text in its name; --list prints the cases",
                    options.filter, options.kernel));
  return chosen;
}

std::string Utc() {
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  const std::chrono::year_month_day date{std::chrono::floor<std::chrono::days>(now)};
  const std::chrono::hh_mm_ss time{now - std::chrono::floor<std::chrono::days>(now)};
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     time.hours().count(), time.minutes().count(), time.seconds().count());
}

std::vector<BenchResult> RunAll(const std::vector<BenchEntry>& entries, const BenchOptions& options,
                                CommandContext& context) {
  std::vector<BenchResult> results;
  for (const BenchEntry& entry : entries) {
    context.stop.ThrowIfRequested("no results were kept");
    context.log.Info("case", fmt::format("{}: {}", entry.kernel, entry.name),
                     {{"kernel", entry.kernel}, {"name", entry.name}});
    results.push_back(RunEntry(entry, static_cast<int>(options.samples)));
  }
  return results;
}

std::string MachineText(const Json& machine, const std::string& date, const BenchBandwidth& best) {
  std::string text =
      fmt::format("{}, {} SMs, CUDA driver {}", machine.at("gpu").get<std::string>(),
                  machine.at("sms").dump(), machine.at("cuda_driver").get<std::string>());
  if (machine.contains("driver")) text += " (" + machine.at("driver").get<std::string>() + ")";
  if (machine.contains("loaded") && machine.at("loaded").is_object()) {
    text += fmt::format("; under load SM {} MHz of {}, memory {} MHz, not locked by this program",
                        machine.at("loaded").at("sm_mhz").get<std::string>(),
                        machine.at("max_sm_mhz").get<std::string>(),
                        machine.at("loaded").at("memory_mhz").get<std::string>());
  }
  return fmt::format("{}\n{}, commit {}; memory read {:.2f} TB/s, copy {:.2f} TB/s\n", text, date,
                     ThisBuild().git_commit.substr(0, 12), best.read * 1e-6, best.copy * 1e-6);
}

CommandResult Bench(const BenchOptions& options, CommandContext& context) {
  const std::vector<BenchEntry> chosen = Chosen(options);
  if (options.list || context.dry_run) {
    for (const BenchEntry& entry : ReferenceBandwidth())
      context.out << fmt::format("{}: {}\n", entry.kernel, entry.name);
    for (const BenchEntry& entry : chosen)
      context.out << fmt::format("{}: {}\n", entry.kernel, entry.name);
    return {};
  }
  CheckCudaDevice();
  const Json machine = DescribeBenchMachine();
  std::vector<BenchResult> results = RunAll(ReferenceBandwidth(), options, context);
  const BenchBandwidth bandwidth = BestBandwidth(results);
  for (BenchResult& result : RunAll(chosen, options, context)) results.push_back(std::move(result));

  const std::string date = Utc();
  if (options.json) {
    Json json = BenchJson(results, bandwidth, L2Bytes());
    json["$schema"] = {{"name", "oscar-bench"}, {"version", kBenchVersion}};
    json["program"] = ProgramJson();
    json["program"]["cuda_toolkit"] = ThisBuild().cuda_toolkit;
    json["program"]["libtorch"] = ThisBuild().libtorch;  // the peer is LibTorch's attention
    json["machine"] = machine;
    json["date"] = date;
    json["samples"] = options.samples;
    context.out << CanonicalJson(json);
  } else {
    context.out << MachineText(machine, date, bandwidth) << BenchText(results, bandwidth);
  }
  return {BenchExitCode(results)};
}

}  // namespace
}  // namespace oscar

int main(int argc, char** argv) {
  oscar::BenchOptions options;
  return oscar::RunCommand(
      argc, argv, oscar::BenchOptionTable(&options),
      [&](oscar::CommandContext& context) { return oscar::Bench(options, context); });
}
