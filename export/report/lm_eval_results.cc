// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The format requires members that a validation does not have. They are null or empty, as lm-eval
// writes unknown values.
#include "export/report/lm_eval_results.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <numbers>

#include "export/measures/table.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

constexpr double kTaskVersion = 1.0;
constexpr double kNormal95 = 1.959964;  // half of a 95 % interval, in standard deviations

// The metrics of one task, under lm-eval's keys.
class TaskMetrics {
 public:
  // `error`: nothing if unknown.
  void Add(const std::string& name, double value, std::optional<double> error,
           bool higher_is_better) {
    results_[name + ",none"] = value;
    results_[name + "_stderr,none"] = error ? Json(*error) : Json("N/A");
    higher_is_better_[name] = higher_is_better;
    list_.push_back({{"metric", name}, {"higher_is_better", higher_is_better}});
  }

  const Json& results() const { return results_; }
  const Json& higher_is_better() const { return higher_is_better_; }
  const Json& list() const { return list_; }

 private:
  Json results_ = Json::object(), higher_is_better_ = Json::object(), list_ = Json::array();
};

// Returns the standard error of f(x) from the 95 % interval of x; nothing without one.
std::optional<double> ErrorOf(const Json* interval, const std::function<double(double)>& f) {
  if (interval == nullptr) return std::nullopt;
  return std::abs(f(interval->at(1)) - f(interval->at(0))) / (2 * kNormal95);
}

double Same(double x) { return x; }

// Adds perplexities per token, word and byte. `text_size` has the numbers of scored words and
// bytes.
void AddPerplexities(const Json& text, const Json& text_size, TaskMetrics& metrics) {
  const double perplexity = text.at("perplexity"), tokens = text.at("scored_tokens");
  const auto add = [&](const char* name, const std::function<double(double)>& f) {
    metrics.Add(name, f(perplexity), ErrorOf(FindAt(text, "perplexity_interval"), f), false);
  };
  add("token_perplexity", Same);
  if (const double words = text_size.value("scored_words", 0.0); words > 0)
    add("word_perplexity", [=](double ppl) { return std::pow(ppl, tokens / words); });
  if (const double bytes = text_size.value("scored_bytes", 0.0); bytes > 0) {
    add("byte_perplexity", [=](double ppl) { return std::pow(ppl, tokens / bytes); });
    add("bits_per_byte",
        [=](double ppl) { return std::log(ppl) * tokens / bytes / std::numbers::ln2; });
  }
}

TaskMetrics MetricsOf(const Json& text, const Json& text_size) {
  TaskMetrics metrics;
  AddPerplexities(text, text_size, metrics);
  const Json arm = {{"text", text}};
  for (const Measure& measure : Measures(kLmEval)) {
    const Json* value = FindAt(arm, measure.path);
    OSCAR_CHECK(value != nullptr);                             // every text has them
    const bool is_share = measure.format == Format::kPercent;  // of the scored tokens
    const std::optional<double> error = is_share ? ShareError(*value, text.at("scored_tokens"))
                                                 : ErrorOf(FindAt(arm, measure.interval()), Same);
    metrics.Add(std::string(measure.name), *value, error, is_share);
  }
  return metrics;
}

int64_t Sequences(const Json& data) {
  if (!data.contains("texts")) return data.at("sequences");
  int64_t sequences = 0;
  for (const Json& text : data.at("texts")) sequences += text.at("sequences").get<int64_t>();
  return sequences;
}

// `data`: what the report says about the text.
void AddTask(const std::string& name, const std::string& dataset, const Json& data,
             const Json& validation, const Json& arm, const Json& text, Json& file) {
  const TaskMetrics metrics = MetricsOf(text, data);
  const int64_t sequences = Sequences(data);
  Json& results = file["results"][name] = metrics.results();
  results["name"] = name;
  results["alias"] = name;
  results["sample_len"] = sequences;
  file["group_subtasks"][name] = Json::array();
  file["versions"][name] = kTaskVersion;
  file["n-shot"][name] = 0;
  file["n-samples"][name] = {{"original", sequences}, {"effective", sequences}};
  file["higher_is_better"][name] = metrics.higher_is_better();
  if (data.contains("digest")) file["task_hashes"][name] = data.at("digest");
  Json metadata = {{"version", kTaskVersion},
                   {"kv_cache", arm.at("name")},
                   {"bits_per_element", arm.at("bits_per_element").at("actual")},
                   {"scored_tokens", text.at("scored_tokens")},
                   {"sink_tokens", validation.at("settings").at("sink_tokens")},
                   {"recent_tokens", validation.at("settings").at("recent_tokens")}};
  for (const char* size : {"scored_words", "scored_bytes"})
    if (data.contains(size)) metadata[size] = data.at(size);
  file["configs"][name] = {{"task", name},
                           {"dataset_path", dataset},
                           {"output_type", "loglikelihood_rolling"},
                           {"metric_list", metrics.list()},
                           {"num_fewshot", 0},
                           {"repeats", 1},
                           {"should_decontaminate", false},
                           {"metadata", metadata}};
}

// Does the same as lm-eval's sanitize_model_name: "__" replaces each run of characters unfit for
// file names.
std::string Sanitized(const std::string& name) {
  std::string sanitized;
  bool in_run = false;
  for (const char c : name) {
    const bool bad = std::string_view("\"<>:/|\\?*[]").find(c) != std::string_view::npos;
    if (!bad) sanitized += c;
    if (bad && !in_run) sanitized += "__";
    in_run = bad;
  }
  return sanitized;
}

const Json& ModelOf(const Json& report) {
  const Json& validation = report.at("validation");
  return validation.contains("model") ? validation.at("model") : report.at("model");
}

Json Config(const Json& report, const Json& arm) {
  const Json& settings = report.at("validation").at("settings");
  const Json& machine = report.at("validation").at("machine");
  return {{"model", "oscar"},
          {"model_args", {{"pretrained", ModelId(report)}, {"kv_cache", arm.at("name")}}},
          {"model_dtype", settings.value("compute_dtype", Json(nullptr))},
          {"model_revision", ModelOf(report).value("revision", Json(nullptr))},
          {"batch_size", nullptr},
          {"batch_sizes", Json::array()},
          {"device", machine.value("device", Json(nullptr))},
          {"use_cache", nullptr},
          {"limit", nullptr},
          {"bootstrap_iters", settings.value("bootstrap", Json(nullptr))},
          {"gen_kwargs", nullptr},
          {"random_seed", settings.value("seed", Json(nullptr))},
          {"numpy_seed", nullptr},
          {"torch_seed", nullptr},
          {"fewshot_seed", nullptr}};
}

}  // namespace

std::string ModelId(const Json& report) {
  return ModelOf(report).value("id", std::string("unknown model"));
}

std::string ModelWithCache(const Json& report, const Json& arm) {
  return fmt::format("{} {}", ModelId(report), arm.at("name").get<std::string>());
}

std::optional<double> ShareError(double share, double tokens) {
  if (tokens <= 1) return std::nullopt;
  return std::sqrt(share * (1 - share) / (tokens - 1));
}

Json LmEvalResults(const Json& report, const Json& arm, double date) {
  OSCAR_CHECK(arm.contains("text"));
  const Json& validation = report.at("validation");
  const Json& program = validation.at("program");
  const std::string name = ModelWithCache(report, arm);
  Json file = {{"results", Json::object()},
               {"group_subtasks", Json::object()},
               {"configs", Json::object()},
               {"versions", Json::object()},
               {"n-shot", Json::object()},
               {"higher_is_better", Json::object()},
               {"n-samples", Json::object()},
               {"config", Config(report, arm)},
               {"git_hash", program.value("git_commit", Json(nullptr))},
               {"date", date},
               {"pretty_env_info", validation.at("machine").dump()},
               {"transformers_version", "N/A"},
               {"lm_eval_version", "0.4.13 (written by oscar)"},
               {"upper_git_hash", nullptr},
               {"task_hashes", Json::object()},
               {"model_source", "oscar"},
               {"model_name", name},
               {"model_name_sanitized", Sanitized(name)},
               {"system_instruction", nullptr},
               {"system_instruction_sha", nullptr},
               {"fewshot_as_multiturn", nullptr},
               {"chat_template", nullptr},
               {"chat_template_sha", nullptr},
               {"total_evaluation_time_seconds", nullptr}};
  const Json& data = validation.at("data");
  AddTask("oscar_text", data.at("name"), data, validation, arm, arm.at("text"), file);
  if (arm.contains("own_words") && validation.contains("own_words"))
    AddTask("oscar_own_words", "generated by the model itself", validation.at("own_words"),
            validation, arm, arm.at("own_words"), file);
  return file;
}

}  // namespace oscar
