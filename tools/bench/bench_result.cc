// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/bench_result.h"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>

#include "tools/cli/command.h"
#include "tools/cli/text_table.h"

namespace oscar {
namespace {

// The decode shape with a required speedup over the best BF16 attention, and that speedup.
constexpr std::string_view kBarShape = "batch 1, 100000 tokens";
constexpr double kPeerBar = 4;

// Returns "batch 1, 100000 tokens" for "batch 1, 100000 tokens, fp32 metadata".
std::string_view ShapeOf(std::string_view name) {
  const size_t first = name.find(',');
  return first == std::string_view::npos ? name : name.substr(0, name.find(',', first + 1));
}

Json SummaryJson(const BenchSummary& summary) {
  return {{"median_us", summary.median},
          {"p10_us", summary.p10},
          {"p90_us", summary.p90},
          {"min_us", summary.min},
          {"samples", summary.samples}};
}

Json ResultJson(const BenchResult& result, const BenchBandwidth& bandwidth, int64_t l2_bytes) {
  Json json = {{"kernel", result.kernel}, {"name", result.name}};
  if (!result.error.empty()) json["error"] = result.error;
  if (result.check) json["check"] = {{"ok", result.check->ok}, {"text", result.check->text}};
  if (!result.timing) return json;
  json["bytes"] = result.bytes;
  json["buffers"] = result.buffers;
  json["cold_l2"] = result.bytes * result.buffers >= 2.0 * static_cast<double>(l2_bytes);
  if (result.flops > 0) {
    json["flops"] = result.flops;
    json["peak_tflops"] = result.peak_tflops;
  }
  json["eager"] = SummaryJson(result.timing->eager);
  if (result.timing->graph) json["graph"] = SummaryJson(*result.timing->graph);
  const double median = result.timing->best().median;
  if (const auto floor = FloorUs(result, bandwidth)) {
    json["floor_us"] = *floor;
    json["floor_share"] = *floor / median;
    json["bandwidth_share"] = result.bytes / median / bandwidth.read;
  }
  if (result.bar_us > 0) {
    json["bar_us"] = result.bar_us;
    json["bar_met"] = median <= result.bar_us;
  }
  return json;
}

std::string Us(double value) {
  return value < 1e5 ? fmt::format("{:.2f}", value) : fmt::format("{:.0f}", value);
}

}  // namespace

BenchResult RunEntry(const BenchEntry& entry, int samples) {
  BenchResult result;
  result.kernel = entry.kernel;
  result.name = entry.name;
  try {
    const BenchCase bench = entry.make();
    result.bytes = bench.bytes;
    result.flops = bench.flops;
    result.peak_tflops = bench.peak_tflops;
    result.bar_us = bench.bar_us;
    result.buffers = bench.buffers;
    const BenchTiming timing = TimeCase(bench, samples);
    result.check = bench.check();
    if (result.check->ok) result.timing = timing;
  } catch (const std::exception& error) {
    const Failure failure = DescribeFailure(error);
    result.error = failure.message;
    result.error_code = failure.exit_code;
    cudaGetLastError();  // clears a failed allocation, else the next case's launch reports it
  }
  return result;
}

BenchBandwidth BestBandwidth(const std::vector<BenchResult>& results) {
  BenchBandwidth best;
  for (const BenchResult& result : results) {
    if (!result.timing) {
      throw ResourceError(fmt::format("{}, {}: {}", result.kernel, result.name,
                                      result.check ? result.check->text : result.error));
    }
    double& value = result.name.starts_with("read") ? best.read : best.copy;
    value = std::max(value, result.bytes / result.timing->best().median);
  }
  return best;
}

std::optional<double> FloorUs(const BenchResult& result, const BenchBandwidth& bandwidth) {
  const bool on_device = result.timing && result.timing->graph.has_value();
  const double memory = on_device ? result.bytes / bandwidth.read : 0;
  const double compute = result.peak_tflops > 0 ? result.flops / (1e6 * result.peak_tflops) : 0;
  const double floor = std::max(memory, compute);
  return floor > 0 ? std::optional(floor) : std::nullopt;
}

std::vector<BenchRatio> PeerRatios(const std::vector<BenchResult>& results) {
  std::vector<BenchRatio> ratios;
  for (const BenchResult& ours : results) {
    if (ours.kernel != "decode" || !ours.timing) continue;
    BenchRatio ratio{.name = ours.name, .ours_us = ours.timing->best().median};
    for (const BenchResult& peer : results) {
      if (peer.kernel != "peer" || !peer.timing || ShapeOf(peer.name) != ShapeOf(ours.name))
        continue;
      const double us = peer.timing->best().median;
      ratio.peer_us = ratio.peer_us > 0 ? std::min(ratio.peer_us, us) : us;
    }
    if (ratio.peer_us == 0) continue;
    if (ours.name == kBarShape) ratio.bar = kPeerBar;
    ratios.push_back(std::move(ratio));
  }
  return ratios;
}

bool IsPeerOfDecode(const BenchEntry& entry) {
  return entry.kernel == "peer" && ShapeOf(entry.name) == kBarShape;
}

Json BenchJson(const std::vector<BenchResult>& results, const BenchBandwidth& bandwidth,
               int64_t l2_bytes) {
  Json list = Json::array(), ratios = Json::array();
  for (const BenchResult& result : results) list.push_back(ResultJson(result, bandwidth, l2_bytes));
  for (const BenchRatio& ratio : PeerRatios(results)) {
    Json json = {{"name", ratio.name},
                 {"decode_us", ratio.ours_us},
                 {"peer_us", ratio.peer_us},
                 {"ratio", ratio.value()}};
    if (ratio.bar > 0) {
      json["bar"] = ratio.bar;
      json["bar_met"] = ratio.value() >= ratio.bar;
    }
    ratios.push_back(std::move(json));
  }
  return {
      {"bandwidth", {{"read_tb_s", bandwidth.read * 1e-6}, {"copy_tb_s", bandwidth.copy * 1e-6}}},
      {"results", list},
      {"ratios", ratios}};
}

std::string BenchText(const std::vector<BenchResult>& results, const BenchBandwidth& bandwidth) {
  TextTable table({"kernel", "case", ">median us", ">p10", ">p90", ">min", ">eager", ">MB",
                   ">floor us", ">% bandwidth", ">bar us", "bar", "result"});
  for (const BenchResult& result : results) {
    std::vector<std::string> row = {result.kernel, result.name};
    if (!result.timing) {
      row.resize(12);
      row.push_back(result.check ? "WRONG: " + result.check->text : "FAILED: " + result.error);
      table.AddRow(std::move(row));
      continue;
    }
    const BenchSummary& best = result.timing->best();
    const auto floor = FloorUs(result, bandwidth);
    row.insert(
        row.end(),
        {Us(best.median), Us(best.p10), Us(best.p90), Us(best.min), Us(result.timing->eager.median),
         fmt::format("{:.1f}", result.bytes * 1e-6), floor ? Us(*floor) : "",
         floor ? fmt::format("{:.1f}", 100 * result.bytes / best.median / bandwidth.read) : "",
         result.bar_us > 0 ? Us(result.bar_us) : "",
         result.bar_us == 0             ? ""
         : best.median <= result.bar_us ? "met"
                                        : "MISSED",
         "right: " + result.check->text});
    table.AddRow(std::move(row));
  }
  std::string text = table.ToString();
  for (const BenchRatio& ratio : PeerRatios(results)) {
    text +=
        fmt::format("decode, {}: {:.2f} us; best BF16 of this run {:.2f} us: {:.2f} times as fast",
                    ratio.name, ratio.ours_us, ratio.peer_us, ratio.value());
    if (ratio.bar > 0)
      text +=
          fmt::format(" (bar {}: {})", ratio.bar, ratio.value() >= ratio.bar ? "met" : "MISSED");
    text += '\n';
  }
  return text;
}

ExitCode BenchExitCode(const std::vector<BenchResult>& results) {
  ExitCode code = ExitCode::kDone;
  for (const BenchResult& result : results) {
    if (result.check && !result.check->ok) return ExitCode::kGateFailed;
    if (code == ExitCode::kDone) code = result.error_code;
  }
  return code;
}

}  // namespace oscar
