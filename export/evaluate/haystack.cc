// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/evaluate/haystack.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "capture/files/utf8.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr std::string_view kNoiseLine =
    "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again.";
constexpr int64_t kNumDepths = 40;
constexpr std::string_view kSpace = " \t\n\r\f\v";

// Returns depth i of RULER in percent: round(linspace(0, 100, 40))[i].
int DepthPercent(int64_t i) {
  return static_cast<int>(
      std::lround(100.0 * static_cast<double>(i) / static_cast<double>(kNumDepths - 1)));
}

bool ClosesSentence(std::string_view word) {
  static constexpr std::string_view kClosing[] = {"\"", "'", ")", "]", "”", "’", "»"};
  for (bool cut = true; cut;) {
    cut = false;
    for (const std::string_view mark : kClosing) {
      if (!word.ends_with(mark)) continue;
      word.remove_suffix(mark.size());
      cut = true;
    }
  }
  return word.ends_with('.') || word.ends_with('!') || word.ends_with('?');
}

}  // namespace

ProseHaystack::ProseHaystack(std::string_view text) {
  if (const auto invalid = FirstInvalidUtf8(text)) {
    throw InputError(fmt::format("text for needle prompts is not UTF-8 at byte {}", *invalid));
  }
  for (size_t at = text.find_first_not_of(kSpace); at != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_of(kSpace, at), text.size());
    if (!once_.empty()) once_ += ' ';
    once_ += text.substr(at, end - at);
    at = text.find_first_not_of(kSpace, end);
  }
  if (once_.empty()) throw InputError("the text for needle prompts contains no words");
  Repeat();
}

void ProseHaystack::Repeat() {
  if (!text_.empty()) text_ += ' ';
  const size_t base = text_.size();
  text_ += once_;
  for (size_t at = 0; at < once_.size();) {
    const size_t end = std::min(once_.find(' ', at), once_.size());
    word_ends_.push_back(base + end);
    closes_.push_back(ClosesSentence(std::string_view(once_).substr(at, end - at)) ? 1 : 0);
    at = end + 1;
  }
}

std::string_view ProseHaystack::Take(size_t num_words, std::vector<size_t>& ends) {
  OSCAR_CHECK(num_words > 0);
  while (word_ends_.size() < num_words) Repeat();
  ends.clear();
  for (size_t i = 0; i < num_words; ++i) {
    if (closes_[i] != 0 || i + 1 == num_words) ends.push_back(word_ends_[i]);
  }
  return std::string_view(text_).substr(0, word_ends_[num_words - 1]);
}

bool HasOnePlace(const NeedleTask& task) {
  return task.num_chains == 0 && task.num_values == 1 && task.num_queries == 1;
}

Haystack::Haystack(const NeedleTask& task, const NeedleQuestion& question, ProseHaystack& prose,
                   const std::vector<std::string>& words, SplitMix64& random,
                   const NeedlePlace& place)
    : task_(task),
      question_(question),
      prose_(prose),
      words_(words),
      distractor_random_(random.Next()) {
  const bool one = question.hidden.size() == 1;
  const auto draw = [&] {  // in [0, 1)
    const double share = random.Uniform();
    return one ? (static_cast<double>(place.stratum) + share) /
                     static_cast<double>(place.num_strata)
               : share;
  };
  while (shares_.size() < question.hidden.size()) {
    const double share = draw();
    const int depth = DepthPercent(static_cast<int64_t>(share * static_cast<double>(kNumDepths)));
    if (std::find(depths_.begin(), depths_.end(), depth) != depths_.end()) continue;  // distinct
    shares_.push_back(share);
    depths_.push_back(depth);
  }
  std::sort(shares_.begin(), shares_.end());
  std::sort(depths_.begin(), depths_.end());
  for (size_t i = 0; i < shares_.size(); ++i) order_.push_back(i);
  if (place.depth) PutAnswerAt(*place.depth);
}

// Moves only the sentence with the answer. The other sentences keep their places and their order.
void Haystack::PutAnswerAt(double depth) {
  OSCAR_CHECK(HasOnePlace(task_) && depth >= 0 && depth <= 100);
  const auto holds = [&](size_t i) { return question_.hidden[i].answer >= 0; };
  const auto answer = std::find_if(order_.begin(), order_.end(), holds) - order_.begin();
  const auto move = [&](auto& places, auto place) {
    places.erase(places.begin() + answer);
    const auto at = std::lower_bound(places.begin(), places.end(), place);
    const auto index = at - places.begin();
    places.insert(at, place);
    return index;
  };
  const auto index = move(shares_, depth / 100);
  move(depths_, static_cast<int>(std::lround(depth)));
  order_.erase(order_.begin() + answer);
  order_.insert(order_.begin() + index, static_cast<size_t>(answer));
}

void Haystack::SetDepths(const std::vector<size_t>& starts, Context& context) const {
  const double size = static_cast<double>(std::max<size_t>(context.text.size(), 1));
  context.depths.resize(starts.size());
  for (size_t i = 0; i < starts.size(); ++i)
    context.depths[order_[i]] = 100.0 * static_cast<double>(starts[i]) / size;
}

Context Haystack::Build(int64_t num_units) {
  OSCAR_CHECK_LE(min_units(), num_units);
  return task_.haystack == HaystackKind::kProse ? InsertIntoProse(num_units)
                                                : InsertIntoLines(num_units);
}

Context Haystack::InsertIntoLines(int64_t num_lines) {
  if (task_.haystack == HaystackKind::kNeedles) {
    while (static_cast<int64_t>(distractors_.size()) < num_lines)
      distractors_.push_back(MakeDistractor(question_, words_, distractor_random_));
  }
  // The line before which each sentence is put. These places are distinct and ascending.
  std::vector<int64_t> places;
  for (const double share : shares_) {
    const auto line = static_cast<int64_t>(share * static_cast<double>(num_lines));
    places.push_back(places.empty() ? line : std::max(line, places.back() + 1));
  }
  for (size_t i = places.size(); i > 0; --i) {
    const auto behind = static_cast<int64_t>(places.size() - i);
    places[i - 1] = std::min(places[i - 1], num_lines - 1 - behind);
  }
  Context context;
  std::vector<size_t> starts;
  const auto append = [&](std::string_view line) {
    if (!context.text.empty()) context.text += '\n';
    context.text += line;
  };
  for (int64_t line = 0; line < num_lines; ++line) {
    if (starts.size() < places.size() && places[starts.size()] == line) {
      const std::string& needle = Sentence(starts.size());
      append(needle);
      starts.push_back(context.text.size() - needle.size());
    }
    append(task_.haystack == HaystackKind::kNoise
               ? kNoiseLine
               : std::string_view(distractors_[static_cast<size_t>(line)]));
  }
  SetDepths(starts, context);
  return context;
}

Context Haystack::InsertIntoProse(int64_t num_words) {
  std::vector<size_t> ends;
  const std::string_view text = prose_.Take(static_cast<size_t>(num_words), ends);
  Context context;
  std::vector<size_t> starts;
  const auto append = [&](std::string_view part) {
    if (part.empty()) return;
    if (!context.text.empty()) context.text += ' ';
    context.text += part;
  };
  size_t done = 0;  // bytes of `text` that are already in the context
  for (size_t i = 0; i < depths_.size(); ++i) {
    const size_t sentences = ends.size() * static_cast<size_t>(depths_[i]) / 100;
    const size_t end = sentences == 0 ? 0 : ends[sentences - 1];
    if (end > done) {
      append(text.substr(done, end - done));
      done = std::min(end + 1, text.size());  // skips the space between sentences
    }
    append(Sentence(i));
    starts.push_back(context.text.size() - Sentence(i).size());
  }
  append(text.substr(done));
  SetDepths(starts, context);
  return context;
}

}  // namespace oscar
