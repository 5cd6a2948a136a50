// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The numbers of one arm (a measured configuration) in a validation. export/report/schema.md
// explains them.
#pragma once

#include "export/measures/read.h"

namespace oscar::measures {

struct Distribution {
  double mean = 0, median = 0, p90 = 0, p99 = 0, max = 0;
  std::optional<double> min, p0_1, p1, p5, p10, p25, p75, p95, p99_9;
  std::optional<Interval> interval;
  std::optional<NonNegative> error, rms, rms_error;
  using T = Distribution;
  using Fields = Members<&T::mean, &T::interval, &T::error, &T::min, &T::p0_1, &T::p1, &T::p5,
                         &T::p10, &T::p25, &T::median, &T::p75, &T::p90, &T::p95, &T::p99,
                         &T::p99_9, &T::max, &T::rms, &T::rms_error>;
};

struct RowsKl {
  int64_t rows = 0;
  double kl = 0;
  using Fields = Members<&RowsKl::rows, &RowsKl::kl>;
};

struct WorstHead {
  int64_t layer_id = 0, kv_head = 0;
  double kl = -1;
  using Fields = Members<&WorstHead::layer_id, &WorstHead::kv_head, &WorstHead::kl>;
};

struct PositionKl {
  int64_t from = 0, to = 0, rows = 0;
  double kl = 0;
  bool inside_windows = false;
  using T = PositionKl;
  using Fields = Members<&T::from, &T::to, &T::rows, &T::kl, &T::inside_windows>;
};

struct LengthKl {
  int64_t length = 0, sequences = 0;
  double kl = 0;
  using Fields = Members<&LengthKl::length, &LengthKl::sequences, &LengthKl::kl>;
};

// A list entry for each layer, with a number for each KV head.
struct HeadErrors {
  std::vector<int64_t> layer_ids;
  std::vector<std::vector<double>> kl;
  std::optional<std::vector<std::vector<double>>> output_rel_error;
  using Fields = Members<&HeadErrors::layer_ids, &HeadErrors::kl, &HeadErrors::output_rel_error>;
};
void Verify(const Spot& spot, const HeadErrors& heads);

struct AttentionErrors {
  int64_t rows = 0;
  Distribution kl;
  double kl_all = 0;
  RowsKl inside_windows, beyond_windows;
  NonNegative output_rel_error, logit_mse, logit_rel_error, k_mse, k_rel_error, v_mse, v_rel_error,
      k_term, v_term;
  WorstHead worst;
  std::vector<PositionKl> by_position;
  std::vector<LengthKl> by_length;
  HeadErrors heads;
  using T = AttentionErrors;
  using Fields = Members<&T::rows, &T::kl, &T::kl_all, &T::inside_windows, &T::beyond_windows,
                         &T::output_rel_error, &T::logit_mse, &T::logit_rel_error, &T::k_mse,
                         &T::k_rel_error, &T::v_mse, &T::v_rel_error, &T::k_term, &T::v_term,
                         &T::worst, &T::by_position, &T::by_length, &T::heads>;
};

struct TextPosition {
  int64_t from = 0, to = 0;
  double token_kl = 0, nll = 0;
  using T = TextPosition;
  using Fields = Members<&T::from, &T::to, &T::token_kl, &T::nll>;
};

struct TextErrors {
  int64_t scored_tokens = 0;
  NonNegative perplexity, ppl_ratio;
  std::optional<Interval> perplexity_interval, ppl_ratio_interval;
  std::optional<NonNegative> perplexity_error, ppl_ratio_error;
  Distribution token_kl;
  std::optional<Distribution> token_probability;
  Fraction top1_agreement;
  std::vector<TextPosition> by_position;
  using T = TextErrors;
  using Fields =
      Members<&T::scored_tokens, &T::perplexity, &T::perplexity_interval, &T::perplexity_error,
              &T::ppl_ratio, &T::ppl_ratio_interval, &T::ppl_ratio_error, &T::token_kl,
              &T::token_probability, &T::top1_agreement, &T::by_position>;
};

// Means over samples: of one task and length, of one length, of a range of depths, or of a length
// and a range of depths.
struct NeedleTask {
  std::string task;
  int64_t length = 0, samples = 0;
  Fraction accuracy;
  std::optional<double> answer_nll;
  using T = NeedleTask;
  using Fields = Members<&T::task, &T::length, &T::samples, &T::accuracy, &T::answer_nll>;
};

struct NeedleLength {
  int64_t length = 0, samples = 0;
  Fraction accuracy;
  std::optional<double> answer_nll;
  using T = NeedleLength;
  using Fields = Members<&T::length, &T::samples, &T::accuracy, &T::answer_nll>;
};

struct NeedleDepth {
  NonNegative depth_from, depth_to;  // percent
  int64_t samples = 0;
  Fraction accuracy;
  std::optional<double> answer_nll;
  using T = NeedleDepth;
  using Fields = Members<&T::depth_from, &T::depth_to, &T::samples, &T::accuracy, &T::answer_nll>;
};

struct NeedleLengthDepth {
  int64_t length = 0, samples = 0;
  NonNegative depth_from, depth_to;  // percent
  Fraction accuracy;
  using T = NeedleLengthDepth;
  using Fields = Members<&T::length, &T::depth_from, &T::depth_to, &T::samples, &T::accuracy>;
};

struct NeedleRecall {
  Fraction accuracy;
  double answer_nll = 0;
  std::optional<int64_t> samples;
  std::vector<NeedleTask> by_task;
  std::vector<NeedleDepth> by_depth;
  std::vector<NeedleLength> by_length;
  std::optional<std::vector<NeedleLengthDepth>> by_length_depth;
  using T = NeedleRecall;
  using Fields = Members<&T::accuracy, &T::answer_nll, &T::samples, &T::by_task, &T::by_depth,
                         &T::by_length, &T::by_length_depth>;
};

struct ToolCallTask {
  std::string task;
  int64_t length = 0, samples = 0, tokens = 0;
  double token_kl = 0;
  Fraction accuracy, exact_calls;
  using T = ToolCallTask;
  using Fields = Members<&T::task, &T::length, &T::samples, &T::tokens, &T::token_kl, &T::accuracy,
                         &T::exact_calls>;
};

struct ToolCallErrors {
  int64_t samples = 0, tokens = 0;
  Distribution token_kl;
  std::optional<Fraction> accuracy, exact_calls;
  std::optional<Interval> accuracy_interval;
  std::vector<ToolCallTask> by_task;
  using T = ToolCallErrors;
  using Fields = Members<&T::samples, &T::tokens, &T::token_kl, &T::accuracy, &T::accuracy_interval,
                         &T::exact_calls, &T::by_task>;
};

struct ReasoningErrors {
  int64_t samples = 0, tokens = 0;
  Fraction diverged;
  NonNegative tokens_until;
  Distribution token_kl;
  std::optional<double> kl_after;
  std::optional<Interval> tokens_until_interval, kl_after_interval;
  using T = ReasoningErrors;
  using Fields =
      Members<&T::samples, &T::tokens, &T::diverged, &T::tokens_until, &T::tokens_until_interval,
              &T::token_kl, &T::kl_after, &T::kl_after_interval>;
};

struct BitsPerElement {
  NonNegative paper, actual;
  int64_t tokens = 0;
  std::optional<std::string> note;
  using T = BitsPerElement;
  using Fields = Members<&T::paper, &T::actual, &T::tokens, &T::note>;
};

// The differences between the numbers of a simulated runtime and those of its ideal arm.
struct RuntimeLosses {
  std::string arm;
  double kl = 0, output_rel_error = 0;
  std::optional<double> end_to_end_kl, perplexity, token_kl, top1_agreement, needle;
  using T = RuntimeLosses;
  using Fields = Members<&T::arm, &T::kl, &T::end_to_end_kl, &T::output_rel_error, &T::perplexity,
                         &T::token_kl, &T::top1_agreement, &T::needle>;
};

// A mean KL or a mean difference of two KLs, with the number of query rows.
struct KlEstimate {
  int64_t rows = 0;
  double mean = 0;
  std::optional<Interval> interval;
  using Fields = Members<&KlEstimate::rows, &KlEstimate::mean, &KlEstimate::interval>;
};

struct Behind {
  std::optional<KlEstimate> local, text, own_words;
  using Fields = Members<&Behind::local, &Behind::text, &Behind::own_words>;
};

struct DomainErrors {
  std::string domain;
  std::optional<KlEstimate> local, text;
  std::optional<Behind> behind;
  using T = DomainErrors;
  using Fields = Members<&T::domain, &T::local, &T::text, &T::behind>;
};

struct HeldContext {
  int64_t tokens = 0, bytes = 0;
  NonNegative bits;
  using Fields = Members<&HeldContext::tokens, &HeldContext::bits, &HeldContext::bytes>;
};

struct CacheCapacity {
  std::optional<NonNegative> budget;
  std::vector<HeldContext> held;
  int64_t requests = 0;
  std::optional<bool> passes_gate;
  using T = CacheCapacity;
  using Fields = Members<&T::budget, &T::held, &T::requests, &T::passes_gate>;
};
void Verify(const Spot& spot, const CacheCapacity& capacity);

struct Arm {
  std::string name, method, description;
  bool clip = false, windows = false, null_control = false;
  BitsPerElement bits_per_element;
  AttentionErrors local;
  std::optional<AttentionErrors> end_to_end;
  std::optional<TextErrors> text, own_words;
  std::optional<NeedleRecall> needle;
  std::optional<ToolCallErrors> tool_call;
  std::optional<ReasoningErrors> reasoning;
  std::optional<RuntimeLosses> ideal;
  std::optional<Behind> behind;
  std::optional<std::vector<DomainErrors>> by_domain;
  std::optional<CacheCapacity> capacity;
  using T = Arm;
  using Fields =
      Members<&T::name, &T::method, &T::description, &T::clip, &T::windows, &T::null_control,
              &T::bits_per_element, &T::local, &T::end_to_end, &T::text, &T::own_words, &T::needle,
              &T::tool_call, &T::reasoning, &T::ideal, &T::behind, &T::by_domain, &T::capacity>;
};

}  // namespace oscar::measures
