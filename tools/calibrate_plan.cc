// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// See calibrate_plan.h.
#include "tools/calibrate_plan.h"

#include <fmt/format.h>

#include "capture/model/device.h"
#include "tools/cli/progress.h"  // Duration

namespace oscar {
namespace {

int64_t Tokens(const CalibrationInput& input) {
  int64_t tokens = 0;
  for (const auto& sequence : input.sequences) tokens += static_cast<int64_t>(sequence.size());
  return tokens;
}

std::string Bytes(uint64_t bytes) {
  return bytes >= 1000000000 ? fmt::format("{:.2f} GB", static_cast<double>(bytes) / 1e9)
                             : fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

}  // namespace

Json PlanJson(const CalibrationInput& input, const CalibrationPlan& plan) {
  return {{"layers", input.spec.layers.size()},
          {"documents", input.sequences.size()},
          {"tokens", Tokens(input)},
          {"weights_read_bytes", plan.weights_read},
          {"peak_device_bytes", plan.peak_device},
          {"peak_host_bytes", plan.peak_host},
          {"disk_while_running_bytes", plan.disk_while_running},
          {"disk_artifact_bytes", plan.disk_artifact},
          {"seconds", plan.seconds}};
}

std::string PlanText(const CalibrationInput& input, const CalibrationPlan& plan) {
  const AttentionSpec& a = input.spec.layers.at(0).attention;
  return fmt::format(
      "layers            {} ({} query heads, {} KV heads, head_dim {})\n"
      "tokens            {} in {} documents\n"
      "device            {}, {}\n"
      "weights to read   {}\n"
      "peak GPU memory   {}\n"
      "peak host memory  {}\n"
      "disk, running     {}\n"
      "disk, artifact    {}\n"
      "expected time     about {}, and no less than the reading of the weights\n",
      input.spec.layers.size(), a.num_q_heads, a.num_kv_heads, a.head_dim, Tokens(input),
      input.sequences.size(), DescribeDevice(input.device), ComputeDTypeName(input.dtype),
      Bytes(plan.weights_read),
      plan.peak_device == 0 ? std::string("none") : Bytes(plan.peak_device), Bytes(plan.peak_host),
      Bytes(plan.disk_while_running), Bytes(plan.disk_artifact), Duration(plan.seconds));
}

}  // namespace oscar
