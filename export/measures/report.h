// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The document report.json: what oscar-calibrate measured, and what oscar-validate adds to it.
#pragma once

#include "export/measures/arm.h"
#include "export/measures/choice.h"
#include "export/measures/kernels.h"

namespace oscar::measures {

struct SchemaName {
  std::string name;
  int64_t version = 0;
  using Fields = Members<&SchemaName::name, &SchemaName::version>;
};

struct Model : Open {
  std::optional<std::string> id, revision;
  using Fields = Members<&Model::id, &Model::revision>;
};

struct CalibrationData : Open {
  std::optional<std::string> name;
  using Fields = Members<&CalibrationData::name>;
};

struct Serving : Open {
  double k_clip_ratio = 0, v_clip_ratio = 0, k_clip_ratio_shared = 0, v_clip_ratio_shared = 0;
  std::optional<int64_t> sink_tokens, recent_tokens, quant_group_size;
  std::optional<ServingChoice> auto_;
  std::optional<CacheTypes> cache_types;
  std::optional<std::vector<ServedRuntime>> runtimes;
  std::optional<std::vector<ServedBudget>> budgets;
  using T = Serving;
  using Fields =
      Members<&T::k_clip_ratio, &T::v_clip_ratio, &T::k_clip_ratio_shared, &T::v_clip_ratio_shared,
              &T::sink_tokens, &T::recent_tokens, &T::quant_group_size, &T::auto_, &T::cache_types,
              &T::runtimes, &T::budgets>;
};

// An arm's errors in one layer, or their means over all layers.
struct CalibrationArm {
  NonNegative rows, rows_beyond, output_rel_error, output_rel_error_beyond,
      output_rel_error_no_windows;
  double kl_mean = 0, kl_mean_beyond = 0, kl_max = 0, kl_mean_no_windows = 0;
  using T = CalibrationArm;
  using Fields = Members<&T::rows, &T::rows_beyond, &T::kl_mean, &T::kl_mean_beyond, &T::kl_max,
                         &T::output_rel_error, &T::output_rel_error_beyond, &T::kl_mean_no_windows,
                         &T::output_rel_error_no_windows>;
};

struct Summary {
  int64_t layers = 0;
  NonNegative orthogonality, float32_orthogonality, eigen_residual;
  double min_relative_gap = 0;
  std::map<std::string, CalibrationArm> arms;
  using T = Summary;
  using Fields = Members<&T::layers, &T::orthogonality, &T::float32_orthogonality,
                         &T::eigen_residual, &T::min_relative_gap, &T::arms>;
};

struct Side {
  int64_t num_rotations = 0, dim = 0;
  double clip_ratio = 0, min_relative_gap = 0;
  std::optional<std::vector<NonNegative>> clip_error, clip_threshold;
  NonNegative orthogonality, float32_orthogonality, eigen_residual, importance_max_over_mean;
  std::optional<std::vector<double>> spectrum;
  std::optional<std::vector<int64_t>> spectrum_ranks;
  using T = Side;
  using Fields =
      Members<&T::num_rotations, &T::dim, &T::clip_ratio, &T::clip_error, &T::clip_threshold,
              &T::orthogonality, &T::float32_orthogonality, &T::eigen_residual,
              &T::min_relative_gap, &T::importance_max_over_mean, &T::spectrum, &T::spectrum_ranks>;
};
void Verify(const Spot& spot, const Side& side);

struct Sides {
  Side k, v;
  std::optional<Side> k_shared, v_shared;
  using Fields = Members<&Sides::k, &Sides::v, &Sides::k_shared, &Sides::v_shared>;
};

struct Layer {
  int64_t layer_id = 0, num_q_heads = 0, num_kv_heads = 0, head_dim = 0, v_head_dim = 0, tokens = 0;
  Sides sides;
  std::map<std::string, CalibrationArm> arms;
  std::optional<std::vector<double>> clip_candidates;
  std::optional<LayerChoice> auto_;
  using T = Layer;
  using Fields =
      Members<&T::layer_id, &T::num_q_heads, &T::num_kv_heads, &T::head_dim, &T::v_head_dim,
              &T::tokens, &T::sides, &T::arms, &T::clip_candidates, &T::auto_>;
};
void Verify(const Spot& spot, const Layer& layer);

// If the metric was not measured, `reason` says why in place of `value`, and the check fails.
struct GateCheck {
  std::string metric, op;
  double limit = 0;
  std::optional<double> value;
  std::optional<std::string> reason;
  bool passed = false;
  using T = GateCheck;
  using Fields = Members<&T::metric, &T::op, &T::limit, &T::value, &T::reason, &T::passed>;
};
bool Holds(const GateCheck& check);
void Verify(const Spot& spot, const GateCheck& check);

struct Gate {
  std::string text, arm;
  bool passed = false;
  std::vector<GateCheck> checks;
  using Fields = Members<&Gate::text, &Gate::arm, &Gate::passed, &Gate::checks>;
};
void Verify(const Spot& spot, const Gate& gate);

struct TextLength {
  int64_t length = 0, sequences = 0;
  using Fields = Members<&TextLength::length, &TextLength::sequences>;
};

struct Overlap : Open {
  Fraction fraction;
  using Fields = Members<&Overlap::fraction>;
};

struct ValidationData : Open {
  std::string name;
  std::optional<std::string> digest;
  int64_t tokens = 0;
  std::optional<int64_t> scored_words, scored_bytes;
  std::vector<TextLength> texts;
  std::optional<Overlap> overlap;
  using T = ValidationData;
  using Fields = Members<&T::name, &T::digest, &T::tokens, &T::scored_words, &T::scored_bytes,
                         &T::texts, &T::overlap>;
};

struct Settings : Open {
  int64_t sink_tokens = 0, recent_tokens = 0;
  std::optional<int64_t> quant_group_size, seed, bootstrap;
  std::optional<std::string> cache_dtype, compute_dtype, measure_dtype, scope, left_out;
  std::optional<NonNegative> weights_read;
  std::optional<std::vector<std::string>> arms;
  using T = Settings;
  using Fields = Members<&T::sink_tokens, &T::recent_tokens, &T::quant_group_size, &T::cache_dtype,
                         &T::compute_dtype, &T::measure_dtype, &T::seed, &T::bootstrap,
                         &T::weights_read, &T::scope, &T::left_out, &T::arms>;
};

// Text that the model generated, or the reason why there is none.
struct OwnWords : Open {
  int64_t sequences = 0;
  std::optional<int64_t> length, scored_words, scored_bytes, seed;
  std::optional<std::string> digest, reason;
  using T = OwnWords;
  using Fields = Members<&T::sequences, &T::length, &T::scored_words, &T::scored_bytes, &T::seed,
                         &T::digest, &T::reason>;
};

// A text is foreign to the model if its perplexity exceeds that of the model's own words by more
// than this factor.
inline constexpr double kForeignText = 3;

struct VerdictText {
  std::string member, reason;
  NonNegative perplexity_ratio;
  using T = VerdictText;
  using Fields = Members<&T::member, &T::perplexity_ratio, &T::reason>;
};
void Verify(const Spot& spot, const VerdictText& verdict);

struct RecallTask {
  std::string task;
  int64_t length = 0, samples = 0;
  Fraction exact;
  bool counts = false;
  using T = RecallTask;
  using Fields = Members<&T::task, &T::length, &T::samples, &T::exact, &T::counts>;
};

struct Recall {
  bool measurable = false;
  std::vector<RecallTask> tasks;
  using Fields = Members<&Recall::measurable, &Recall::tasks>;
};

struct Distance {
  std::optional<int64_t> from, to;
  NonNegative mass;
  double kl = 0;
  using Fields = Members<&Distance::from, &Distance::to, &Distance::mass, &Distance::kl>;
};

struct ByDistance {
  std::vector<Distance> buckets;
  std::optional<Distance> attention_sinks;
  using Fields = Members<&ByDistance::buckets, &ByDistance::attention_sinks>;
};

struct DeviceCapacity {
  int64_t device_bytes = 0, weight_bytes = 0, request_tokens = 0;
  using T = DeviceCapacity;
  using Fields = Members<&T::device_bytes, &T::weight_bytes, &T::request_tokens>;
};

struct Validation {
  AnyObject rotations, program, machine;
  std::optional<Model> model;
  std::string source, headline_arm;
  ValidationData data;
  Settings settings;
  std::optional<OwnWords> own_words;
  std::optional<VerdictText> verdict_text;
  std::optional<ByDistance> by_distance;
  std::optional<Recall> recall, tool_call;
  std::optional<Gate> gate;
  std::optional<Kernels> kernels;
  std::optional<DeviceCapacity> capacity;
  std::vector<Arm> arms;
  using T = Validation;
  using Fields =
      Members<&T::rotations, &T::model, &T::source, &T::data, &T::program, &T::machine,
              &T::settings, &T::headline_arm, &T::own_words, &T::verdict_text, &T::by_distance,
              &T::recall, &T::tool_call, &T::gate, &T::kernels, &T::capacity, &T::arms>;
};
void Verify(const Spot& spot, const Validation& validation);

struct Report {
  SchemaName $schema;
  Model model;
  CalibrationData data;
  AnyObject calibration;
  Serving serving;
  Summary summary;
  std::vector<Layer> layers;
  std::optional<Validation> validation;
  using T = Report;
  using Fields = Members<&T::$schema, &T::model, &T::data, &T::calibration, &T::serving,
                         &T::summary, &T::layers, &T::validation>;
};

}  // namespace oscar::measures
