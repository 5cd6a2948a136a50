// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The limits of one rendering, which make up the sandbox, and its current position. Trap: every
// loop over data that a template can enlarge must call Step(). Every new text must go through
// String() or Append(), and every new list through ChargeItems(). If the size is known in advance,
// charge before building it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "capture/text/template/value.h"

namespace oscar::jinja {

// An error in the template or its data. ChatTemplate adds file and line and throws InputError.
struct TemplateFailure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Returns the message for a feature of Jinja2 or Python that this interpreter refuses:
// NotSupported("filter", "xmlattr").
std::string NotSupported(std::string_view kind, std::string_view name);

// Local time for strftime_now.
struct CivilTime {
  int year = 2026, month = 1, day = 1;
  int hour = 0, minute = 0, second = 0;
};

class Session {
 public:
  static constexpr uint64_t kMaxSteps = 20'000'000;
  static constexpr size_t kMaxTextBytes = size_t{32} << 20;
  static constexpr size_t kMaxMadeBytes = size_t{128} << 20;  // total of all texts and lists
  static constexpr int kMaxDepth = 1000;  // nested evaluations; limits the stack
  static constexpr size_t kBytesPerStep = 32;
  static constexpr size_t kItemBytes = 128;  // per value in a list, and per text in addition to its
                                             // own bytes

  explicit Session(uint64_t max_steps = kMaxSteps) : max_steps_(max_steps) {}
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void Step(uint64_t cost = 1) {
    steps_ += cost;
    if (steps_ > max_steps_) FailSteps();
  }
  // Charges for reading a text of this many bytes.
  void ChargeText(size_t bytes) {
    if (bytes > kMaxTextBytes) FailText();
    Step(1 + bytes / kBytesPerStep);
  }
  // Charges for this much memory, as if none were freed before the end.
  void ChargeMemory(size_t bytes) {
    made_ += bytes;
    if (made_ > kMaxMadeBytes) FailMemory();
    Step(1 + bytes / kBytesPerStep);
  }
  // Charges for the code points of a text of this many bytes twice: before a change and after it.
  void ChargeWide(size_t bytes) { ChargeMemory(2 * sizeof(char32_t) * bytes); }
  // Charges for searching `sub` bytes in `text` bytes in the worst case, where every position
  // nearly matches.
  void ChargeSearch(size_t text, size_t sub) {
    Step(1 + text / kBytesPerStep * (1 + sub / kBytesPerStep));
  }
  void ChargeItems(size_t count) { ChargeMemory(count * kItemBytes); }
  Value String(std::string text, bool markup = false) {
    if (text.size() > kMaxTextBytes) FailText();
    ChargeMemory(text.size() + kItemBytes);
    return Value::String(std::move(text), markup);
  }
  // Computes out += text and charges for it.
  void Append(std::string_view text, std::string& out) {
    if (out.size() + text.size() > kMaxTextBytes) FailText();
    ChargeMemory(text.size());
    out += text;
  }

  // Runs `release` when the session ends, to clear objects that may contain themselves.
  void AtEnd(std::function<void()> release);

  // Adds one level of nesting while it exists.
  class Level {
   public:
    explicit Level(Session& session) : session_(session) {
      if (++session_.depth_ > kMaxDepth) {
        --session_.depth_;
        FailDepth();
      }
    }
    ~Level() { --session_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Session& session_;
  };

  int line = 1;  // current line of the template
  CivilTime now;
  bool time_was_read = false;

 private:
  [[noreturn]] void FailSteps() const;
  [[noreturn]] static void FailText();
  [[noreturn]] static void FailMemory();
  [[noreturn]] static void FailDepth();
  uint64_t max_steps_;
  uint64_t steps_ = 0;
  size_t made_ = 0;  // bytes
  int depth_ = 0;
  std::vector<std::function<void()>> releases_;
};

}  // namespace oscar::jinja
