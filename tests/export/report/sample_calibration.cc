// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/export/report/sample_calibration.h"

#include <cmath>
#include <vector>

namespace oscar {

double SampleWobble(int a, int b, int c) {
  const double x =
      std::sin(static_cast<double>(a) * 12.9898 + static_cast<double>(b) * 78.233 + c * 37.719) *
      43758.5453;
  return 2 * (x - std::floor(x)) - 1;
}

namespace {

const std::vector<double> kCandidates = {0.88, 0.90, 0.92, 0.94, 0.96, 0.98, 1.0};

Json Side(const SampleReportOptions& options, int layer, double best, int seed, int rotations) {
  constexpr int kDim = 128, kPoints = 64;
  Json ranks = Json::array(), spectrum = Json::array();
  double trace = 0;
  const double decay = 0.055 + 0.02 * SampleWobble(layer, seed, 1);
  for (int i = 0; i < kDim; ++i) trace += std::exp(-decay * i) + 0.002;
  for (int i = 0; i < kPoints; ++i) {
    const int rank = static_cast<int>(std::lround(i * (kDim - 1.0) / (kPoints - 1)));
    ranks.push_back(rank);
    spectrum.push_back((std::exp(-decay * rank) + 0.002) / trace);
  }
  Json curve = Json::array(), threshold = Json::array();
  double least = 1e9, chosen = 0;
  const double valley = best + 0.02 * SampleWobble(layer, seed, 2);
  for (double ratio : kCandidates) {
    const double error = 0.11 + 0.01 * SampleWobble(layer, seed) +
                         9 * std::pow(ratio - valley, 2) * (1 + 0.5 * best);
    curve.push_back(error);
    if (error <= least) {
      least = error;
      chosen = ratio;
    }
  }
  for (int head = 0; head < rotations; ++head)
    threshold.push_back(3.1 + 0.2 * SampleWobble(head, layer));
  Json side = {{"num_rotations", rotations},
               {"dim", kDim},
               {"clip_ratio", chosen},
               {"clip_threshold", threshold},
               {"orthogonality", 3.1e-15 * (1 + 0.3 * SampleWobble(layer, seed))},
               {"float32_orthogonality", 1.2e-7 * (1 + 0.3 * SampleWobble(layer, seed))},
               {"eigen_residual", 4.4e-15},
               {"min_relative_gap", 2.7e-6 * (1.5 + SampleWobble(layer, seed))},
               {"importance_max_over_mean", 1 + 1e-13},
               {"spectrum", spectrum},
               {"spectrum_ranks", ranks}};
  if (options.held_out) side["clip_error"] = curve;
  return side;
}

Json CalibrationArm(double kl) {
  return {{"rows", 2048},
          {"rows_beyond", 1707},
          {"kl_mean", kl},
          {"kl_mean_beyond", kl * 1.2},
          {"kl_max", kl * 19},
          {"output_rel_error", std::sqrt(kl) * 0.7},
          {"output_rel_error_beyond", std::sqrt(kl) * 0.75},
          {"kl_mean_no_windows", kl * 5.3},
          {"output_rel_error_no_windows", std::sqrt(kl) * 1.6}};
}

constexpr struct {
  const char* name;
  double kl;
} kCalibrationArms[] = {{"naive", 0.101},
                        {"hadamard", 0.064},
                        {"hadamard_clip", 0.036},
                        {"oscar_shared", 0.034},
                        {"oscar_per_head", 0.031}};

// Returns the options of a side: 2 bits and, if `mixed`, also 3 (heads of 2 and 4 bits alternate).
Json Options(int layer, int heads, bool mixed, int seed) {
  const auto option = [&](double bits, double scale) {
    Json clip = Json::array(), score = Json::array();
    for (int head = 0; head < heads; ++head) {
      clip.push_back(kCandidates[static_cast<size_t>((layer + head) % 4)]);
      score.push_back(scale * (1 + 0.3 * SampleWobble(layer, head, seed)));
    }
    Json json = {{"bits", bits},
                 {"clip", clip},
                 {"score", scale},
                 {"check", 1.1 * scale},
                 {"head_score", score},
                 {"head_check", score},
                 {"ratios", Json::array()},
                 {"curve", Json::array()}};
    return json;
  };
  Json options = Json::array({option(2, 0.03)});
  if (!mixed) return options;
  options.push_back(option(3, 0.01));
  for (int head = 0; head < heads; ++head)
    options.back()["head_bits"].push_back(head % 2 == 0 ? 2 : 4);
  return options;
}

Json Choice(const SampleReportOptions& options, int layer) {
  const bool mixed = layer % 3 == 0, lost = layer == 1;
  const int heads = options.num_kv_heads;
  const char* const name = options.hostile ? kHostileText : "pair_scaled per_head centred r_h_pbr";
  Json choice = Json::parse(R"({
    "values": {"name": "attention_output per_head r_h_pbr"},
    "quant_group_size": 128, "v_bits": 2.0,
    "guard": {"k": 0.033, "k_hadamard": 0.041, "k_fallback": "", "v": 0.21, "v_hadamard": 0.24,
              "v_fallback": ""},
    "stability": {"v_cost": 0.01, "tokens": 7000, "few_tokens": false},
    "scores": [{"side": "k", "bits": 2, "clip": 0.92, "quant_group_size": 128, "score": 0.03,
                "check": 0.033}]})");
  choice["keys"]["name"] = lost ? "oscar shared h_pbr" : name;
  if (lost) choice["guard"]["k_fallback"] = name;
  choice["k_bits"] = mixed ? 3.0 : 2.0;
  choice["k_options"] = Options(layer, heads, mixed, 9);
  choice["v_options"] = Options(layer, heads, false, 10);
  choice["stability"]["k_cost"] = layer == 2 ? 0.31 : 0.02;
  choice["stability"]["unstable"] = layer == 2;
  choice["refined"] = layer == 4;
  choice["scores"][0]["recipe"] = name;
  return choice;
}

}  // namespace

Json SampleLayerReport(const SampleReportOptions& options, int layer) {
  Json arms = Json::object();
  if (options.held_out) {
    for (const auto& arm : kCalibrationArms)
      arms[arm.name] = CalibrationArm(arm.kl * std::exp(0.7 * SampleWobble(layer, 11)));
  }
  const int heads = options.num_kv_heads;
  Json json = {{"layer_id", layer},
               {"num_q_heads", heads * 4},
               {"num_kv_heads", heads},
               {"head_dim", 128},
               {"v_head_dim", 128},
               {"tokens", 16384},
               {"sides",
                {{"k", Side(options, layer, 0.95, 1, heads)},
                 {"v", Side(options, layer, 0.92, 2, heads)},
                 {"k_shared", Side(options, layer, 0.95, 3, 1)},
                 {"v_shared", Side(options, layer, 0.92, 4, 1)}}},
               {"arms", arms}};
  if (options.held_out) {
    json["clip_candidates"] = kCandidates;
    json["auto"] = Choice(options, layer);
  }
  return json;
}

Json SampleServingChoice() {
  return Json::parse(R"({
    "for": "any", "bits": 2.5, "bits_spent": 2.25, "bits_stored": 2.5,
    "windows_priced_at_tokens": 32768, "unstable_layers": 1, "hadamard_layers": 1,
    "k_clip_ratio": 0.9, "v_clip_ratio": 0.88,
    "windows": [{"sink_tokens": 64, "recent_tokens": 256, "bits_per_element": 0.137,
                 "rows_beyond": 90, "kl": 0.021},
                {"sink_tokens": 128, "recent_tokens": 1024, "bits_per_element": 0.492,
                 "rows_beyond": 40, "kl": 0.006}]})");
}

Json SampleSummary(const SampleReportOptions& options) {
  Json summary = {{"layers", options.num_layers},    {"orthogonality", 4e-15},
                  {"float32_orthogonality", 1.5e-7}, {"eigen_residual", 4.4e-15},
                  {"min_relative_gap", 1.4e-6},      {"arms", Json::object()}};
  if (options.held_out) {
    for (const auto& arm : kCalibrationArms) summary["arms"][arm.name] = CalibrationArm(arm.kl);
  }
  return summary;
}

Json SampleKernels(const SampleReportOptions& options) {
  constexpr int kCodes = 9'000'000;  // per head
  int differing = 0;
  Json layers = Json::array();
  for (int layer = 0; layer < options.num_layers; ++layer) {
    Json heads = Json::array();
    for (int head = 0; head < options.num_kv_heads; ++head) {
      const int wrong = !options.kernels_pass && layer == 3 ? 17 + head : 0;
      differing += wrong;
      heads.push_back({{"codes", kCodes},
                       {"differing_codes", wrong},
                       {"differing_metadata", 0},
                       {"differing_simulated", wrong},
                       {"kernel_error", 0.0011 * (1 + 0.3 * SampleWobble(layer, head, 7))},
                       {"total_error", 0.121 * (1 + 0.3 * SampleWobble(layer, head, 8))}});
    }
    layers.push_back({{"layer_id", layer},
                      {"write_us", 61.5 + layer},
                      {"decode_us", 14.2 + layer},
                      {"heads", heads}});
  }
  Json kernels = Json::parse(R"({
    "gpu": "NVIDIA H200", "rotations": "per_head", "sink_tokens": 64, "recent_tokens": 256,
    "format": {"k_bits": 2, "v_bits": 2, "quant_group_size": 128, "page_tokens": 128,
               "metadata": "f32"},
    "tokens": 24576, "queries": 48, "differing_metadata": 0, "kernel_error": 0.0011,
    "kernel_error_limit": 0.01, "total_error": 0.121})");
  if (options.hostile) kernels["gpu"] = kHostileText;
  kernels["codes"] = int64_t{kCodes} * options.num_layers * options.num_kv_heads;
  kernels["differing_codes"] = kernels["differing_simulated"] = differing;
  kernels["passed"] = options.kernels_pass;
  kernels["layers"] = layers;
  return kernels;
}

}  // namespace oscar
