// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Longer than 400 lines because it makes a report with all of its parts.
#include "tests/export/report/sample_report.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "export/measures/table.h"
#include "export/report/report_schema.h"
#include "tests/export/report/sample_calibration.h"

namespace oscar {
namespace {

struct SampleArm {
  const char* method;
  const char* description;
  bool clip, windows, null_control;
  double kl, perplexity, needle, bits;  // roughly as measured on a small model
  const char* ideal = nullptr;          // for a runtime: the arm that it approximates
};

constexpr double kReferencePerplexity = 2.4610;
constexpr SampleArm kArms[] = {
    {"bf16", "the reference, without quantization", false, false, false, 0, 2.4610, 0.989, 16},
    {"naive", "2 bits per token and head, no rotation", false, true, false, 0.1125, 2.5175, 0.62,
     2},
    {"hadamard", "Hadamard rotation of every head, 2 bits (QuaRot)", false, true, false, 0.0725,
     2.4946, 0.78, 2},
    {"hadamard", "Hadamard rotation of every head, 2 bits (QuaRot)", true, true, false, 0.0392,
     2.4716, 0.91, 2},
    {"oscar_shared", "OSCAR, one rotation for all KV heads of a layer, 2 bits", true, true, false,
     0.0388, 2.4751, 0.92, 2},
    {"oscar_per_head", "OSCAR, a rotation for each KV head, 2 bits", true, true, false, 0.0351,
     2.4715, 0.93, 2},
    {"int4_hadamard", "Hadamard rotation of every head, 4 bits", false, false, false, 0.0168,
     2.4868, 0.97, 4},
    {"oscar_per_head", "OSCAR, a rotation for each KV head, 2 bits", true, false, false, 0.2103,
     2.9137, 0.41, 2},
    {"random_rotation", "null control: a random rotation for each KV head, 2 bits", true, true,
     true, 0.0401, 2.4729, 0.90, 2},
    {"wrong_layer", "null control: the rotations of another layer, 2 bits", true, true, true,
     0.0447, 2.4790, 0.88, 2},
    {"runtime_sglang", "OSCAR's SGLang", false, false, false, 0.0419, 2.4767, 0.91, 2,
     "oscar_shared+clip+windows"},
    // Only in the large sample:
    {"identity", "null control: no rotation, with the artifact's clip ratios, 2 bits", true, true,
     true, 0.0893, 2.5031, 0.70, 2},
    {"shuffled_tokens", "null control: fitted to covariances of shuffled tokens, 2 bits", true,
     true, true, 0.0415, 2.4740, 0.89, 2},
    {"naive", "2 bits per token and head, no rotation", false, false, false, 0.585, 5.180, 0.05, 2},
    {"hadamard", "Hadamard rotation of every head, 2 bits (QuaRot)", false, false, false, 0.420,
     4.084, 0.12, 2},
};
constexpr size_t kSmallArms = 11, kHeadline = 5;

std::string Name(const SampleArm& arm) {
  return std::string(arm.method) + (arm.clip ? "+clip" : "") + (arm.windows ? "+windows" : "");
}

Json Interval(double mean, double share) { return {mean * (1 - share), mean * (1 + share)}; }

Json Distribution(double mean) {
  return {{"mean", mean},          {"interval", Interval(mean, 0.06)},
          {"median", mean * 0.61}, {"p90", mean * 2.2},
          {"p99", mean * 5.3},     {"max", mean * 23.7}};
}

std::vector<int> Lengths(const SampleReportOptions& options) {
  std::vector<int> lengths;
  for (int length = options.max_length; length >= 512 && lengths.size() < 4; length /= 2)
    lengths.insert(lengths.begin(), length);
  return lengths;
}

// Returns at most 32 position buckets of equal width (at least 64 tokens each).
std::vector<std::pair<int, int>> Buckets(int max_length) {
  std::vector<std::pair<int, int>> buckets;
  const int step = std::max(64, max_length / 32);
  for (int from = 0; from < max_length; from += step)
    buckets.emplace_back(from, std::min(from + step, max_length));
  return buckets;
}

Json Metrics(const SampleReportOptions& options, const SampleArm& arm, int seed, double factor) {
  const double kl = arm.kl * factor;
  Json heads = {
      {"layer_ids", Json::array()}, {"kl", Json::array()}, {"output_rel_error", Json::array()}};
  Json worst = {{"layer_id", 0}, {"kv_head", 0}, {"kl", -1.0}};
  for (int layer = 0; layer < options.num_layers; ++layer) {
    Json of_layer = Json::array(), output = Json::array();
    for (int head = 0; head < options.num_kv_heads; ++head) {
      const double depth = static_cast<double>(layer) / options.num_layers;
      const double value =
          kl * std::exp(0.9 * SampleWobble(layer, head, seed % 3) + 0.8 * (depth - 0.5));
      of_layer.push_back(value);
      output.push_back(std::sqrt(value) * 0.7);
      if (value > worst["kl"].get<double>())
        worst = {{"layer_id", layer}, {"kv_head", head}, {"kl", value}};
    }
    heads["layer_ids"].push_back(layer);
    heads["kl"].push_back(of_layer);
    heads["output_rel_error"].push_back(output);
  }
  Json by_position = Json::array(), by_length = Json::array();
  for (const auto& [from, to] : Buckets(options.max_length)) {
    const bool inside = arm.windows && to <= 320;
    const double middle = (from + to) / 2.0;
    const double growth =
        std::pow(middle / options.max_length, 0.35) * (1 + 0.05 * SampleWobble(from, seed));
    by_position.push_back({{"from", from},
                           {"to", to},
                           {"rows", 1536},
                           {"kl", inside ? 0.0 : kl * growth},
                           {"inside_windows", inside}});
  }
  for (int length : Lengths(options)) {
    by_length.push_back({{"length", length},
                         {"sequences", 6},
                         {"kl", kl * std::pow(length / double(options.max_length), 0.3)}});
  }
  const double root = std::sqrt(kl);
  return {{"rows", 12288},
          {"kl", Distribution(kl)},
          {"kl_all", kl * 0.83},
          {"inside_windows", {{"rows", arm.windows ? 1920 : 0}, {"kl", 0.0}}},
          {"beyond_windows", {{"rows", 10368}, {"kl", kl * 0.97}}},
          {"output_rel_error", root * 0.66},
          {"logit_mse", kl * 3.1},
          {"logit_rel_error", root * 0.21},
          {"k_mse", kl * 0.9},
          {"k_rel_error", root * 0.9},
          {"v_mse", kl * 0.07},
          {"v_rel_error", root * 1.4},
          {"k_term", root * 0.41},
          {"v_term", root * 0.53},
          {"worst", worst},
          {"by_position", by_position},
          {"by_length", by_length},
          {"heads", heads}};
}

Json TextMetrics(const SampleReportOptions& options, const SampleArm& arm, int seed) {
  const double ratio = arm.perplexity / kReferencePerplexity;
  Json by_position = Json::array();
  for (const auto& [from, to] : Buckets(options.max_length)) {
    if (to <= options.max_length / 4) continue;
    by_position.push_back({{"from", from},
                           {"to", to},
                           {"token_kl", arm.kl * 0.31 * (1 + 0.25 * SampleWobble(from, seed, 5))},
                           {"nll", std::log(arm.perplexity) * (1 + 0.04 * SampleWobble(from, 3))}});
  }
  return {{"scored_tokens", 18426},
          {"perplexity", arm.perplexity},
          {"perplexity_interval", Interval(arm.perplexity, 0.021)},
          {"ppl_ratio", ratio},
          {"ppl_ratio_interval", Interval(ratio, 0.0013)},
          {"token_kl", Distribution(arm.kl * 0.31)},
          {"top1_agreement", 1 - arm.kl * 0.9},
          {"by_position", by_position}};
}

Json NeedleMetrics(const SampleReportOptions& options, const SampleArm& arm, int seed) {
  static constexpr const char* kTasks[] = {"single_1",    "single_2",    "single_3",
                                           "multi_key_1", "multi_key_2", "multi_key_3",
                                           "multi_value", "multi_query", "variable_tracking"};
  Json by_task = Json::array(), by_length = Json::array(), by_depth = Json::array();
  Json by_length_depth = Json::array();
  const auto right = [&](double share) {  // rounded to 8 samples
    return std::round(std::clamp(share, 0.0, 1.0) * 8) / 8;
  };
  for (int task = 0; task < 9; ++task) {
    for (int length : Lengths(options)) {
      const double hard = 0.06 * task * (1 - arm.needle) * 4 + 0.1 * length / options.max_length;
      by_task.push_back(
          {{"task", options.hostile && task == 3 ? kHostileText : kTasks[task]},
           {"length", length},
           {"samples", 8},
           {"accuracy", right(arm.needle + 0.1 - hard + 0.05 * SampleWobble(task, length))},
           {"answer_nll", (1 - arm.needle) * 2}});
    }
  }
  for (int length : Lengths(options)) {
    by_length.push_back(
        {{"length", length},
         {"samples", 72},
         {"accuracy", std::min(1.0, arm.needle + 0.06 * (1 - double(length) / options.max_length))},
         {"answer_nll", (1 - arm.needle) * 2}});
  }
  for (int depth = 0; depth < 100; depth += 25) {
    by_depth.push_back(
        {{"depth_from", depth},
         {"depth_to", depth + 25},
         {"samples", 108},
         {"accuracy", std::clamp(arm.needle + 0.04 * SampleWobble(depth, seed), 0.0, 1.0)}});
    for (int length : Lengths(options)) {
      by_length_depth.push_back(
          {{"length", length},
           {"depth_from", depth},
           {"depth_to", depth + 25},
           {"samples", 27},
           {"accuracy", right(arm.needle + 0.1 * SampleWobble(depth, length))}});
    }
  }
  return {{"accuracy", arm.needle},
          {"answer_nll", (1 - arm.needle) * 2},
          {"samples", 288},
          {"by_task", by_task},
          {"by_depth", by_depth},
          {"by_length", by_length},
          {"by_length_depth", by_length_depth}};
}

// Returns metrics of two tasks with 8 calls each. The accuracy does not include the harder task.
Json ToolCallMetrics(const SampleArm& arm) {
  const auto row = [&](const char* task, double right, double kl) -> Json {
    return {{"task", task},   {"length", 8192},    {"samples", 8},        {"tokens", 160},
            {"token_kl", kl}, {"accuracy", right}, {"exact_calls", right}};
  };
  return {{"samples", 16},
          {"tokens", 320},
          {"token_kl", Distribution(1.5 * arm.kl)},
          {"accuracy", arm.needle},
          {"accuracy_interval", Interval(arm.needle, 0.1)},
          {"exact_calls", arm.needle},
          {"by_task",
           {row("copied_argument", arm.needle, arm.kl), row("json_edit", 0.25, 2 * arm.kl)}}};
}

// Returns metrics of 16 continuations with 128 tokens each.
Json ReasoningMetrics(const SampleArm& arm) {
  const bool exact = arm.bits == 16;
  const double until = exact ? 128.0 : 5 / (arm.kl + 0.1);
  Json json = {{"samples", 16},
               {"tokens", 2048},
               {"diverged", exact ? 0.0 : 1.0},
               {"tokens_until", until},
               {"tokens_until_interval", Interval(until, 0)},
               {"token_kl", Distribution(0.7 * arm.kl)}};
  if (exact) return json;
  json["kl_after"] = 0.8 * arm.kl;
  json["kl_after_interval"] = Interval(0.8 * arm.kl, 0.1);
  return json;
}

Json Arm(const SampleReportOptions& options, const SampleArm& arm, int seed) {
  const double windows = arm.windows ? (16 - arm.bits - 0.25) * 320 / options.max_length : 0;
  const bool exact = arm.bits == 16;
  Json json = {{"name", Name(arm)},
               {"method", arm.method},
               {"description", options.hostile ? kHostileText : arm.description},
               {"clip", arm.clip},
               {"windows", arm.windows},
               {"null_control", arm.null_control},
               {"bits_per_element",
                {{"paper", exact ? 16.0 : arm.bits + 0.25 + windows},
                 {"actual", exact ? 16.0 : arm.bits + 0.5 + windows * 1.02},
                 {"tokens", options.max_length}}},
               {"local", Metrics(options, arm, seed, 1)}};
  if (options.hostile) {
    json["bits_per_element"]["note"] = kHostileText;
    if (arm.null_control) json["method"] = kHostileText + Name(arm);
  }
  if (options.end_to_end) {
    json["end_to_end"] = Metrics(options, arm, seed, 1.9);
    json["text"] = TextMetrics(options, arm, seed);
    json["needle"] = NeedleMetrics(options, arm, seed);
    json["tool_call"] = ToolCallMetrics(arm);
    json["reasoning"] = ReasoningMetrics(arm);
  }
  return json;
}

// Three domains of the text. Null controls are best on the last one.
constexpr const char* kDomains[] = {"prose", "code", "tables"};
double OnDomain(const SampleArm& arm, size_t domain) {
  const double share = 0.6 + 0.4 * static_cast<double>(arm.null_control ? 2 - domain : domain);
  return arm.kl * share;
}

Json Estimate(int rows, double mean, double slack) {
  return {{"rows", rows}, {"mean", mean}, {"interval", {mean - slack, mean + slack}}};
}

void AddComparisons(const SampleReportOptions& options, const SampleArm& arm,
                    const SampleArm& headline, Json& json) {
  constexpr int kRows = 12288, kTokens = 18426;
  constexpr double kToken = 0.31;  // next-token KL per attention-KL
  const auto both = [&](Json& of, int parts, double kl, double slack) {
    of["local"] = Estimate(kRows / parts, kl, slack);
    if (options.end_to_end) of["text"] = Estimate(kTokens / parts, kToken * kl, kToken * slack);
  };
  const bool is_headline = &arm == &headline;
  if (!is_headline) both(json["behind"], 1, arm.kl - headline.kl, 0.0038);
  for (size_t i = 0; i < std::size(kDomains); ++i) {
    Json& row = json["by_domain"].emplace_back();
    row["domain"] = options.hostile && i == 1 ? kHostileText : kDomains[i];
    both(row, 3, OnDomain(arm, i), 0.1 * arm.kl);
    if (!is_headline) both(row["behind"], 3, OnDomain(arm, i) - OnDomain(headline, i), 0.006);
  }
}

Json Check(const char* metric, double value, double limit) {
  return {{"metric", metric},
          {"op", "<="},
          {"limit", limit},
          {"value", value},
          {"passed", value <= limit}};
}

Json Validation(const SampleReportOptions& options, const std::string& model) {
  const bool large = options.num_layers > 16;
  Json arms = Json::array(), names = Json::array();
  for (size_t i = 0; i < (large ? std::size(kArms) : kSmallArms); ++i) {
    arms.push_back(Arm(options, kArms[i], static_cast<int>(i)));
    AddComparisons(options, kArms[i], kArms[kHeadline], arms.back());
    for (const Json& other : arms) {
      if (kArms[i].ideal != nullptr && other["name"] == kArms[i].ideal)
        arms.back()["ideal"] = RuntimeLoss(arms.back(), other);
    }
    names.push_back(arms.back()["name"]);
  }
  const std::string headline = "oscar_per_head+clip+windows";
  Json texts = Json::array();
  for (int length : Lengths(options)) texts.push_back({{"length", length}, {"sequences", 6}});
  Json validation = Json::parse(R"({
    "rotations": {"sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
                  "size": 4198400},
    "data": {"name": "heldout.jsonl", "tokens": 24576,
             "digest": "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
             "overlap": {"fraction": 0.0, "longest": "the quick brown"}},
    "program": {"name": "oscar", "version": "0.1.0", "git_commit": "94daeac"},
    "machine": {"device": "NVIDIA H200", "compute_dtype": "f32", "libtorch": "2.11.0"},
    "settings": {"sink_tokens": 64, "recent_tokens": 256, "quant_group_size": 128,
                 "clip": {"oscar": "as the artifact chose per layer", "others_k": 0.96},
                 "cache_dtype": "bf16", "compute_dtype": "f32", "measure_dtype": "f64",
                 "rows_per_sequence": 256, "score_from": "length / 4 + 1", "seed": 0,
                 "bootstrap": 1000, "weights_read": 1}})");
  validation["source"] = options.end_to_end ? "model" : "dump";
  if (options.hostile) validation["data"]["name"] = kHostileText;
  validation["data"]["texts"] = texts;
  validation["settings"]["arms"] = names;
  validation["headline_arm"] = headline;
  validation["arms"] = arms;
  if (options.end_to_end) validation["model"] = {{"id", model}, {"revision", "1f3a"}};
  if (options.kernels) validation["kernels"] = SampleKernels(options);
  if (options.gate) {
    const double limit = options.gate_passes ? 0.05 : 0.03;
    Json checks = Json::array({Check("kl", 0.0351, limit)});
    if (options.end_to_end) {
      checks.push_back(Check("ppl_ratio", 2.4715 / kReferencePerplexity, 1.02));
    } else if (!options.gate_passes) {
      checks.push_back({{"metric", "ppl_ratio"},
                        {"op", "<="},
                        {"limit", 1.02},
                        {"reason", "not measured: no end-to-end run"},
                        {"passed", false}});
    }
    validation["gate"] = {{"text", options.hostile       ? kHostileText
                                   : options.gate_passes ? "kl<=0.05,ppl_ratio<=1.02"
                                                         : "kl<=0.03,ppl_ratio<=1.02"},
                          {"arm", headline},
                          {"passed", options.gate_passes},
                          {"checks", checks}};
  }
  return validation;
}

}  // namespace

SampleReportOptions LargeSample() {
  return {.num_layers = 64, .num_kv_heads = 8, .max_length = 131072};
}

Json SampleReport(const SampleReportOptions& options) {
  const std::string model = options.hostile ? kHostileText : "example/proof-qwen3";
  Json layers = Json::array();
  for (int i = 0; i < options.num_layers; ++i) layers.push_back(SampleLayerReport(options, i));
  Json report = Json::parse(R"({
    "model": {"revision": "1f3a", "model_type": "qwen3", "rope": "default, theta 1000000",
              "stored_dtype": "bf16",
              "config": {"size": 726, "sha256":
                         "a591a6d40bf420404a011733cfb7b190d62c65bf0bcda32b57b277d9ad9f146e"}},
    "data": {"name": "prompts.jsonl",
             "digest": "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9",
             "documents": {"sent": 120, "used": 8, "truncated": 1, "dropped": 0},
             "tokens": {"sent": 20481, "used": 16384, "truncated": 97, "dropped": 0}},
    "calibration": {"value_target": "attention_output", "composition": "r_h_pbr",
                    "held_out": {"share": 0.125, "kind": "documents", "tokens": 2048},
                    "configuration": {"tokens": 16384, "seed": 0}},
    "serving": {"k_clip_ratio": 0.96, "v_clip_ratio": 0.92, "k_clip_ratio_shared": 0.96,
                "v_clip_ratio_shared": 0.92, "sink_tokens": 64, "recent_tokens": 256,
                "quant_group_size": 128}})");
  report["$schema"] = {{"name", "oscar-report"}, {"version", kReportVersion}};
  report["model"]["id"] = model;
  report["model"]["num_layers"] = options.num_layers;
  report["summary"] = SampleSummary(options);
  report["layers"] = layers;
  if (options.hostile) {
    report["model"]["revision"] = report["model"]["model_type"] = kHostileText;
    report["data"]["name"] = kHostileText;
  }
  if (options.held_out) report["serving"]["auto"] = SampleServingChoice();
  if (options.hostile) report["calibration"][kHostileText] = kHostileText;
  if (options.validation) report["validation"] = Validation(options, model);
  if (options.every_member) AddRareMembers(report);
  return report;
}

}  // namespace oscar
