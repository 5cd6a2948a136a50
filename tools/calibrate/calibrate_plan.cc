// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/calibrate/calibrate_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "capture/model/run/device.h"
#include "capture/model/spec/describe_layers.h"
#include "linalg/base/error.h"
#include "tools/cli/output_path.h"
#include "tools/cli/progress.h"  // Duration
#include "tools/cli/text_table.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

std::string Bytes(uint64_t bytes) {
  return bytes >= 1000000000 ? fmt::format("{:.2f} GB", static_cast<double>(bytes) / 1e9)
                             : fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

}  // namespace

Json PlanJson(const CalibrationInput& input, const CalibrationPlan& plan) {
  const ModelSource* model = input.model();
  return {{"layers", input.source->layers().size()},
          {"expert_bytes", model == nullptr ? 0 : model->loop().options().expert_bytes},
          {"documents", input.job_lengths().size()},
          {"tokens", input.job_tokens()},
          {std::string(input.source->what()) + "_read_bytes", plan.bytes_read},
          {"token_chunk", model == nullptr ? 0 : model->loop().options().token_chunk},
          {"prefetch", model != nullptr && model->loop().options().prefetch},
          {"fits_beside", input.device.is_cpu() ? 0 : input.run.fits_beside},
          {"peak_device_bytes", plan.peak_device},
          {"peak_host_bytes", plan.peak_host},
          {"disk_while_running_bytes", plan.disk_while_running},
          {"disk_artifact_bytes", plan.disk_artifact},
          {"seconds", plan.seconds},
          {"model_seconds", plan.model_seconds},
          {"statistics_seconds", plan.statistics_seconds},
          {"fit_seconds", plan.fit_seconds},
          {"auto_seconds", plan.auto_seconds}};
}

void CheckRoom(const fs::path& output, const CalibrationPlan& plan, const std::string& what) {
  CheckSpace(output, plan.disk_while_running, what);
  if (const std::string problem = HostMemoryProblem(plan); !problem.empty())
    throw ResourceError(problem, Remedy::kLess);
}

std::string PlanNumbers(const CalibrationInput& input, const CalibrationPlan& plan) {
  const std::string read(input.source->what());
  return fmt::format(
      "tokens            {} in {} documents\n"
      "device            {}, {}\n"
      "{:<18}{}\n"
      "peak GPU memory   {}\n"
      "peak host memory  {}\n"
      "disk, running     {}\n"
      "disk, {:<12}{}\n"
      "expected time     about {}{}, and at least the time to read the {}\n",
      input.job_tokens(), input.job_lengths().size(), DescribeDevice(input.device),
      ComputeDTypeName(input.dtype), read + " to read", Bytes(plan.bytes_read),
      plan.peak_device == 0 ? std::string("none") : Bytes(plan.peak_device), Bytes(plan.peak_host),
      Bytes(plan.disk_while_running), input.ranks.apart ? "shard" : "artifact",
      Bytes(plan.disk_artifact), Duration(plan.seconds),
      plan.auto_seconds > 0 ? fmt::format(" ({:.0f} % of it for automatic choices)",
                                          100 * plan.auto_seconds / plan.seconds)
                            : std::string(),
      read);
}

std::string PlanText(const CalibrationInput& input, const CalibrationPlan& plan) {
  // For a dump, only the geometries are known.
  ModelSpec geometries;
  geometries.layers = input.source->layers();
  const std::vector<std::string> layers =
      DescribeLayers(input.model() == nullptr ? geometries : input.model()->loop().spec());
  return fmt::format("layers            {}\n{}", fmt::join(layers, "\n                  "),
                     PlanNumbers(input, plan));
}

Json RankPlanJson(const std::vector<RankPlan>& plans) {
  Json rows = Json::array();
  for (const RankPlan& plan : plans) {
    rows.push_back({{"ranks", plan.ranks},
                    {"machines", plan.nodes},
                    {"most_tokens", plan.most_tokens},
                    {"read_per_machine_bytes", plan.read_per_node},
                    {"exchanged_bytes", plan.exchanged},
                    {"network_bytes", plan.network},
                    {"peak_device_bytes", plan.peak_device},
                    {"peak_host_bytes", plan.peak_host},
                    {"seconds", plan.seconds},
                    {"efficiency", plan.efficiency}});
  }
  return rows;
}

std::string RankPlanText(const std::vector<RankPlan>& plans) {
  const bool gpu = !plans.empty() && plans.front().peak_device > 0;
  TextTable table({">ranks", ">machines", ">most tokens of a rank", ">read per machine",
                   ">between ranks", ">over the network",
                   gpu ? ">GPU memory per rank" : ">memory per rank", ">time", ">efficiency"});
  for (const RankPlan& plan : plans) {
    table.AddRow({fmt::format("{}", plan.ranks), fmt::format("{}", plan.nodes),
                  fmt::format("{}", plan.most_tokens), Bytes(plan.read_per_node),
                  Bytes(plan.exchanged), Bytes(plan.network),
                  Bytes(gpu ? plan.peak_device : plan.peak_host), Duration(plan.seconds),
                  fmt::format("{:.0f} %", 100 * plan.efficiency)});
  }
  return "\n" + table.ToString() +
         fmt::format(
             "times assume devices like this one and transfers between ranks at {:g} GB/s within a "
             "machine and {:g} GB/s between machines; they do not include reading files\n",
             kBytesPerSecondInside / 1e9, kBytesPerSecondBetween / 1e9);
}

}  // namespace oscar
