// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/export/report/sample_calibration.h"

namespace oscar {
namespace {

// Returns rare members of "serving": bits priced by the next token, budgets, a plan of llama.cpp's
// cache types, and two runtimes.
Json RareOfServing() {
  const Json plan = Json::parse(R"({"by": "next token", "bits": 2.5, "bits_stored": 2.75,
                                    "token_kl": 0.02, "token_kl_p99": 0.3})");
  const Json cost = Json::parse(R"({"type": "q4_0", "token_kl": 0.01, "token_kl_p99": 0.1,
                                    "attention_kl": 0.03, "output_error": 0.1})");
  const auto runtime = [](const char* name, const char* choice, double kl) -> Json {
    return {{"runtime", name},     {"fold_checkpoint", true}, {"choice", choice},      {"kl", kl},
            {"hadamard_kl", 0.07}, {"output_error", 0.2},     {"error_feedback", true}};
  };
  Json bits_by = Json::parse(R"({
    "price": "next token", "tokens": 2048, "tokens_priced": 1024, "sink_tokens": 64,
    "recent_tokens": 256,
    "sensitive": [{"layer_id": 0, "side": "k", "token_kl": 0.4, "share": 0.6, "bits": 4},
                  {"layer_id": 0, "side": "v", "token_kl": 0.1, "share": 0.2}]})");
  bits_by["plans"] = {plan, plan};
  const auto budget = [&](double bits, const char* choice) -> Json {
    return {{"bits", bits},        {"choice", choice},  {"bits_spent", bits - 0.125},
            {"bits_stored", bits}, {"kl", 0.02},        {"hadamard_kl", 0.07},
            {"output_error", 0.1}, {"bits_by", bits_by}};
  };
  return {{"auto", {{"bits_by", bits_by}}},
          {"budgets", {budget(2.25, "auto"), budget(4, "any@4")}},
          {"cache_types",
           {{"for", "llama.cpp"},
            {"bits", 4.5},
            {"bits_stored", 4.5},
            {"tokens", 2048},
            {"price", "next token"},
            {"layers", {{{"layer_id", 0}, {"k", "q8_0"}, {"v", "q4_0"}}}},
            {"costs",
             {{{"layer_id", 0},
               {"num_kv_heads", 1},
               {"head_dim", 128},
               {"v_head_dim", 128},
               {"k", {cost}},
               {"v", {cost}}}}},
            {"plans", {plan}},
            {"curve", {plan, plan}}}},
          {"runtimes", {runtime("sglang", "oscar", 0.04), runtime("vllm", "hadamard", 0.07)}}};
}

// Returns rare members of "validation": the model's own words and the verdict on the text,
// distances, recall, and capacity.
Json RareOfValidation() {
  Json json = Json::parse(R"({
    "own_words": {"sequences": 6, "length": 512, "scored_words": 2304, "scored_bytes": 12595,
                  "digest": "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9",
                  "seed": 0, "reason": "the text is foreign to the model"},
    "verdict_text": {"member": "own_words", "perplexity_ratio": 7.5,
                     "reason": "its perplexity is 7.5 times that of the model's own words"},
    "by_distance": {"attention_sinks": {"mass": 0.4, "kl": 0.001},
                    "buckets": [{"from": 0, "to": 256, "mass": 0.4, "kl": 0.01},
                                {"from": 256, "to": 4096, "mass": 0.2, "kl": 0.02}]},
    "recall": {"measurable": true, "tasks": [
      {"task": "copied_argument", "length": 512, "samples": 8, "exact": 0.9, "counts": true},
      {"task": "json_edit", "length": 512, "samples": 8, "exact": 0.2, "counts": false}]},
    "capacity": {"device_bytes": 80000000000, "weight_bytes": 16000000000,
                 "request_tokens": 32768}})");
  json["tool_call"] = json["recall"];
  return json;
}

// Returns the capacity of arm `index`. Arms 5 (the headline) and 6 (4 bits) are budgets, and only
// arm 6 passes the gate.
Json CapacityOf(size_t index, double bits) {
  Json capacity = {{"held", Json::array()}, {"requests", static_cast<int>(210 / bits)}};
  for (const int64_t tokens : {8192, 32768, 131072}) {
    capacity["held"].push_back({{"tokens", tokens},
                                {"bits", bits},
                                {"bytes", static_cast<int64_t>(bits * 9216) * tokens}});
  }
  if (index == 5) capacity["budget"] = 2.25;
  if (index == 6) capacity["budget"] = 4;
  capacity["passes_gate"] = index == 6;
  return capacity;
}

// Adds the quantiles and errors that older reports lack.
void AddQuantiles(Json& distribution) {
  const double mean = distribution.at("mean");
  const std::pair<const char*, double> rare[] = {
      {"error", 0.008}, {"min", -0.001}, {"p0_1", 0},   {"p1", 0.002},
      {"p5", 0.02},     {"p10", 0.05},   {"p25", 0.21}, {"p75", 1.2},
      {"p95", 3.1},     {"p99_9", 11.4}, {"rms", 2},    {"rms_error", 0.02}};
  for (const auto& [name, factor] : rare) distribution[name] = mean * factor;
}

void AddErrorsOfTokens(Json& text, bool exact) {
  AddQuantiles(text["token_kl"]);
  text["token_probability"] = text["token_kl"];
  text["token_probability"].erase("interval");
  text["perplexity_error"] = text["perplexity"].get<double>() * 0.006;
  text["ppl_ratio_error"] = exact ? 0.0 : text["ppl_ratio"].get<double>() * 0.0004;
}

}  // namespace

void AddRareMembers(Json& report) {
  Json serving = RareOfServing();
  if (!report["serving"].contains("auto")) serving.erase("auto");
  report["serving"].merge_patch(serving);
  for (Json& layer : report["layers"]) {
    if (!layer.contains("auto")) continue;
    Json& choice = layer["auto"];
    choice["fitted_scales"] = choice["scores"][0]["fitted_scales"] = "mse";
    choice["k_options"][0]["next_token_kl"] = {0.01, 0.02};
    choice["k_options"][0]["ratios"] = {0.9, 1.0};
    choice["k_options"][0]["curve"] = {0.11, 0.12};
  }
  if (!report.contains("validation")) return;
  Json& validation = report["validation"];
  validation.merge_patch(RareOfValidation());
  validation["data"].update({{"scored_words", 13820}, {"scored_bytes", 75547}});
  validation["settings"].update(
      {{"scope", "quick"}, {"left_out", "The quick scope leaves out recall."}});
  if (validation.contains("gate")) {
    validation["gate"]["checks"].push_back({{"metric", "recall"},
                                            {"op", ">="},
                                            {"limit", 0.9},
                                            {"reason", "not measured"},
                                            {"passed", false}});
    validation["gate"]["passed"] = false;
  }
  for (size_t i = 0; i < validation["arms"].size(); ++i) {
    Json& arm = validation["arms"][i];
    arm["capacity"] = CapacityOf(i, arm["bits_per_element"]["actual"]);
    arm["bits_per_element"]["note"] = "beside the codes of the runtime";
    AddQuantiles(arm["local"]["kl"]);
    if (arm.contains("text")) {
      AddErrorsOfTokens(arm["text"], &arm == &validation["arms"].front());
      arm["own_words"] = arm["text"];
    }
    if (arm.contains("behind") && arm["behind"].contains("text"))
      arm["behind"]["own_words"] = arm["behind"]["text"];
    if (!arm.contains("needle")) continue;
    for (Json& depth : arm["needle"]["by_depth"]) depth["answer_nll"] = 0.1;
  }
}

}  // namespace oscar
