// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Scores needle samples from a teacher-forced pass and summarizes the scores.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "export/evaluate/needle.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

// Sums over the samples of one table row, from which its means are computed.
struct Row {
  int64_t samples = 0;
  double accuracy = 0, nll = 0;  // sums over the samples
  void Add(const NeedleScore& score) {
    ++samples;
    accuracy += score.accuracy;
    nll += score.answer_nll;
  }
  void WriteTo(auto& row) const {
    row.samples = samples;
    row.accuracy = accuracy / static_cast<double>(samples);
    row.answer_nll = nll / static_cast<double>(samples);
  }
};

// Returns the row with this key; appends it if it is new, so that rows keep the order of the
// samples.
template <class Key>
Row& RowOf(std::vector<std::pair<Key, Row>>& table, const Key& key) {
  for (auto& [known, row] : table) {
    if (known == key) return row;
  }
  return table.emplace_back(key, Row()).second;
}

// The number of answers between two depths, and how many of them were recalled.
struct DepthBucket {
  double from = 0, to = 100;  // percent
  int64_t references = 0, recalled = 0;
};

// Returns buckets whose limits are halfway between the requested depths, or quarters if no depth
// was requested.
std::vector<DepthBucket> DepthBuckets(std::span<const NeedleSample> samples) {
  std::set<double> asked;
  for (const NeedleSample& sample : samples) {
    if (sample.asked_depth) asked.insert(*sample.asked_depth);
  }
  std::vector<double> edges = {0};
  if (asked.empty()) edges.insert(edges.end(), {25, 50, 75});
  for (auto depth = asked.begin(); depth != asked.end(); ++depth) {
    if (std::next(depth) != asked.end()) edges.push_back((*depth + *std::next(depth)) / 2);
  }
  edges.push_back(100);
  std::vector<DepthBucket> buckets;
  for (size_t i = 1; i < edges.size(); ++i) buckets.push_back({edges[i - 1], edges[i]});
  return buckets;
}

void Count(double depth, bool recalled, std::vector<DepthBucket>& buckets) {
  const auto last = std::prev(buckets.end());
  const auto bucket =
      std::find_if(buckets.begin(), last, [&](const DepthBucket& b) { return depth < b.to; });
  ++bucket->references;
  bucket->recalled += recalled ? 1 : 0;
}

// Appends a row for each bucket that has answers. `row`: the members that all these rows share.
template <typename Row>
void AppendDepths(const std::vector<DepthBucket>& buckets, Row row, std::vector<Row>& list) {
  for (const DepthBucket& bucket : buckets) {
    if (bucket.references == 0) continue;
    row.depth_from = bucket.from;
    row.depth_to = bucket.to;
    row.samples = bucket.references;
    row.accuracy = static_cast<double>(bucket.recalled) / static_cast<double>(bucket.references);
    list.push_back(row);
  }
}

}  // namespace

NeedleScore ScoreNeedle(const NeedleSample& sample, std::span<const uint8_t> correct,
                        std::span<const double> log_probability) {
  OSCAR_CHECK_EQ(correct.size(), log_probability.size());
  NeedleScore score;
  size_t token = 0;
  for (const NeedleSample::Answer& answer : sample.answers) {
    const auto length = static_cast<size_t>(answer.end - answer.begin);
    OSCAR_CHECK_LE(token + length, correct.size());
    const auto value = correct.subspan(token, length);
    const bool recalled = std::all_of(value.begin(), value.end(), [](uint8_t c) { return c != 0; });
    score.recalled.push_back(recalled ? 1 : 0);
    score.accuracy += recalled ? 1 : 0;
    token += length;
  }
  OSCAR_CHECK_EQ(token, correct.size());
  for (const double log_p : log_probability) {
    OSCAR_CHECK(std::isfinite(log_p));
    score.answer_nll -= log_p;
  }
  score.accuracy /= static_cast<double>(sample.answers.size());
  score.answer_nll /= static_cast<double>(correct.size());
  return score;
}

measures::NeedleRecall NeedleReport(std::span<const NeedleSample> samples,
                                    std::span<const NeedleScore> scores) {
  OSCAR_CHECK(!samples.empty());
  OSCAR_CHECK_EQ(samples.size(), scores.size());
  Row all;
  std::vector<std::pair<std::pair<std::string, int64_t>, Row>> tasks;
  std::vector<std::pair<int64_t, Row>> lengths;
  std::vector<DepthBucket> depths = DepthBuckets({});
  std::map<int64_t, std::vector<DepthBucket>> lengths_depths;
  for (size_t i = 0; i < samples.size(); ++i) {
    const NeedleSample& sample = samples[i];
    all.Add(scores[i]);
    RowOf(tasks, {sample.task, sample.length}).Add(scores[i]);
    RowOf(lengths, sample.length).Add(scores[i]);
    const auto of_length = lengths_depths.try_emplace(sample.length, DepthBuckets(samples)).first;
    for (size_t j = 0; j < sample.answers.size(); ++j) {
      const double depth = sample.answers[j].depth;
      const bool recalled = scores[i].recalled[j] != 0;
      Count(depth, recalled, depths);
      Count(sample.asked_depth.value_or(depth), recalled, of_length->second);
    }
  }
  measures::NeedleRecall report;
  all.WriteTo(report);
  for (const auto& [key, row] : tasks) {
    measures::NeedleTask& of_task = report.by_task.emplace_back();
    std::tie(of_task.task, of_task.length) = key;
    row.WriteTo(of_task);
  }
  for (const auto& [length, row] : lengths) {
    report.by_length.emplace_back().length = length;
    row.WriteTo(report.by_length.back());
  }
  AppendDepths(depths, {}, report.by_depth);
  report.by_length_depth.emplace();
  for (const auto& [length, buckets] : lengths_depths) {
    measures::NeedleLengthDepth row;
    row.length = length;
    AppendDepths(buckets, row, *report.by_length_depth);
  }
  return report;
}

}  // namespace oscar
