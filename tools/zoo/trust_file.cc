// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/zoo/trust_file.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <initializer_list>
#include <sstream>

#include "capture/files/atomic_file.h"
#include "capture/files/nearest.h"
#include "capture/files/quote.h"
#include "tools/zoo/signing_input.h"
#include "zoo/store/blob_store.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr size_t kMaxTrustBytes = size_t{1} << 20;
constexpr size_t kMaxTrustDepth = 6;

// Reads the file as JSON whose scalars are all text. Uses the parser's events, because yaml-cpp's
// node tree resolves aliases and silently keeps the last of two equal keys.
class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(std::string name) : name_(std::move(name)) {}
  Json Take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    CheckPlain(mark, "", anchor);
    Add(mark, nullptr);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    Fail(mark, "aliases (*name) are not allowed; write the value out");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    CheckPlain(mark, tag, anchor);
    Add(mark, value);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, Json::array());
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, Json::object());
  }
  void OnMapEnd() override { Close(); }

  [[noreturn]] void Fail(const YAML::Mark& mark, const std::string& what) const {
    throw UsageError(fmt::format("{}:{}: {}", name_, mark.line + 1, what));
  }

 private:
  struct Frame {
    Json value;
    std::optional<std::string> key;
    YAML::Mark mark;
  };

  // yaml-cpp tags plain values "?", quoted values "!" and null ""; other tags come from the file.
  void CheckPlain(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) const {
    if (anchor != 0 || (!tag.empty() && tag != "?" && tag != "!"))
      Fail(mark, "anchors (&name) and tags (!name) are not allowed");
  }
  void Open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, Json value) {
    CheckPlain(mark, tag, anchor);
    if (frames_.size() == kMaxTrustDepth) Fail(mark, "nested too deeply");
    frames_.push_back({std::move(value), std::nullopt, mark});
  }
  void Close() {
    Frame done = std::move(frames_.back());
    frames_.pop_back();
    Add(done.mark, std::move(done.value));
  }
  void Add(const YAML::Mark& mark, Json value) {
    if (frames_.empty()) {
      root_ = std::move(value);
      return;
    }
    Frame& top = frames_.back();
    if (top.value.is_array()) {
      top.value.push_back(std::move(value));
    } else if (top.key) {
      top.value[*top.key] = std::move(value);
      top.key.reset();
    } else {
      if (!value.is_string()) Fail(mark, "a key must be text");
      top.key = value.get<std::string>();
      if (top.value.contains(*top.key)) Fail(mark, Quoted(*top.key) + " is given twice");
    }
  }

  std::string name_;
  std::vector<Frame> frames_;
  Json root_;
};

Json ParseTree(const std::string& text, const std::string& name) {
  std::istringstream stream(text + "\n...\n");
  TreeBuilder builder(name), second(name);
  try {
    YAML::Parser parser(stream);
    parser.HandleNextDocument(builder);
    if (parser.HandleNextDocument(second))
      throw UsageError(name + ": expected one YAML document, found a second");
  } catch (const YAML::Exception& error) {
    const bool anchor = error.msg.find("anchor") != error.msg.npos;  // *NAME is read as an alias
    builder.Fail(error.mark,
                 Escaped(error.msg) + (anchor ? "; quote a name that begins with *: \"*\"" : ""));
  }
  return builder.Take();
}

// One mapping of the file. `where` is its name in errors.
struct Mapping {
  const Json& json;
  std::string where;
  fs::path folder;

  [[noreturn]] void Fail(const std::string& what) const { throw UsageError(where + ": " + what); }
  void Expect(std::initializer_list<std::string> keys) const {
    if (!json.is_object()) Fail("expected 'key: value' lines");
    for (const auto& [key, value] : json.items()) {
      if (std::find(keys.begin(), keys.end(), key) == keys.end())
        Fail("unknown key " + Quoted(key) + "; known: " + Nearest(key, keys));
    }
  }
  std::optional<std::string> Text(const char* key) const {
    if (!json.contains(key)) return std::nullopt;
    if (!json.at(key).is_string()) Fail(fmt::format("'{}' must be a single value", key));
    return json.at(key).get<std::string>();
  }
  Json List(const char* key) const {
    const Json list = json.value(key, Json::array());
    if (!list.is_array()) Fail(fmt::format("'{}' must be a list such as [a, b]", key));
    return list;
  }
  std::vector<std::string> Files(const char* key) const {
    std::vector<std::string> files;
    for (const Json& file : List(key)) {
      if (!file.is_string()) Fail(fmt::format("'{}': expected file names", key));
      files.push_back((folder / file.get<std::string>()).string());
    }
    return files;
  }
};

TrustRule RuleFrom(const Mapping& mapping, bool of_names, TrustPolicy* policy) {
  mapping.Expect({"level", "keys", "identities", "signatures", "lowest"});
  TrustRule rule;
  const std::string level = mapping.Text("level").value_or("enforce");
  if (level == "off")
    rule.level = TrustLevel::kOff;
  else if (level == "warn")
    rule.level = TrustLevel::kWarn;
  else if (level != "enforce")
    mapping.Fail("level: expected off, warn or enforce, found " + Quoted(level));
  for (const std::string& file : mapping.Files("keys")) AddKey(file, &rule, policy);
  for (const Json& one : mapping.List("identities")) {
    const Mapping identity{one, mapping.where + ": identities", mapping.folder};
    identity.Expect({"name", "roots"});
    const auto name = identity.Text("name");
    const std::vector<std::string> roots = identity.Files("roots");
    if (!name || roots.empty())
      identity.Fail("expected a name and a list of roots, such as [root.crt]");
    rule.identities.push_back({*name, ReadCertificates(roots)});
  }
  const size_t signers = rule.keys.size() + rule.identities.size();
  if (const auto text = mapping.Text("signatures")) {
    if (text->size() != 1 || (*text)[0] < '1' || (*text)[0] > '9')
      mapping.Fail("signatures: expected 1 to 9, found " + Quoted(*text));
    rule.signatures = static_cast<size_t>((*text)[0] - '0');
  }
  if (rule.level != TrustLevel::kOff && rule.signatures > signers) {
    mapping.Fail(fmt::format("requires {} signatures, but names only {} keys and identities",
                             rule.signatures, signers));
  }
  if (const auto text = mapping.Text("lowest")) {
    if (!of_names) mapping.Fail("lowest: only allowed in rules for names");
    rule.lowest = ParseZooVersion(*text);
    if (!rule.lowest) mapping.Fail("lowest: expected X.Y.Z, found " + Quoted(*text));
  }
  return rule;
}

void CheckPattern(const std::string& pattern, const Mapping& mapping) {
  if (pattern == "*") return;
  const std::string name =
      pattern.ends_with("/*") ? pattern.substr(0, pattern.size() - 1) + "any" : pattern;
  if (const std::string problem = ZooNameProblem(name); !problem.empty())
    mapping.Fail(Quoted(pattern) + ": expected ORG/MODEL, ORG/* or *: " + problem);
}

}  // namespace

void AddKey(const fs::path& file, TrustRule* rule, TrustPolicy* policy) {
  rule->keys.push_back(ReadPublicKey(file));
  policy->key_names[rule->keys.back().id()] = file.filename().string();
}

TrustFile ReadTrustFile(const fs::path& file) {
  const Json tree = ParseTree(ReadSmallFile(file, kMaxTrustBytes), file.string());
  const fs::path folder = fs::absolute(file).parent_path();
  const Mapping all{tree, file.string(), folder};
  all.Expect({"rules", "snapshot", "memory"});
  TrustFile out;
  const Json rules_json = tree.value("rules", Json::object());
  const Mapping rules{rules_json, file.string() + ": rules", folder};
  if (!rules_json.is_object() || rules_json.empty()) rules.Fail("expected at least one rule");
  for (const auto& [pattern, rule] : rules_json.items()) {
    CheckPattern(pattern, rules);
    out.policy.rules[pattern] =
        RuleFrom({rule, rules.where + ": " + pattern, folder}, true, &out.policy);
  }
  if (tree.contains("snapshot")) {
    out.policy.snapshot =
        RuleFrom({tree.at("snapshot"), file.string() + ": snapshot", folder}, false, &out.policy);
    if (out.policy.snapshot->signatures != 1 || out.policy.snapshot->level != TrustLevel::kEnforce)
      all.Fail(
          "snapshot: 'signatures' must be 1 and 'level' must be enforce; the rule of each name "
          "sets the level");
  }
  out.memory_file = folder / all.Text("memory").value_or(file.stem().string() + ".seen.json");
  return out;
}

TrustMemory ReadMemory(const TrustFile& file) {
  if (file.memory_file.empty() || !fs::exists(file.memory_file)) return {};
  return ParseMemory(ReadSmallFile(file.memory_file, size_t{64} << 20), file.memory_file.string());
}

void WriteMemory(const TrustFile& file, const TrustMemory& memory) {
  if (!file.memory_file.empty())
    WriteFileAtomically(file.memory_file, CanonicalJson(MemoryToJson(memory)));
}

}  // namespace oscar
