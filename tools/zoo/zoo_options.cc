// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/zoo/zoo_options.h"

#include <cstdlib>

#include "export/evaluate/gate.h"
#include "linalg/base/error.h"
#include "zoo/source/zoo_source.h"
#include "zoo/store/zoo_name.h"

namespace oscar {
namespace {

constexpr auto kRun = OptionScope::kRun;
constexpr const char* kReferenceHelp =
    "ORG/MODEL, ORG/MODEL@X.Y.Z or ORG/MODEL@sha256:...; a zoo may precede it: ZOO/ORG/MODEL; or "
    "hf:ORG/NAME[@REVISION] on the Hub";

void AddFile(std::string* field, const char* name, const char* help, OptionTable* table) {
  table->Add(field, {.name = name, .help = help, .unit = "file", .scope = kRun});
}
void AddFiles(std::vector<std::string>* field, const char* name, const char* help,
              OptionTable* table) {
  table->Add(
      field,
      {.name = name, .help = help, .unit = "file", .scope = kRun, .path = true, .verbatim = true});
}

void AddSigner(ZooOptions* options, OptionTable* table) {
  table->Add(&options->key,
             {.name = "key",
              .help = "private key in PEM format, on P-256, P-384 or P-521; the environment "
                      "variable OSCAR_KEY_PASSWORD holds the password of an encrypted key",
              .unit = "file",
              .scope = kRun,
              .required = true});
  AddFile(&options->certificate, "certificate", "certificate of that key, in PEM format", table);
  AddFiles(&options->chain, "chain", "with --certificate: the certificates between it and the root",
           table);
}

void AddDirectory(ZooOptions* options, const char* help, OptionTable* table) {
  table->Add(&options->directory,
             {.name = "directory", .help = help, .unit = "dir", .scope = kRun, .path = true});
  AddFiles(&options->ignored, "ignore", "with --directory: path in it to leave out", table);
}

}  // namespace

void AddTrust(ZooOptions* options, OptionTable* table) {
  AddFile(&options->trust, "trust",
          "policy that says whose signatures are required; if not given, the environment variable "
          "OSCAR_TRUST",
          table);
  AddFiles(&options->public_keys, "public_key", "require a signature made with this key", table);
  AddFiles(&options->roots, "root", "require a signature made with a certificate under this root",
           table);
  table->Add(&options->identity, {.name = "identity",
                                  .help = "with --root: the name that the certificate must have",
                                  .unit = "name",
                                  .scope = kRun});
}

void AddZoo(ZooOptions* options, OptionTable* table) {
  table->Add(&options->zoo, {.name = "zoo",
                             .help = "the zoo; if not given, the environment variable OSCAR_ZOO",
                             .unit = "dir",
                             .scope = kRun,
                             .path = true});
}

void AddSource(ZooOptions* options, OptionTable* table) {
  table->Add(&options->zoo,
             {.name = "zoo",
              .help = "the zoo: a directory, https://host/path, hf:DIR or hf:ORG/NAME; if not "
                      "given, the environment variable OSCAR_ZOO",
              .unit = "zoo",
              .scope = kRun,
              .path = true});
  table->Add(&options->ca,
             {.name = "ca",
              .help = "for https: certificates (PEM) to trust instead of the system's",
              .unit = "file",
              .scope = kRun});
  table->Add(&options->stall_seconds,
             {.name = "stall_seconds",
              .help = "for https: give up on a server that sends less than 1 kB/s for this long",
              .unit = "seconds",
              .min = 1,
              .max = 3600,
              .scope = kRun});
}

void AddJson(ZooOptions* options, OptionTable* table) {
  table->Add(&options->json,
             {.name = "json",
              .help = "print the result, or the error, as one JSON object on standard output",
              .scope = kRun});
}

void AddReference(ZooOptions* options, bool required, const char* help, OptionTable* table) {
  table->Add(&options->reference,
             {.name = "reference",
              .help = help,
              .check = CheckedBy([](const std::string& text) { ParseZooAddress(text); }),
              .scope = kRun,
              .positional = true,
              .required = required});
}

OptionTable InitTable(ZooOptions* options) {
  OptionTable table("oscar-zoo init", "Makes an empty zoo.");
  table.Add(&options->output, {.name = "dir",
                               .help = "new or empty directory; it can also be given as --zoo",
                               .scope = kRun,
                               .positional = true,
                               .path = true});
  AddZoo(options, &table);
  AddJson(options, &table);
  table.Example("oscar-zoo init --zoo /share/zoo",
                "makes a zoo; then run: export OSCAR_ZOO=/share/zoo");
  return table;
}

namespace {

// Adds the options for publishing: the name and version of an artifact, and its requirements.
void AddPublishing(ZooOptions* options, OptionTable* table) {
  table->Add(&options->name,
             {.name = "name",
              .help = "name to publish under; if not given, the model's id",
              .unit = "org/model",
              .check = CheckedBy([](const std::string& text) { ParseZooName(text, "--name"); }),
              .scope = kRun});
  table->Add(&options->version,
             {.name = "version",
              .help = "version of the entry; if not given, the next minor version after the "
                      "highest, or 0.1.0 for the first",
              .unit = "x.y.z",
              .check = CheckedBy([](const std::string& text) { ZooVersionOf(text, "--version"); }),
              .scope = kRun});
  table->Add(&options->model, {.name = "model",
                               .help = "the model; the artifact's layers, heads, dimensions and "
                                       "config.json must equal the model's",
                               .unit = "dir or id",
                               .scope = kRun});
  table->Add(&options->gate, {.name = "gate",
                              .help = "limits on the headline configuration in addition to the "
                                      "report's own gate, such as 'kl<=0.05,ppl_ratio<=1.02'",
                              .unit = "limits",
                              .check = CheckedBy([](const std::string& text) { ParseGate(text); }),
                              .scope = kRun});
  table->Add(&options->ungated, {.name = "ungated",
                                 .help = "publish a report without a gate; ls and info say so",
                                 .scope = kRun});
}

}  // namespace

OptionTable PublishTable(ZooOptions* options) {
  OptionTable table(
      "oscar-zoo publish",
      "Checks an artifact's files and publishes them as a version that never changes.");
  table.Add(&options->artifact,
            {.name = "artifact",
             .help = "artifact written by oscar-calibrate and validated by oscar-validate",
             .scope = kRun,
             .positional = true,
             .required = true,
             .path = true});
  table.Add(&options->zoo,
            {.name = "zoo",
             .help = "where to publish: a directory or hf:DIR (a new folder, ready for hf upload); "
                     "if not given, the environment variable OSCAR_ZOO",
             .unit = "zoo",
             .scope = kRun,
             .path = true});
  AddPublishing(options, &table);
  AddJson(options, &table);
  table.Example("oscar-zoo publish Qwen3-8B-oscar --zoo /share/zoo",
                "publishes the next minor version of Qwen/Qwen3-8B");
  table.Example("oscar-zoo publish Qwen3-8B-oscar --name me/Qwen3-8B --version 1.0.0 --dry-run",
                "checks everything and changes nothing");
  return table;
}

OptionTable PushTable(ZooOptions* options) {
  OptionTable table("oscar-zoo push",
                    "Prepares a model repository and uploads it with hf, the Hub's own client.");
  table.Add(&options->output,
            {.name = "repository",
             .help = "hf:ORG/NAME; hf creates the repository if it does not exist",
             .scope = kRun,
             .positional = true,
             .required = true});
  table.Add(&options->artifact,
            {.name = "artifact",
             .help = "an artifact, checked as for publish, or ORG/MODEL[@X.Y.Z] of --zoo, which is "
                     "pushed with its signatures",
             .scope = kRun,
             .positional = true,
             .required = true});
  AddZoo(options, &table);
  AddPublishing(options, &table);
  AddJson(options, &table);
  table.Example("oscar-zoo push hf:me/Qwen3-8B-oscar Qwen3-8B-oscar",
                "anybody can then run: oscar-zoo pull hf:me/Qwen3-8B-oscar");
  table.Example("oscar-zoo push hf:me/Qwen3-8B-oscar Qwen/Qwen3-8B@0.2.0 --zoo /share/zoo",
                "pushes a version with its signatures");
  return table;
}

OptionTable LsTable(ZooOptions* options) {
  OptionTable table("oscar-zoo ls", "Lists the versions of a zoo.");
  AddSource(options, &table);
  AddJson(options, &table);
  return table;
}

OptionTable InfoTable(ZooOptions* options) {
  OptionTable table("oscar-zoo info", "Shows what a zoo knows about one version.");
  AddReference(options, true, kReferenceHelp, &table);
  AddSource(options, &table);
  AddJson(options, &table);
  return table;
}

OptionTable VerifyTable(ZooOptions* options) {
  OptionTable table("oscar-zoo verify",
                    "Checks the files of entries: digests, rotations, reports and gates.");
  AddReference(options, false,
               "ORG/MODEL@X.Y.Z, or ORG/MODEL for all its versions; if not given, the whole zoo",
               &table);
  AddZoo(options, &table);
  table.Add(&options->model,
            {.name = "model",
             .help = "model on which to repeat the recorded validations of NAME and compare every "
                     "number; this takes as long as oscar-validate did",
             .unit = "dir or id",
             .scope = kRun});
  table.Add(&options->data,
            {.name = "data",
             .help = "with --model: the text of the validation, unless it was the built-in text",
             .unit = "files",
             .scope = kRun,
             .path = true});
  table.Add(&options->device, {.name = "device",
                               .help = "with --model: device to measure on, as for oscar-validate",
                               .scope = kRun});
  AddTrust(options, &table);
  AddDirectory(options,
               "check this signed directory, which need not be in a zoo, against --signature",
               &table);
  AddFile(&options->signature, "signature", "with --directory: its signature", &table);
  table.Add(&options->ignore_unsigned,
            {.name = "ignore_unsigned",
             .help = "with --directory: accept files in it that were not signed",
             .scope = kRun});
  AddJson(options, &table);
  table.Example("oscar-zoo verify --zoo /share/zoo",
                "prints one line per problem; exit code 3 if there are any");
  table.Example("oscar-zoo verify Qwen/Qwen3-8B --zoo /share/zoo --trust trust.yaml",
                "exit codes: 10 unsigned, 11 wrong key, 12 altered, 13 extra file, 14 too old, 15 "
                "look-alike name");
  table.Example("oscar-zoo verify --directory model --signature model.sig --public-key alice.pub",
                "checks a directory that was signed with OpenSSF Model Signing");
  table.Example("oscar-zoo verify Qwen/Qwen3-8B --zoo /share/zoo --model Qwen/Qwen3-8B",
                "checks what digests cannot show: that the model gives the numbers of the report");
  return table;
}

OptionTable PullTable(ZooOptions* options) {
  OptionTable table("oscar-zoo pull",
                    "Copies one version out of a zoo as an artifact, and checks it.");
  AddReference(options, true, kReferenceHelp, &table);
  AddSource(options, &table);
  table.Add(&options->output,
            {.name = "output",
             .help = "directory to write, which must not exist; if not given, MODEL-oscar",
             .unit = "dir",
             .short_name = 'o',
             .scope = kRun,
             .path = true});
  AddTrust(options, &table);
  AddJson(options, &table);
  table.Example("oscar-zoo pull https://zoo.example.org/Qwen/Qwen3-8B",
                "pulls the latest version from a static server");
  table.Example("oscar-zoo pull hf:me/Qwen3-8B-oscar",
                "pulls what oscar-zoo push uploaded to the Hub");
  table.Example("oscar-zoo pull Qwen/Qwen3-8B@0.2.0 --zoo /share/zoo -o Qwen3-8B-oscar",
                "pulls one version from a directory; if interrupted, the same command continues");
  return table;
}

OptionTable SignTable(ZooOptions* options) {
  OptionTable table("oscar-zoo sign",
                    "Adds a signature (OpenSSF Model Signing v1.0) to a version or a directory; a "
                    "version does not change when it is signed, and may have several signatures.");
  AddReference(options, false, "ORG/MODEL@X.Y.Z; if no version is given, the latest", &table);
  AddZoo(options, &table);
  AddSigner(options, &table);
  AddDirectory(options, "directory to sign instead, with -o", &table);
  table.Add(&options->output, {.name = "output",
                               .help = "with --directory: signature file to write",
                               .unit = "file",
                               .short_name = 'o',
                               .scope = kRun,
                               .path = true});
  AddJson(options, &table);
  table.Example("oscar-zoo sign Qwen/Qwen3-8B@0.1.0 --zoo /share/zoo --key alice.key",
                "signs a version; make a key with: openssl ecparam -name prime256v1 -genkey -noout "
                "-out alice.key");
  table.Example("oscar-zoo sign --directory model --key alice.key -o model.sig",
                "writes a signature that 'model_signing verify key' can check");
  return table;
}

OptionTable SnapshotTable(ZooOptions* options) {
  OptionTable table("oscar-zoo snapshot",
                    "Signs the list of all versions with an expiry date, after which readers "
                    "notice a mirror that hides new versions; repeat it after each publish.");
  AddZoo(options, &table);
  AddSigner(options, &table);
  table.Add(&options->days, {.name = "days",
                             .help = "how long the snapshot is valid",
                             .unit = "days",
                             .min = 1,
                             .max = kMaxSnapshotDays,
                             .scope = kRun});
  AddJson(options, &table);
  table.Example("oscar-zoo snapshot --zoo /share/zoo --key zoo.key --days 14",
                "after 14 days, readers whose policy names zoo.pub refuse the snapshot");
  return table;
}

OptionTable LintTable(ZooOptions* options) {
  OptionTable table("oscar-zoo lint",
                    "Looks for defects in artifacts, zoos and upstream's .pt files.");
  table.Add(&options->paths,
            {.name = "path",
             .help = "a .pt file, an artifact, a zoo, an entry of a zoo, or a folder of these",
             .scope = kRun,
             .positional = true,
             .required = true,
             .path = true});
  table.Add(&options->model,
            {.name = "model",
             .help = "model that the files must match in layers, heads and dimensions",
             .unit = "dir or id",
             .scope = kRun});
  AddJson(options, &table);
  table.Example("oscar-zoo lint OSCAR-RotationZoo",
                "checks a folder; exit code 1 if there is an error; zoo/lint/lint_codes.md "
                "explains the codes");
  return table;
}

std::string FindZooAddress(const ZooOptions& options) {
  if (!options.zoo.empty()) return options.zoo;
  const char* zoo = std::getenv("OSCAR_ZOO");
  return zoo == nullptr ? "" : zoo;
}

std::string ZooAddressOf(const ZooOptions& options) {
  const std::string zoo = FindZooAddress(options);
  if (zoo.empty())
    throw UsageError("no zoo given; give --zoo ZOO, or set OSCAR_ZOO in the environment");
  return zoo;
}

std::filesystem::path ZooPath(const ZooOptions& options) {
  const std::string zoo = ZooAddressOf(options);
  if (IsRemoteAddress(zoo)) {
    throw UsageError(zoo +
                     ": this works only on a directory; use oscar-zoo mirror to make a local copy");
  }
  return zoo;
}

}  // namespace oscar
