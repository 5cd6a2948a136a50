// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/validate/validation_forecast.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <thread>

#include "calib/run/plan.h"  // DocumentWork
#include "linalg/base/error.h"

namespace oscar {
namespace {

// The bounds of the forecast, relative to the forecast from the fastest probe.
constexpr double kLow = 0.75, kHigh = 1.3;
// The largest slowdown that is expected if other programs run at times, as a factor.
constexpr double kBusy = 2;
// Beyond either of these, other programs are probably running.
constexpr double kIdleSlowdown = 1.5, kIdleLoad = 0.75;

// The cost of the functions applied to a score or a logit, in multiply-adds.
constexpr double kScoreWork = 450, kLogitWork = 250;
constexpr double kShareSeen = 0.6;  // mean share of a text's keys that a row sees

// The work of a validation with some arms, counted in the model's multiply-adds.
class Work {
 public:
  Work(const ModelSpec& spec, const ValidationOptions& options, size_t arms)
      : spec_(spec), options_(options), arms_(static_cast<double>(arms)) {}

  // Returns the work of running one sequence through `streams` streams.
  double Streams(int64_t tokens, double streams) const {
    return streams * DocumentWork(spec_, tokens);
  }
  double Text(int64_t tokens) const {
    const double rows = options_.rows_per_sequence == 0
                            ? static_cast<double>(tokens)
                            : static_cast<double>(std::min(tokens, options_.rows_per_sequence));
    const double wide = options_.measure_in_float32 ? 1 : 2;
    const double caches = (arms_ - 1) * (options_.local_only ? 1 : 2) + 1;
    double work = Streams(tokens, options_.local_only ? 1 : arms_);
    for (const LayerSpec& layer : spec_.layers) {
      const AttentionSpec& a = layer.attention;
      const double dims = static_cast<double>(a.head_dim + 3 * a.v_head_dim);
      work += caches * static_cast<double>(a.num_q_heads) * rows * kShareSeen *
              static_cast<double>(tokens) * wide * (dims + kScoreWork);
    }
    return work;
  }
  // Returns the work of scoring next tokens.
  double Head(int64_t tokens, double streams) const {
    return streams * static_cast<double>(tokens * spec_.vocab_size) *
           (static_cast<double>(spec_.hidden_size) + kLogitWork);
  }

 private:
  const ModelSpec& spec_;
  const ValidationOptions& options_;
  double arms_;
};

// Seconds of the first layer: wall time, and the CPU time of this thread, which does an equal share
// of the work.
struct ProbeTime {
  double wall = 0, own = 0;

  // Returns the time on an idle machine. Threads wait for each other there too, but for less than a
  // fifth of the time.
  double idle() const { return std::min(wall, 1.2 * own); }
};

double ThreadSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

ProbeTime Probe(const ValidationOptions& options, const Artifact& artifact,
                const ValidationInput& input, at::ScalarType dtype, int64_t tokens) {
  using Clock = std::chrono::steady_clock;
  const auto started = Clock::now();
  const double own = ThreadSeconds();
  ProbeTime time;
  ValidationHooks hooks;
  hooks.on_layer = [&](size_t, size_t, double) {
    if (time.wall > 0) return;
    time = {std::chrono::duration<double>(Clock::now() - started).count(), ThreadSeconds() - own};
  };
  hooks.stop_requested = [] { return true; };
  std::vector<int32_t> text;
  for (const auto& sequence : input.model.Sequences())
    text.insert(text.end(), sequence.begin(), sequence.end());
  text.resize(static_cast<size_t>(tokens));
  try {
    ValidateModel(input.model.checkpoint, input.model.spec, at::kCPU, dtype, {.texts = {text}},
                  artifact, options, hooks);
  } catch (const Interrupted&) {
    return time;
  }
  return time;  // reached only by a model with one layer
}

struct InUnit {
  std::string number, unit;
};

// Rounds to two digits, in a unit that is easy to read.
InUnit Written(double seconds) {
  const auto in = [](double value, const char* unit) {
    const double step = value < 10 ? 1 : std::pow(10, std::floor(std::log10(value)) - 1);
    return InUnit{fmt::format("{:g}", std::max(1.0, std::round(value / step)) * step), unit};
  };
  if (seconds < 180) return in(seconds, "s");
  return seconds < 3 * 3600 ? in(seconds / 60, "min") : in(seconds / 3600, "h");
}

}  // namespace

std::string RangeText(double from, double to) {
  if (to < 1) return "under 1 s";
  const InUnit low = Written(from), high = Written(to);
  return fmt::format("{}{} to {} {}", low.number, low.unit == high.unit ? "" : " " + low.unit,
                     high.number, high.unit);
}

bool Forecast::busy() const { return slowdown > kIdleSlowdown || load > kIdleLoad * cores; }

Json Forecast::ToJson() const {
  const double high = kHigh * (busy() ? std::max(kBusy, slowdown) : 1);
  Json json = {
      {"from", 0.0}, {"to", 0.0}, {"busy", busy()}, {"load", load}, {"slowdown", slowdown}};
  for (const Part& part : parts) {
    const double from = kLow * part.seconds, to = high * part.seconds;
    json[part.name] = {{"from", from}, {"to", to}};
    json["from"] = json["from"].get<double>() + from;
    json["to"] = json["to"].get<double>() + to;
  }
  return json;
}

std::string Forecast::Text() const {
  const Json json = ToJson();
  const auto range = [](const Json& of) { return RangeText(of.at("from"), of.at("to")); };
  std::string of_parts;
  for (const Part& part : parts) {
    of_parts += fmt::format("{}{} {}", of_parts.empty() ? "" : ", ", part.name,
                            part.seconds == 0 ? "none" : range(json.at(part.name)));
  }
  std::string text = fmt::format("{}: {}", range(json), of_parts);
  if (!busy()) return text;
  return text + fmt::format(
                    "; the machine is busy: load {:.1f} on {} cores, test computations take {:.1f} "
                    "times as long as on an idle machine",
                    load, cores, slowdown);
}

Forecast ForecastValidation(const ValidationOptions& options, const Artifact& artifact,
                            const ValidationInput& input, const OwnWordsPlan& own_words,
                            const std::vector<int64_t>& recall_lengths, size_t recall_arms,
                            at::ScalarType dtype) {
  constexpr double kEnough = 2;  // seconds of probing
  constexpr int kMostPasses = 5;
  const ModelSpec& spec = input.model.spec;
  Forecast forecast;
  forecast.cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  if (getloadavg(&forecast.load, 1) != 1) forecast.load = 0;

  ValidationOptions probed = options;
  probed.arms.clear();
  probed.needle_arms.clear();
  probed.headline_arm.clear();
  for (const Arm& arm : input.arms)  // methods that are fitted to text are too slow for a probe
    if (!arm.method->needs_rows) probed.arms.push_back(arm.name);
  int64_t longest = 0, all_tokens = 0;
  for (const auto& text : input.model.Sequences()) {
    longest = std::max(longest, std::ssize(text));
    all_tokens += std::ssize(text);
  }
  const int64_t exact = options.methods.windows.sink + options.methods.windows.recent;
  const int64_t first = std::min(longest, exact + 64), second = std::min(longest, 2 * first);
  if (probed.arms.size() < 2 || first <= exact) return forecast;

  double seconds[2] = {};
  const int64_t tokens[2] = {first, second};
  double spent = 0, idle = 0;
  for (int pass = 0; pass < kMostPasses && (pass == 0 || spent < kEnough); ++pass) {
    for (int i = 0; i < 2; ++i) {
      const ProbeTime now = Probe(probed, artifact, input, dtype, tokens[i]);
      spent += now.wall;
      idle += now.idle();
      seconds[i] = pass == 0 ? now.idle() : std::min(seconds[i], now.idle());
    }
  }
  forecast.slowdown = spent / idle;
  // A layer takes the time `start` for loading and fitting, plus `rate` per multiply-add.
  const auto layers = static_cast<double>(spec.layers.size());
  const Work short_work(spec, probed, probed.arms.size()), work(spec, options, input.arms.size());
  const double least = short_work.Text(first) / layers, most = short_work.Text(second) / layers;
  double rate = seconds[1] / most;
  if (second > first) rate = std::clamp((seconds[1] - seconds[0]) / (most - least), rate / 2, rate);
  const double start = std::max(0.0, seconds[1] - rate * most);

  const auto arms = static_cast<double>(input.arms.size());
  const auto scored = [](int64_t length) { return length - length / 4; };
  double text = 0, own = 0, recall = 0;
  for (const auto& sequence : input.model.Sequences()) {
    text += work.Text(std::ssize(sequence));
    if (!options.local_only) text += work.Head(scored(std::ssize(sequence)), arms);
  }
  for (int64_t i = 0; i < own_words.sequences; ++i)
    own += work.Streams(own_words.length, arms) + work.Head(scored(own_words.length), arms);
  for (const int64_t length : recall_lengths)
    recall += work.Streams(length, static_cast<double>(recall_arms));
  forecast.parts = {{"text", layers * start + rate * text},
                    {"own words", own_words.seconds + rate * own},
                    {"recall", rate * recall}};
  return forecast;
}

}  // namespace oscar
