// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/calibrate_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "capture/model/describe_layers.h"
#include "capture/model/device.h"
#include "tools/cli/progress.h"  // Duration

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
          {"documents", input.source->sequence_lengths().size()},
          {"tokens", input.num_tokens()},
          {input.model() == nullptr ? "dump_read_bytes" : "weights_read_bytes", plan.bytes_read},
          {"token_chunk", model == nullptr ? 0 : model->loop().options().token_chunk},
          {"prefetch", model != nullptr && model->loop().options().prefetch},
          {"fits_beside", input.device.is_cpu() ? 0 : input.run.fits_beside},
          {"peak_device_bytes", plan.peak_device},
          {"peak_host_bytes", plan.peak_host},
          {"disk_while_running_bytes", plan.disk_while_running},
          {"disk_artifact_bytes", plan.disk_artifact},
          {"seconds", plan.seconds},
          {"auto_seconds", plan.auto_seconds}};
}

std::string PlanNumbers(const CalibrationInput& input, const CalibrationPlan& plan) {
  const bool dump = input.model() == nullptr;
  return fmt::format(
      "tokens            {} in {} documents\n"
      "device            {}, {}\n"
      "{:<18}{}\n"
      "peak GPU memory   {}\n"
      "peak host memory  {}\n"
      "disk, running     {}\n"
      "disk, artifact    {}\n"
      "expected time     about {}{}, and no less than the reading of the {}\n",
      input.num_tokens(), input.source->sequence_lengths().size(), DescribeDevice(input.device),
      ComputeDTypeName(input.dtype), dump ? "dump to read" : "weights to read",
      Bytes(plan.bytes_read), plan.peak_device == 0 ? std::string("none") : Bytes(plan.peak_device),
      Bytes(plan.peak_host), Bytes(plan.disk_while_running), Bytes(plan.disk_artifact),
      Duration(plan.seconds),
      plan.auto_seconds > 0 ? fmt::format(" ({:.0f} % of it for automatic choices)",
                                          100 * plan.auto_seconds / plan.seconds)
                            : std::string(),
      dump ? "dump" : "weights");
}

std::string PlanText(const CalibrationInput& input, const CalibrationPlan& plan) {
  // Of a dump there are geometries alone.
  ModelSpec geometries;
  geometries.layers = input.source->layers();
  const std::vector<std::string> layers =
      DescribeLayers(input.model() == nullptr ? geometries : input.model()->loop().spec());
  return fmt::format("layers            {}\n{}", fmt::join(layers, "\n                  "),
                     PlanNumbers(input, plan));
}

}  // namespace oscar
