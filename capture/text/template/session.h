// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The limits of one rendering, and its current position. Trap: every loop over data that a template
// can grow has to call Step(), every text it builds has to go through String() or Append(), and
// every list through ChargeItems(), before it is built if its size is known. This is the sandbox.
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

// An error of the template or of its data. ChatTemplate adds file and line and throws InputError.
struct TemplateFailure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The message for features of Jinja2 or Python that this interpreter refuses:
// NotSupported("filter", "xmlattr").
std::string NotSupported(std::string_view kind, std::string_view name);

// Local time of strftime_now.
struct CivilTime {
  int year = 2026, month = 1, day = 1;
  int hour = 0, minute = 0, second = 0;
};

class Session {
 public:
  static constexpr uint64_t kMaxSteps = 20'000'000;
  static constexpr size_t kMaxTextBytes = size_t{32} << 20;
  static constexpr size_t kMaxMadeBytes = size_t{128} << 20;  // for all texts and lists together
  static constexpr int kMaxDepth = 1000;  // nested evaluations; limits the stack
  static constexpr size_t kBytesPerStep = 32;
  static constexpr size_t kItemBytes = 128;  // per value in a list, or per text in addition to its
                                             // own

  explicit Session(uint64_t max_steps = kMaxSteps) : max_steps_(max_steps) {}
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void Step(uint64_t cost = 1) {
    steps_ += cost;
    if (steps_ > max_steps_) FailSteps();
  }
  // Pays for reading a text of that many bytes.
  void ChargeText(size_t bytes) {
    if (bytes > kMaxTextBytes) FailText();
    Step(1 + bytes / kBytesPerStep);
  }
  // Pays for that much memory, as if none were freed before the end.
  void ChargeMemory(size_t bytes) {
    made_ += bytes;
    if (made_ > kMaxMadeBytes) FailMemory();
    Step(1 + bytes / kBytesPerStep);
  }
  // Pays for the code points of a text of that many bytes twice: before a change and after it.
  void ChargeWide(size_t bytes) { ChargeMemory(2 * sizeof(char32_t) * bytes); }
  // Pays for searching `sub` bytes in `text` bytes in the worst case, where every position nearly
  // matches.
  void ChargeSearch(size_t text, size_t sub) {
    Step(1 + text / kBytesPerStep * (1 + sub / kBytesPerStep));
  }
  void ChargeItems(size_t count) { ChargeMemory(count * kItemBytes); }
  Value String(std::string text, bool markup = false) {
    if (text.size() > kMaxTextBytes) FailText();
    ChargeMemory(text.size() + kItemBytes);
    return Value::String(std::move(text), markup);
  }
  // Pays for and does out += text.
  void Append(std::string_view text, std::string& out) {
    if (out.size() + text.size() > kMaxTextBytes) FailText();
    ChargeMemory(text.size());
    out += text;
  }

  // `release` runs when the session ends. Objects that may contain themselves are cleared there.
  void AtEnd(std::function<void()> release);

  // One more level of nesting during its lifetime.
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
