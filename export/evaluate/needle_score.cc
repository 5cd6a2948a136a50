// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What a teacher-forced pass says about needle samples.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "export/evaluate/needle.h"
#include "linalg/check.h"

namespace oscar {
namespace {

// Means over the samples of one row of a table.
struct Row {
  int64_t samples = 0;
  double accuracy = 0, nll = 0;  // sums
  void Add(const NeedleScore& score) {
    ++samples;
    accuracy += score.accuracy;
    nll += score.answer_nll;
  }
  void WriteTo(Json& json) const {
    json["samples"] = samples;
    json["accuracy"] = accuracy / static_cast<double>(samples);
    json["answer_nll"] = nll / static_cast<double>(samples);
  }
};

// The row with this key, appended if it is new: rows keep the order of the samples.
template <class Key>
Row& RowOf(std::vector<std::pair<Key, Row>>& table, const Key& key) {
  for (auto& [known, row] : table) {
    if (known == key) return row;
  }
  return table.emplace_back(key, Row()).second;
}

}  // namespace

std::vector<int64_t> AnswerPositions(const NeedleSample& sample) {
  std::vector<int64_t> positions;
  for (const NeedleSample::Answer& answer : sample.answers) {
    for (int64_t position = answer.begin; position < answer.end; ++position)
      positions.push_back(position);
  }
  return positions;
}

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

Json NeedleReport(std::span<const NeedleSample> samples, std::span<const NeedleScore> scores) {
  OSCAR_CHECK(!samples.empty());
  OSCAR_CHECK_EQ(samples.size(), scores.size());
  constexpr int kQuarters = 4;
  Row all;
  std::vector<std::pair<std::pair<std::string, int64_t>, Row>> tasks;
  std::vector<std::pair<int64_t, Row>> lengths;
  std::array<std::pair<int64_t, int64_t>, kQuarters> depths{};  // references, recalled
  for (size_t i = 0; i < samples.size(); ++i) {
    const NeedleSample& sample = samples[i];
    all.Add(scores[i]);
    RowOf(tasks, {sample.task, sample.length}).Add(scores[i]);
    RowOf(lengths, sample.length).Add(scores[i]);
    for (size_t j = 0; j < sample.answers.size(); ++j) {
      const auto quarter = static_cast<size_t>(
          std::clamp(static_cast<int>(sample.answers[j].depth / 25), 0, kQuarters - 1));
      ++depths[quarter].first;
      depths[quarter].second += scores[i].recalled[j];
    }
  }
  Json report = {
      {"by_task", Json::array()}, {"by_depth", Json::array()}, {"by_length", Json::array()}};
  all.WriteTo(report);
  for (const auto& [key, row] : tasks) {
    Json entry = {{"task", key.first}, {"length", key.second}};
    row.WriteTo(entry);
    report["by_task"].push_back(std::move(entry));
  }
  for (const auto& [length, row] : lengths) {
    Json entry = {{"length", length}};
    row.WriteTo(entry);
    report["by_length"].push_back(std::move(entry));
  }
  for (int quarter = 0; quarter < kQuarters; ++quarter) {
    const auto [references, recalled] = depths[static_cast<size_t>(quarter)];
    if (references == 0) continue;
    report["by_depth"].push_back(
        {{"depth_from", 25 * quarter},
         {"depth_to", 25 * (quarter + 1)},
         {"samples", references},
         {"accuracy", static_cast<double>(recalled) / static_cast<double>(references)}});
  }
  return report;
}

}  // namespace oscar
