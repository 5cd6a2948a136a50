// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/config_file.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <unordered_map>

#include "capture/files/quote.h"  // Quoted, Escaped
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr size_t kMaxConfigBytes = size_t{1} << 20;

// Collects the entries from the parser's events. yaml-cpp's node tree is not used, because it
// resolves aliases and silently keeps the last of two equal keys.
class EntryCollector : public YAML::EventHandler {
 public:
  explicit EntryCollector(std::string name) : name_(std::move(name)) {}
  std::vector<ConfigEntry> Take() { return std::move(entries_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Scalar(mark, anchor, {.text = "", .quoted = false});
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    Fail(mark, "aliases (*name) are not allowed; write the value out");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    CheckTag(mark, tag);
    Scalar(mark, anchor, {.text = value, .quoted = tag == "!"});
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    CheckTag(mark, tag);
    CheckAnchor(mark, anchor);
    if (state_ != State::kValue) {
      Fail(mark, state_ == State::kList ? "a list inside a list is not allowed"
                                        : "expected 'key: value' lines, found a list");
    }
    entries_.back().list = true;
    state_ = State::kList;
  }
  void OnSequenceEnd() override { state_ = State::kKey; }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    CheckTag(mark, tag);
    CheckAnchor(mark, anchor);
    if (state_ != State::kStart) {
      Fail(mark, entries_.empty() ? "a key must be plain text"
                                  : "a mapping inside " + Quoted(entries_.back().key) +
                                        " is not allowed; keys are not nested");
    }
    state_ = State::kKey;
  }
  void OnMapEnd() override { state_ = State::kEnd; }

 private:
  enum class State { kStart, kKey, kValue, kList, kEnd };

  [[noreturn]] void Fail(const YAML::Mark& mark, const std::string& what) const {
    throw UsageError(fmt::format("{}:{}: {}", name_, mark.line + 1, what));
  }
  void CheckAnchor(const YAML::Mark& mark, YAML::anchor_t anchor) const {
    if (anchor != 0) Fail(mark, "anchors (&name) are not allowed; write the value out");
  }
  // yaml-cpp tags plain values "?", quoted values "!" and null ""; other tags come from the file.
  void CheckTag(const YAML::Mark& mark, const std::string& tag) const {
    if (!tag.empty() && tag != "?" && tag != "!")
      Fail(mark, "tags (" + Escaped(tag) + ") are not allowed");
  }
  void Scalar(const YAML::Mark& mark, YAML::anchor_t anchor, ConfigScalar scalar) {
    CheckAnchor(mark, anchor);
    switch (state_) {
      case State::kStart:
        if (scalar.IsNull()) {  // an empty document
          state_ = State::kEnd;
          return;
        }
        Fail(mark, "expected 'key: value' lines, found " + Quoted(scalar.text));
      case State::kKey: {
        const auto [same, is_new] = lines_.emplace(scalar.text, mark.line + 1);
        if (!is_new) {
          Fail(mark, fmt::format("{} is given twice; the first time was on line {}",
                                 Quoted(scalar.text), same->second));
        }
        entries_.push_back(
            {.key = scalar.text, .line = mark.line + 1, .list = false, .values = {}});
        state_ = State::kValue;
        return;
      }
      case State::kValue:
        entries_.back().values.push_back(std::move(scalar));
        state_ = State::kKey;
        return;
      case State::kList:
        entries_.back().values.push_back(std::move(scalar));
        return;
      case State::kEnd:
        Fail(mark, "expected the end of the file after the settings");
    }
  }

  std::string name_;
  std::vector<ConfigEntry> entries_;
  std::unordered_map<std::string, int> lines_;  // line of each key so far
  State state_ = State::kStart;
};

}  // namespace

bool ConfigScalar::IsNull() const {
  return !quoted && (text.empty() || text == "~" || text == "null");
}

std::vector<ConfigEntry> ParseConfig(std::string_view text, const std::string& name) {
  if (text.size() > kMaxConfigBytes) {
    throw UsageError(fmt::format("{}: expected at most {} bytes of configuration, found {}", name,
                                 kMaxConfigBytes, text.size()));
  }
  // Ends the document explicitly. Otherwise yaml-cpp closes a quote that the file leaves open.
  std::istringstream stream{std::string(text) + "\n...\n"};
  EntryCollector collector(name);
  try {
    YAML::Parser parser(stream);
    parser.HandleNextDocument(collector);
    EntryCollector second(name);
    if (parser.HandleNextDocument(second))
      throw UsageError(fmt::format("{}: expected one YAML document, found a second", name));
  } catch (const YAML::Exception& error) {
    throw UsageError(fmt::format("{}:{}: not YAML: {}", name, error.mark.line + 1, error.msg));
  }
  return collector.Take();
}

std::vector<ConfigEntry> ReadConfigFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::error_code error;
  if (!file || std::filesystem::is_directory(path, error))
    throw UsageError(fmt::format("--config: cannot read '{}'", path));
  std::string text(kMaxConfigBytes + 1, '\0');  // one byte more, to detect larger files
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kMaxConfigBytes) {
    throw UsageError(fmt::format("{}: expected at most {} bytes of configuration, found more", path,
                                 kMaxConfigBytes));
  }
  return ParseConfig(text, path);
}

}  // namespace oscar
