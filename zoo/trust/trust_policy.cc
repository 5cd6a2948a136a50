// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "zoo/trust/trust_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "capture/files/quote.h"
#include "zoo/signing/model_files.h"
#include "zoo/signing/trust_error.h"
#include "zoo/trust/look_alike.h"

namespace oscar {
namespace {

constexpr std::string_view kMemorySchema = "oscar-trust-memory";
constexpr int kMemoryVersion = 1;
constexpr int64_t kClockSlack = 24 * 3600;  // seconds by which clocks may differ

std::string NameAt(const ZooEntry& entry) { return entry.name.text() + "@" + entry.version.text(); }

// Checks that a statement of a trusted signer is about this version and its files.
void CheckSays(const ModelStatement& statement, const ZooEntry& entry) {
  if (statement.subject != NameAt(entry)) {
    throw TrustError(TrustExit::kAltered, fmt::format("{}: the signature belongs to {}",
                                                      NameAt(entry), Quoted(statement.subject)));
  }
  std::map<std::string, std::string> files;
  for (const auto& [name, digest] : entry.files) files[name] = digest.sha256;
  CompareFiles(files, statement.files, NameAt(entry));
}

void CheckSignatures(const TrustRule& rule, const TrustQuestion& question, TrustVerdict* verdict) {
  const std::string what = NameAt(question.entry);
  std::set<std::string> signers;
  std::optional<TrustError> worst;  // errors of trusted signers take precedence
  for (const std::string& bundle : question.bundles) {
    try {
      const Vouched vouched = CheckVouched(bundle, rule, what);
      CheckSays(ParseStatement(vouched.payload, what), question.entry);
      signers.insert(vouched.signer);
    } catch (const TrustError& error) {
      if (!worst || worst->exit_code() == TrustExit::kWrongKey) worst = error;
    } catch (const InputError& error) {
      if (!worst) worst = TrustError(TrustExit::kAltered, error.what());
    }
  }
  verdict->signers.assign(signers.begin(), signers.end());
  if (signers.size() >= rule.signatures) return;
  if (worst) throw TrustError(*worst);
  throw TrustError(TrustExit::kUnsigned, fmt::format("{}: has {} of {} required signatures", what,
                                                     signers.size(), rule.signatures));
}

// Refuses a version below the policy's lowest, and a version whose content changed since it was
// seen. If the latest version is lower than one seen before, the signed snapshot must list that one
// as yanked; `note` then says so.
void CheckAge(const TrustRule& rule, const TrustMemory& memory, const TrustQuestion& question,
              std::string* note) {
  const ZooEntry& entry = question.entry;
  if (rule.lowest && entry.version < *rule.lowest) {
    throw TrustError(TrustExit::kTooOld, fmt::format("{}: the policy accepts no version below {}",
                                                     NameAt(entry), rule.lowest->text()));
  }
  const auto seen = memory.names.find(entry.name.text());
  if (seen == memory.names.end()) return;
  if (question.latest && entry.version < seen->second.version) {
    const std::string version = seen->second.version.text();
    const auto& snapshot = question.snapshot.snapshot;
    if (!snapshot || !snapshot->TookBack(entry.name, seen->second.version, seen->second.identity)) {
      throw TrustError(
          TrustExit::kTooOld,
          fmt::format(
              "{}: offered as the latest, but {} was seen before{}; name the version explicitly to "
              "go back to it",
              NameAt(entry), version,
              snapshot
                  ? ", which the snapshot does not list as yanked"
                  : ", and only a snapshot required by the policy can show that it was yanked"));
    }
    const std::string before = entry.name.text() + "@" + version;
    *note = fmt::format("{}, which was seen before, was yanked: {}", before,
                        Escaped(snapshot->yanked.at(before).reason));
  }
  if (entry.version == seen->second.version && entry.identity != seen->second.identity) {
    throw TrustError(TrustExit::kAltered,
                     fmt::format("{}: its identity is {}, but was {} when it was seen before; a "
                                 "version never changes",
                                 NameAt(entry), entry.identity, seen->second.identity));
  }
}

[[noreturn]] void RefuseSnapshot(ExitCode code, const std::string& problem) {
  throw TrustError(code, fmt::format("{}: {}", kSnapshotFile, problem));
}

// Checks that a valid snapshot lists this version.
void CheckListed(const Snapshot& snapshot, const TrustQuestion& question) {
  const ZooEntry& entry = question.entry;
  const auto expect = [&](const std::string& listed) {
    if (listed == entry.identity) return;
    RefuseSnapshot(TrustExit::kAltered, fmt::format("lists {} with the identity {}, expected {}",
                                                    NameAt(entry), listed, entry.identity));
  };
  if (const auto yank = snapshot.yanked.find(NameAt(entry)); yank != snapshot.yanked.end()) {
    expect(yank->second.identity);
    // A yanked version can be pulled by its number. It cannot be pulled as the latest if the
    // snapshot lists a version that is not yanked.
    const bool offered = question.latest && snapshot.entries.contains(entry.name.text());
    if (!question.yanked.empty() && !offered) return;
    RefuseSnapshot(
        TrustExit::kTooOld,
        fmt::format("says that {} was yanked, but the zoo {}: {}", NameAt(entry),
                    question.yanked.empty() ? "does not say so" : "still offers it as the latest",
                    Escaped(yank->second.reason)));
  }
  const auto versions = snapshot.entries.find(entry.name.text());
  if (versions == snapshot.entries.end() || !versions->second.contains(entry.version))
    RefuseSnapshot(TrustExit::kUnsigned, fmt::format("does not list {}", NameAt(entry)));
  expect(versions->second.at(entry.version));
  if (const ZooVersion& highest = versions->second.rbegin()->first;
      question.latest && highest > entry.version) {
    RefuseSnapshot(TrustExit::kTooOld,
                   fmt::format("lists {} up to {}, but the zoo offers {} as the latest",
                               entry.name.text(), highest.text(), entry.version.text()));
  }
}

// Returns the rule for names that this name imitates, or null. A name with an equally specific rule
// of its own is not an imitation.
const std::pair<const std::string, TrustRule>* ImitatedBy(const TrustPolicy& policy,
                                                          const ZooName& name) {
  for (const auto& rule : policy.rules) {
    const std::string own = rule.first.ends_with("/*") ? name.org + "/*" : name.text();
    if (LooksLike(name.text(), rule.first) && !policy.rules.contains(own)) return &rule;
  }
  return nullptr;
}

// Returns a name seen earlier that this name looks like. Returns "" if there is none, or if this
// name was seen before or has its own rule.
std::string SeenLike(const TrustPolicy& policy, const TrustMemory& memory, const ZooName& name) {
  if (memory.names.contains(name.text()) || policy.rules.contains(name.text())) return "";
  for (const auto& [other, seen] : memory.names)
    if (LooksLike(name.text(), other)) return other;
  return "";
}

}  // namespace

const TrustRule* TrustPolicy::RuleOf(const ZooName& name) const {
  for (const std::string& pattern : {name.text(), name.org + "/*", std::string("*")})
    if (const auto rule = rules.find(pattern); rule != rules.end()) return &rule->second;
  return nullptr;
}

std::string TrustPolicy::SignerText(const std::string& signer) const {
  const auto name = key_names.find(signer);
  if (name == key_names.end()) return Escaped(signer);
  return fmt::format("{} ({})", Escaped(name->second), signer.substr(0, 16));
}

void TrustMemory::Remember(const ZooEntry& entry) {
  const auto [seen, added] = names.emplace(entry.name.text(), Seen{entry.version, entry.identity});
  if (!added && seen->second.version < entry.version)
    seen->second = {entry.version, entry.identity};
}

void TrustMemory::Remember(const Snapshot& snapshot, const std::string& signer) {
  int64_t& newest = snapshots_unix[signer];
  newest = std::max(newest, snapshot.created_unix);
}

Json MemoryToJson(const TrustMemory& memory) {
  Json names = Json::object();
  for (const auto& [name, seen] : memory.names)
    names[name] = {{"version", seen.version.text()}, {"identity", seen.identity}};
  return {{"$schema", {{"name", kMemorySchema}, {"version", kMemoryVersion}}},
          {"names", names},
          {"snapshots_unix", memory.snapshots_unix}};
}

TrustMemory ParseMemory(std::string_view text, std::string_view what) {
  const Json json = ParseStrictJson(text, what, {.max_depth = 8, .max_bytes = size_t{64} << 20});
  const Json& schema = JsonMember(json, "$schema", what);
  if (JsonString(schema, "name", what) != kMemorySchema ||
      JsonInt(schema, "version", what) != kMemoryVersion) {
    throw InputError(fmt::format("{}: expected schema {} {}", what, kMemorySchema, kMemoryVersion));
  }
  TrustMemory memory;
  const Json &names = JsonMember(json, "names", what),
             &snapshots = JsonMember(json, "snapshots_unix", what);
  if (!names.is_object() || !snapshots.is_object())
    throw InputError(fmt::format("{}: 'names' and 'snapshots_unix' must be objects", what));
  for (const auto& [name, seen] : names.items()) {
    memory.names[name] = {ZooVersionOf(JsonString(seen, "version", what), what),
                          JsonString(seen, "identity", what)};
  }
  for (const auto& [signer, date] : snapshots.items())
    memory.snapshots_unix[signer] = JsonInt(snapshots, signer.c_str(), what);
  return memory;
}

std::string TrustVerdict::word() const {
  if (level == TrustLevel::kOff) return "UNCHECKED";
  if (code == ExitCode::kDone) return "TRUSTED";
  return code == TrustExit::kUnsigned ? "UNSIGNED" : "UNTRUSTED";
}

std::string TrustVerdict::Reason(const TrustPolicy& policy) const {
  if (!problem.empty()) return problem;
  std::string by;
  for (const std::string& signer : signers)
    by += (by.empty() ? "by " : ", ") + policy.SignerText(signer);
  return by;
}

Vouched CheckVouched(std::string_view text, const TrustRule& rule, std::string_view what) {
  const SignedBundle bundle = ParseBundle(text, what);
  std::optional<TrustError> why;
  const auto holds = [&](const auto& check) {
    try {
      check();
      return true;
    } catch (const TrustError& error) {
      if (!why || why->exit_code() == TrustExit::kWrongKey) why = error;
      return false;
    }
  };
  if (bundle.chain.empty()) {
    for (const PublicKey& key : rule.keys)
      if (holds([&] { CheckSignedWith(bundle, key, what); })) return {bundle.payload, key.id()};
  } else {
    const std::vector<std::string> names = bundle.chain.front().names();
    for (const TrustedIdentity& identity : rule.identities) {
      if (std::ranges::find(names, identity.name) == names.end()) continue;
      if (holds([&] { CheckSignedUnder(bundle, identity.roots, what); }))
        return {bundle.payload, identity.name};
    }
  }
  if (why) throw TrustError(*why);
  throw TrustError(TrustExit::kWrongKey,
                   fmt::format("{}: signed {}, which the policy does not name", what,
                               bundle.chain.empty()
                                   ? "with the key " + Quoted(bundle.key_hint)
                                   : "by " + Quoted(bundle.chain.front().names().empty()
                                                        ? "a certificate without a name"
                                                        : bundle.chain.front().names().front())));
}

SnapshotCheck CheckSnapshot(const TrustPolicy& policy, const TrustMemory& memory,
                            const std::optional<std::string>& text, int64_t now_unix) {
  SnapshotCheck check;
  if (!policy.snapshot) return check;
  try {
    if (!text) {
      throw TrustError(TrustExit::kUnsigned,
                       "the zoo has no signed snapshot, but the policy requires one");
    }
    const Vouched vouched = CheckVouched(*text, *policy.snapshot, kSnapshotFile);
    const Snapshot snapshot = ParseSnapshot(vouched.payload, kSnapshotFile);
    if (snapshot.expires_unix <= now_unix) {
      RefuseSnapshot(TrustExit::kTooOld,
                     "has expired: the zoo, or the mirror it came from, may hide newer versions");
    }
    if (snapshot.created_unix > now_unix + kClockSlack)
      RefuseSnapshot(TrustExit::kAltered, "is dated in the future; check this machine's clock");
    const auto seen = memory.snapshots_unix.find(vouched.signer);
    if (seen != memory.snapshots_unix.end() && snapshot.created_unix < seen->second)
      RefuseSnapshot(TrustExit::kTooOld, "is older than the one seen before");
    check.snapshot = snapshot;
    check.signer = vouched.signer;
  } catch (const TrustError& error) {
    check.problem = error;
  } catch (const InputError& error) {
    check.problem = TrustError(TrustExit::kAltered, error.what());
  }
  return check;
}

TrustVerdict Judge(const TrustPolicy& policy, const TrustMemory& memory,
                   const TrustQuestion& question) {
  TrustVerdict verdict;
  const ZooName& name = question.entry.name;
  const TrustRule* rule = policy.RuleOf(name);
  const auto* imitated = ImitatedBy(policy, name);
  if (rule != nullptr) verdict.level = rule->level;
  // The rule of the imitated name applies too, so that a look-alike cannot escape it.
  if (imitated != nullptr) verdict.level = std::max(verdict.level, imitated->second.level);
  if (verdict.level == TrustLevel::kOff) return verdict;
  try {
    const std::string like = imitated != nullptr ? imitated->first : SeenLike(policy, memory, name);
    if (!like.empty()) {
      throw TrustError(TrustExit::kLookAlike,
                       fmt::format("{}: looks like {}, but is another name", name.text(), like));
    }
    CheckAge(*rule, memory, question, &verdict.note);
    CheckSignatures(*rule, question, &verdict);
    if (question.snapshot.problem) throw TrustError(*question.snapshot.problem);
    if (question.snapshot.snapshot) CheckListed(*question.snapshot.snapshot, question);
  } catch (const TrustError& error) {
    verdict.code = error.exit_code();
    verdict.problem = error.what();
    verdict.note.clear();
  }
  return verdict;
}

}  // namespace oscar
