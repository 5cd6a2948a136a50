// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/zoo/zoo_sign.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "capture/files/quote.h"
#include "tools/cli/command_line.h"
#include "tools/zoo/signing_input.h"
#include "zoo/signing/trust_error.h"
#include "zoo/store/yank.h"
#include "zoo/trust/signature_store.h"
#include "zoo/trust/snapshot.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr int64_t kSecondsPerDay = 24 * 3600;

int64_t NowUnix() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

Signer SignerOf(const ZooOptions& options) {
  if (options.certificate.empty() && !options.chain.empty())
    throw UsageError("--chain needs --certificate");
  return ReadSigner(options.key, options.certificate, options.chain);
}

CommandResult SignDirectory(const ZooOptions& options, CommandContext& context) {
  if (options.output.empty())
    throw UsageError("sign --directory: name the signature to write with -o FILE");
  const Signer signer = SignerOf(options);
  if (!context.dry_run) SignModel(options.directory, options.ignored, signer, options.output);
  if (!options.json) return {ExitCode::kDone, context.dry_run ? "" : options.output};
  context.out << CanonicalJson({{"verb", "sign"},
                                {"directory", options.directory},
                                {"signer", signer.key.public_key().id()},
                                {"signature", options.output}});
  return {};
}

// Judges versions. Reads the memory file and the zoo's snapshot only once for all of them.
class Court {
 public:
  Court(const TrustFile& trust, const std::optional<std::string>& snapshot_text)
      : trust_(trust),
        memory_(ReadMemory(trust)),
        before_(MemoryToJson(memory_)),
        snapshot_(CheckSnapshot(trust.policy, memory_, snapshot_text, NowUnix())) {}

  TrustVerdict Of(const ZooEntry& entry, std::span<const std::string> bundles, bool latest,
                  std::string_view yanked) {
    TrustVerdict verdict = Judge(trust_.policy, memory_,
                                 {.entry = entry,
                                  .bundles = bundles,
                                  .latest = latest,
                                  .snapshot = snapshot_,
                                  .yanked = yanked});
    if (verdict.trusted()) {
      // A yanked version is not remembered. Otherwise a lower latest version would later count as a
      // rollback.
      const bool back = snapshot_.snapshot ? snapshot_.snapshot->TookBack(entry.name, entry.version,
                                                                          entry.identity)
                                           : !yanked.empty();
      if (!back) memory_.Remember(entry);
      if (snapshot_.snapshot) memory_.Remember(*snapshot_.snapshot, snapshot_.signer);
    }
    return verdict;
  }
  void Save() const {
    if (MemoryToJson(memory_) != before_) WriteMemory(trust_, memory_);
  }

 private:
  const TrustFile& trust_;
  TrustMemory memory_;
  Json before_;
  SnapshotCheck snapshot_;
};

}  // namespace

std::string SnapshotCommand(const ZooOptions& options, const Zoo& zoo, const ZooName& name,
                            const ZooVersion& version) {
  int64_t days = options.days;
  std::string last;
  try {
    if (const auto text = ReadSnapshotFile(zoo)) {
      last = " # KEY: the private key that signs snapshots";  // a comment for the shell
      const SignedBundle bundle = ParseBundle(*text, kSnapshotFile);
      const Snapshot snapshot = ParseSnapshot(bundle.payload, kSnapshotFile);
      const std::string identity = zoo.Read(name, version).identity;
      if (snapshot.expires_unix > NowUnix() &&
          (YankReason(zoo, name, version).empty() ? snapshot.Lists(name, version, identity)
                                                  : snapshot.TookBack(name, version, identity)))
        return "";
      if (!bundle.key_hint.empty())
        last = fmt::format(" # KEY: the private key of {}, which signed the last one",
                           Escaped(bundle.key_hint.substr(0, 16)));
      days = std::clamp<int64_t>((snapshot.expires_unix - snapshot.created_unix) / kSecondsPerDay,
                                 1, kMaxSnapshotDays);
    }
  } catch (const InputError&) {  // a damaged snapshot is replaced
  }
  if (options.key.empty() && last.empty()) return "";
  std::string command = "oscar-zoo snapshot --zoo " + ShellQuote(zoo.path()) + " --key " +
                        (options.key.empty() ? "KEY" : ShellQuote(options.key));
  if (!options.certificate.empty()) command += " --certificate " + ShellQuote(options.certificate);
  for (size_t i = 0; i < options.chain.size(); ++i)
    command += (i == 0 ? " --chain " : " ") + ShellQuote(options.chain[i]);
  command += fmt::format(" --days {}", days);
  return options.key.empty() ? command + last : command;
}

CommandResult SignVerb(const ZooOptions& options, CommandContext& context) {
  if (options.directory.empty() == options.reference.empty())
    throw UsageError("sign: give either NAME@X.Y.Z of a zoo or --directory DIR");
  if (!options.directory.empty()) return SignDirectory(options, context);
  if (!options.output.empty() || !options.ignored.empty())
    throw UsageError("-o and --ignore need --directory; a zoo stores its signatures itself");
  const Signer signer = SignerOf(options);
  const Zoo zoo = Zoo::Open(ZooPath(options));
  const ZooReference reference = ParseZooReference(options.reference);
  const ZooEntry entry = zoo.Read(reference.name, zoo.Resolve(reference));
  std::string file;
  if (!context.dry_run) {
    const std::string sha256 = AddSignature(
        zoo, entry, signer, [&] { context.stop.ThrowIfRequested("nothing was signed"); });
    file = SignaturePath(zoo.path(), entry.name, entry.version, sha256).string();
  }
  const std::string now =
      context.dry_run ? "" : SnapshotCommand(options, zoo, entry.name, entry.version);
  if (options.json) {
    context.out << CanonicalJson({{"verb", "sign"},
                                  {"now", now.empty() ? Json(nullptr) : Json(now)},
                                  {"zoo", zoo.path().string()},
                                  {"name", entry.name.text()},
                                  {"version", entry.version.text()},
                                  {"identity", entry.identity},
                                  {"signer", signer.key.public_key().id()},
                                  {"signature", file.empty() ? Json(nullptr) : Json(file)}});
    return {};
  }
  context.out << fmt::format("{} {}@{}, identity {}, with the key {}\n",
                             context.dry_run ? "would sign" : "signed", entry.name.text(),
                             entry.version.text(), entry.identity, signer.key.public_key().id());
  if (!now.empty()) context.out << "now: " << now << "\n";
  return {ExitCode::kDone, file};
}

CommandResult SnapshotVerb(const ZooOptions& options, CommandContext& context) {
  const Signer signer = SignerOf(options);
  const Zoo zoo = Zoo::Open(ZooPath(options));
  const int64_t now = NowUnix();
  const Snapshot snapshot = SnapshotOf(zoo, now, now + options.days * kSecondsPerDay);
  const fs::path file = zoo.path() / kSnapshotFile;
  if (!context.dry_run) WriteSnapshot(zoo, snapshot, signer);
  size_t versions = 0;
  for (const auto& [name, some] : snapshot.entries) versions += some.size();
  if (options.json) {
    context.out << CanonicalJson({{"verb", "snapshot"},
                                  {"zoo", zoo.path().string()},
                                  {"versions", versions},
                                  {"created_at_unix", snapshot.created_unix},
                                  {"expires_at_unix", snapshot.expires_unix},
                                  {"signer", signer.key.public_key().id()},
                                  {"snapshot", file.string()}});
    return {};
  }
  context.out << fmt::format("{} versions, valid for {} days\n", versions, options.days);
  return {ExitCode::kDone, context.dry_run ? "" : file.string()};
}

CommandResult VerifyDirectory(const ZooOptions& options, CommandContext& context) {
  if (!options.reference.empty() || !options.zoo.empty() || !options.trust.empty() ||
      !options.model.empty()) {
    throw UsageError(
        "verify --directory: this checks a directory against --signature; NAME, --zoo, --trust and "
        "--model only apply to a zoo");
  }
  if (options.signature.empty()) throw UsageError("verify --directory: also give --signature FILE");
  if (options.public_keys.size() > 1 || options.public_keys.empty() == options.roots.empty())
    throw UsageError(
        "verify --directory: give exactly one --public-key, or --root for certificates");
  CheckSignedModel(options.directory, options.signature,
                   options.public_keys.empty() ? "" : options.public_keys[0], options.roots,
                   {options.ignored, options.ignore_unsigned});
  if (options.json) {
    context.out << CanonicalJson(
        {{"verb", "verify"}, {"directory", options.directory}, {"ok", true}});
    return {};
  }
  context.out << fmt::format("{} matches its signature\n", options.directory);
  return {};
}

std::optional<TrustFile> TrustOf(const ZooOptions& options) {
  const char* variable = std::getenv("OSCAR_TRUST");
  std::string file = options.trust;
  const bool keys = !options.public_keys.empty() || !options.roots.empty();
  if (keys && !file.empty())
    throw UsageError(
        "--trust names a policy, and --public-key and --root replace one; give only one of these");
  if (keys) {
    TrustRule rule;
    TrustFile one;
    for (const std::string& key : options.public_keys) AddKey(key, &rule, &one.policy);
    if (options.roots.empty() != options.identity.empty())
      throw UsageError(
          "give --root FILE and --identity NAME together; they accept any certificate under the "
          "root that names NAME");
    if (!options.roots.empty())
      rule.identities.push_back({options.identity, ReadCertificates(options.roots)});
    one.policy.rules["*"] = std::move(rule);
    return one;
  }
  if (!options.identity.empty()) throw UsageError("--identity needs --root");
  if (file.empty() && variable != nullptr) file = variable;
  if (file.empty()) return std::nullopt;
  return ReadTrustFile(file);
}

TrustVerdict DemandTrust(const TrustFile& trust, const ZooEntry& entry, const SignatureTexts& texts,
                         bool latest, Log* log) {
  Court court(trust, texts.snapshot);
  TrustVerdict verdict = court.Of(entry, texts.bundles, latest, texts.yanked);
  court.Save();
  const std::string text = verdict.word() + ": " + verdict.problem;
  if (verdict.refused()) throw TrustError(verdict.code, text);
  if (verdict.code != ExitCode::kDone) log->Info("not_trusted", text + " (the policy says warn)");
  if (!verdict.note.empty()) log->Info("taken_back", verdict.note);
  return verdict;
}

std::vector<VersionVerdict> JudgeVersions(const TrustFile& trust, const Zoo& zoo,
                                          const std::optional<ZooReference>& reference) {
  std::vector<VersionVerdict> verdicts;
  Court court(trust, ReadSnapshotFile(zoo));
  const auto judge = [&](const ZooName& name, const ZooVersion& version, bool latest) {
    verdicts.push_back({name, version,
                        court.Of(zoo.Read(name, version), ReadSignatures(zoo, name, version),
                                 latest, YankReason(zoo, name, version))});
  };
  // Judges and remembers the highest version first, so that a second call gives the same verdicts.
  const auto judge_all = [&](const ZooName& name) {
    const ZooVersion latest = zoo.Resolve({name, std::nullopt});
    std::vector<ZooVersion> versions = zoo.Versions(name);
    const auto begin = static_cast<std::ptrdiff_t>(verdicts.size());
    for (auto version = versions.rbegin(); version != versions.rend(); ++version)
      judge(name, *version, *version == latest);
    std::reverse(verdicts.begin() + begin, verdicts.end());
  };
  if (!reference) {
    for (const ZooName& name : zoo.Names()) judge_all(name);
  } else if (reference->version) {
    judge(reference->name, *reference->version, false);
  } else {
    judge_all(reference->name);
  }
  court.Save();
  return verdicts;
}

Json VerdictsToJson(std::span<const VersionVerdict> verdicts) {
  Json json = Json::array();
  for (const auto& [name, version, verdict] : verdicts) {
    json.push_back({{"name", name.text()},
                    {"version", version.text()},
                    {"trust", verdict.word()},
                    {"exit_code", static_cast<int>(verdict.code)},
                    {"problem", verdict.problem},
                    {"note", verdict.note},
                    {"signers", verdict.signers}});
  }
  return json;
}

ExitCode CodeOf(std::span<const VersionVerdict> verdicts) {
  for (const VersionVerdict& one : verdicts)
    if (one.verdict.refused()) return one.verdict.code;
  return ExitCode::kDone;
}

}  // namespace oscar
