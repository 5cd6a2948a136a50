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
    "ORG/MODEL, ORG/MODEL@X.Y.Z or ORG/MODEL@sha256:...; a zoo may stand before it: ZOO/ORG/MODEL; "
    "or hf:ORG/NAME[@REVISION] of the Hub";

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
              .help = "private key, PEM, on P-256, P-384 or P-521; the environment's "
                      "OSCAR_KEY_PASSWORD opens an encrypted one",
              .unit = "file",
              .scope = kRun,
              .required = true});
  AddFile(&options->certificate, "certificate", "certificate of that key, PEM", table);
  AddFiles(&options->chain, "chain", "--certificate: those between it and the root", table);
}

void AddDirectory(ZooOptions* options, const char* help, OptionTable* table) {
  table->Add(&options->directory,
             {.name = "directory", .help = help, .unit = "dir", .scope = kRun, .path = true});
  AddFiles(&options->ignored, "ignore", "--directory: a path in it that is not part of it", table);
}

}  // namespace

void AddTrust(ZooOptions* options, OptionTable* table) {
  AddFile(&options->trust, "trust",
          "policy that says whose signatures are asked for; where it is not given, the "
          "environment's OSCAR_TRUST",
          table);
  AddFiles(&options->public_keys, "public_key", "a signature with this key is asked for", table);
  AddFiles(&options->roots, "root", "a signature with a certificate under this root is asked for",
           table);
  table->Add(&options->identity, {.name = "identity",
                                  .help = "--root: the name that the certificate must have",
                                  .unit = "name",
                                  .scope = kRun});
}

void AddZoo(ZooOptions* options, OptionTable* table) {
  table->Add(&options->zoo, {.name = "zoo",
                             .help = "the zoo; where it is not given, the environment's OSCAR_ZOO",
                             .unit = "dir",
                             .scope = kRun,
                             .path = true});
}

void AddSource(ZooOptions* options, OptionTable* table) {
  table->Add(&options->zoo,
             {.name = "zoo",
              .help = "the zoo: a directory, https://host/path, hf:DIR or "
                      "hf:ORG/NAME; where it is not given, the environment's OSCAR_ZOO",
              .unit = "zoo",
              .scope = kRun,
              .path = true});
  table->Add(&options->ca, {.name = "ca",
                            .help = "https: certificates (PEM) to trust instead of the system's",
                            .unit = "file",
                            .scope = kRun});
  table->Add(&options->stall_seconds,
             {.name = "stall_seconds",
              .help = "https: give a server up that sends less than 1 kB/s for so long",
              .unit = "seconds",
              .min = 1,
              .max = 3600,
              .scope = kRun});
}

void AddJson(ZooOptions* options, OptionTable* table) {
  table->Add(&options->json, {.name = "json",
                              .help = "print one JSON object on standard output, also for an error",
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
                               .help = "directory to make, or an empty one; or give it as --zoo",
                               .scope = kRun,
                               .positional = true,
                               .path = true});
  AddZoo(options, &table);
  AddJson(options, &table);
  table.Example("oscar-zoo init --zoo /share/zoo", "then: export OSCAR_ZOO=/share/zoo");
  return table;
}

namespace {

// Adds the options for publishing: the name and version of an artifact, and its requirements.
void AddPublishing(ZooOptions* options, OptionTable* table) {
  table->Add(&options->name,
             {.name = "name",
              .help = "name to publish under; where it is not given, the model's id",
              .unit = "org/model",
              .check = CheckedBy([](const std::string& text) { ParseZooName(text, "--name"); }),
              .scope = kRun});
  table->Add(&options->version,
             {.name = "version",
              .help = "version of the entry; where it is not given, the minor version after the "
                      "highest, 0.1.0 at first",
              .unit = "x.y.z",
              .check = CheckedBy([](const std::string& text) { ZooVersionOf(text, "--version"); }),
              .scope = kRun});
  table->Add(&options->model,
             {.name = "model",
              .help = "the model: layers, heads, dimensions and config.json must be its own",
              .unit = "dir or id",
              .scope = kRun});
  table->Add(&options->gate, {.name = "gate",
                              .help = "what the headline arm must hold besides the report's own "
                                      "gate: 'kl<=0.05,ppl_ratio<=1.02'",
                              .unit = "limits",
                              .check = CheckedBy([](const std::string& text) { ParseGate(text); }),
                              .scope = kRun});
  table->Add(&options->ungated,
             {.name = "ungated",
              .help = "publish a report that was held against no gate; ls and info say so",
              .scope = kRun});
}

}  // namespace

OptionTable PublishTable(ZooOptions* options) {
  OptionTable table("oscar-zoo publish",
                    "Checks an artifact from its files and makes it a version that never changes.");
  table.Add(&options->artifact, {.name = "artifact",
                                 .help = "what oscar-calibrate wrote and oscar-validate validated",
                                 .scope = kRun,
                                 .positional = true,
                                 .required = true,
                                 .path = true});
  table.Add(
      &options->zoo,
      {.name = "zoo",
       .help = "where to: a directory or hf:DIR (a new folder, ready for hf upload); where it is "
               "not given, the environment's OSCAR_ZOO",
       .unit = "zoo",
       .scope = kRun,
       .path = true});
  AddPublishing(options, &table);
  AddJson(options, &table);
  table.Example("oscar-zoo publish Qwen3-8B-oscar --zoo /share/zoo",
                "publishes Qwen/Qwen3-8B, next minor version");
  table.Example("oscar-zoo publish Qwen3-8B-oscar --name me/Qwen3-8B --version 1.0.0 --dry-run",
                "checks everything and changes nothing");
  return table;
}

OptionTable PushTable(ZooOptions* options) {
  OptionTable table("oscar-zoo push",
                    "Prepares a model repository and uploads it with hf, the Hub's own client.");
  table.Add(&options->output, {.name = "repository",
                               .help = "hf:ORG/NAME; hf makes it where it is not there",
                               .scope = kRun,
                               .positional = true,
                               .required = true});
  table.Add(&options->artifact,
            {.name = "artifact",
             .help = "an artifact, checked as for publish, or ORG/MODEL[@X.Y.Z] of --zoo, which "
                     "takes its signatures along",
             .scope = kRun,
             .positional = true,
             .required = true});
  AddZoo(options, &table);
  AddPublishing(options, &table);
  AddJson(options, &table);
  table.Example("oscar-zoo push hf:me/Qwen3-8B-oscar Qwen3-8B-oscar",
                "then anybody: oscar-zoo pull hf:me/Qwen3-8B-oscar");
  table.Example("oscar-zoo push hf:me/Qwen3-8B-oscar Qwen/Qwen3-8B@0.2.0 --zoo /share/zoo",
                "a version with its signatures");
  return table;
}

OptionTable LsTable(ZooOptions* options) {
  OptionTable table("oscar-zoo ls", "Lists the versions of a zoo.");
  AddSource(options, &table);
  AddJson(options, &table);
  return table;
}

OptionTable InfoTable(ZooOptions* options) {
  OptionTable table("oscar-zoo info", "Shows what a zoo knows of one version.");
  AddReference(options, true, kReferenceHelp, &table);
  AddSource(options, &table);
  AddJson(options, &table);
  return table;
}

OptionTable VerifyTable(ZooOptions* options) {
  OptionTable table("oscar-zoo verify",
                    "Checks entries from their bytes: digests, rotations, reports, gates.");
  AddReference(options, false,
               "ORG/MODEL@X.Y.Z, or ORG/MODEL for all its versions; the whole zoo where it is not "
               "given",
               &table);
  AddZoo(options, &table);
  table.Add(&options->model,
            {.name = "model",
             .help = "the model on which to repeat the recorded validations of NAME and compare "
                     "every number; takes as long as oscar-validate did",
             .unit = "dir or id",
             .scope = kRun});
  table.Add(&options->data,
            {.name = "data",
             .help = "--model: the text that was validated on, where that was not the built-in",
             .unit = "files",
             .scope = kRun,
             .path = true});
  table.Add(&options->device, {.name = "device",
                               .help = "--model: what to measure on, as for oscar-validate",
                               .scope = kRun});
  AddTrust(options, &table);
  AddDirectory(options, "a signed directory that is in no zoo, against --signature", &table);
  AddFile(&options->signature, "signature", "--directory: its signature", &table);
  table.Add(&options->ignore_unsigned,
            {.name = "ignore_unsigned",
             .help = "--directory: files in it that were not signed are no defect",
             .scope = kRun});
  AddJson(options, &table);
  table.Example("oscar-zoo verify --zoo /share/zoo", "exit code 3 and a line per problem");
  table.Example("oscar-zoo verify Qwen/Qwen3-8B --zoo /share/zoo --trust trust.yaml",
                "exit codes: 10 unsigned, 11 wrong key, 12 altered, 13 extra file, 14 too old, 15 "
                "look-alike name");
  table.Example("oscar-zoo verify --directory model --signature model.sig --public-key alice.pub",
                "a directory that anybody signed with OpenSSF Model Signing");
  table.Example("oscar-zoo verify Qwen/Qwen3-8B --zoo /share/zoo --model Qwen/Qwen3-8B",
                "what digests cannot prove: that the model gives the numbers of the report");
  return table;
}

OptionTable PullTable(ZooOptions* options) {
  OptionTable table("oscar-zoo pull", "Copies one version out of a zoo, checked, as an artifact.");
  AddReference(options, true, kReferenceHelp, &table);
  AddSource(options, &table);
  table.Add(&options->output, {.name = "output",
                               .help = "directory to write, which must not exist; where it is not "
                                       "given, MODEL-oscar",
                               .unit = "dir",
                               .short_name = 'o',
                               .scope = kRun,
                               .path = true});
  AddTrust(options, &table);
  AddJson(options, &table);
  table.Example("oscar-zoo pull https://zoo.example.org/Qwen/Qwen3-8B",
                "the latest version, from a static server");
  table.Example("oscar-zoo pull hf:me/Qwen3-8B-oscar", "what oscar-zoo push uploaded to the Hub");
  table.Example("oscar-zoo pull Qwen/Qwen3-8B@0.2.0 --zoo /share/zoo -o Qwen3-8B-oscar",
                "one version, from a directory; broken off, the same command goes on");
  return table;
}

OptionTable SignTable(ZooOptions* options) {
  OptionTable table("oscar-zoo sign",
                    "Adds a signature (OpenSSF Model Signing v1.0) to a version, or to a "
                    "directory; the version does not change, and may have several.");
  AddReference(options, false, "ORG/MODEL@X.Y.Z; the latest version where none is given", &table);
  AddZoo(options, &table);
  AddSigner(options, &table);
  AddDirectory(options, "directory to sign instead, with -o", &table);
  table.Add(&options->output, {.name = "output",
                               .help = "--directory: signature to write",
                               .unit = "file",
                               .short_name = 'o',
                               .scope = kRun,
                               .path = true});
  AddJson(options, &table);
  table.Example("oscar-zoo sign Qwen/Qwen3-8B@0.1.0 --zoo /share/zoo --key alice.key",
                "make a key: openssl ecparam -name prime256v1 -genkey -noout -out alice.key");
  table.Example("oscar-zoo sign --directory model --key alice.key -o model.sig",
                "what model_signing verify key reads");
  return table;
}

OptionTable SnapshotTable(ZooOptions* options) {
  OptionTable table("oscar-zoo snapshot",
                    "Signs the list of all versions with an expiry, so that a mirror can hide none "
                    "for longer; to be made again after each publish.");
  AddZoo(options, &table);
  AddSigner(options, &table);
  table.Add(&options->days, {.name = "days",
                             .help = "how long it is valid",
                             .unit = "days",
                             .min = 1,
                             .max = kMaxSnapshotDays,
                             .scope = kRun});
  AddJson(options, &table);
  table.Example("oscar-zoo snapshot --zoo /share/zoo --key zoo.key --days 14",
                "readers whose policy names zoo.pub refuse it after 14 days");
  return table;
}

OptionTable LintTable(ZooOptions* options) {
  OptionTable table("oscar-zoo lint",
                    "Looks for defects in artifacts, zoos and upstream's .pt files.");
  table.Add(&options->paths,
            {.name = "path",
             .help = "a .pt file, an artifact, a zoo, an entry of one, or a folder of these",
             .scope = kRun,
             .positional = true,
             .required = true,
             .path = true});
  table.Add(&options->model, {.name = "model",
                              .help = "the model whose layers, heads and dimensions are expected",
                              .unit = "dir or id",
                              .scope = kRun});
  AddJson(options, &table);
  table.Example("oscar-zoo lint OSCAR-RotationZoo",
                "exit code 1 if there is an error; "
                "zoo/lint/lint_codes.md explains the codes");
  return table;
}

std::string FindZooAddress(const ZooOptions& options) {
  if (!options.zoo.empty()) return options.zoo;
  const char* zoo = std::getenv("OSCAR_ZOO");
  return zoo == nullptr ? "" : zoo;
}

std::string ZooAddressOf(const ZooOptions& options) {
  const std::string zoo = FindZooAddress(options);
  if (zoo.empty()) throw UsageError("no zoo given: --zoo ZOO, or OSCAR_ZOO in the environment");
  return zoo;
}

std::filesystem::path ZooPath(const ZooOptions& options) {
  const std::string zoo = ZooAddressOf(options);
  if (IsRemoteAddress(zoo)) {
    throw UsageError(zoo + ": this works on a directory alone; oscar-zoo mirror makes one of it");
  }
  return zoo;
}

}  // namespace oscar
