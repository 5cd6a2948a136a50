// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// oms-conformance: gives our implementation of OpenSSF Model Signing v1.0 the command line of its
// conformance suite. The suite only looks at the exit code, which is 0 or depends on the error. No
// zoo is involved.

#include "linalg/base/error.h"
#include "tools/cli/verbs.h"
#include "tools/zoo/signing_input.h"
#include "zoo/signing/model_files.h"
#include "zoo/store/blob_store.h"

namespace oscar {
namespace {

struct Arguments {
  std::string method, model_path, bundle, private_key, signing_cert, public_key;
  std::vector<std::string> cert_chain, ignore_paths;
  bool ignore_unsigned_files = false;
};

// Adds the options of both verbs. `method` takes any text, so that a keyless method gets an error
// message of its own.
void AddShared(Arguments* arguments, const char* bundle, OptionTable* table) {
  table->Add(&arguments->method, {.name = "method",
                                  .help = "key or certificate",
                                  .unit = "method",
                                  .scope = OptionScope::kRun,
                                  .required = true});
  table->Add(&arguments->model_path, {.name = "model_path",
                                      .help = "directory or file that is signed",
                                      .unit = "path",
                                      .scope = OptionScope::kRun,
                                      .required = true});
  table->Add(&arguments->bundle, {.name = bundle,
                                  .help = "the signature, a Sigstore bundle",
                                  .unit = "file",
                                  .scope = OptionScope::kRun,
                                  .required = true});
  table->Add(&arguments->cert_chain, {.name = "cert_chain",
                                      .help = "PEM certificates between the signer's and the root, "
                                              "and the root that is trusted",
                                      .unit = "file",
                                      .scope = OptionScope::kRun,
                                      .path = true,
                                      .verbatim = true});
  table->Add(&arguments->ignore_paths, {.name = "ignore_paths",
                                        .help = "path that is not part of the model",
                                        .unit = "path",
                                        .scope = OptionScope::kRun,
                                        .path = true,
                                        .verbatim = true});
}

void CheckMethod(const Arguments& arguments) {
  if (arguments.method == "key" || arguments.method == "certificate") return;
  if (arguments.method == "sigstore") {
    throw UsageError(
        "--method sigstore: keyless signatures take Fulcio and Rekor; only key and certificate "
        "are here");
  }
  throw UsageError("--method: expected key or certificate, found " + arguments.method);
}

CommandResult Sign(const Arguments& arguments) {
  CheckMethod(arguments);
  const bool certified = arguments.method == "certificate";
  if (arguments.private_key.empty()) throw UsageError("--private-key is needed to sign");
  if (certified != !arguments.signing_cert.empty())
    throw UsageError("--signing-cert: of the method certificate, and needed there");
  SignModel(arguments.model_path, arguments.ignore_paths,
            ReadSigner(arguments.private_key, arguments.signing_cert,
                       certified ? arguments.cert_chain : std::vector<std::string>{}),
            arguments.bundle);
  return {};
}

CommandResult Verify(const Arguments& arguments) {
  CheckMethod(arguments);
  const bool certified = arguments.method == "certificate";
  if (certified ? arguments.cert_chain.empty() : arguments.public_key.empty()) {
    throw UsageError(certified ? "--cert-chain: name the root that is trusted"
                               : "--public-key is needed to verify");
  }
  CheckSignedModel(
      arguments.model_path, arguments.bundle, certified ? "" : arguments.public_key,
      certified ? arguments.cert_chain : std::vector<std::string>{},
      {.ignored = arguments.ignore_paths, .ignore_unsigned = arguments.ignore_unsigned_files});
  return {};
}

OptionTable SignTable(Arguments* arguments) {
  OptionTable table("oms-conformance sign-model", "Signs a model.");
  AddShared(arguments, "output_bundle", &table);
  table.Add(&arguments->private_key, {.name = "private_key",
                                      .help = "PEM key on P-256, P-384 or P-521",
                                      .unit = "file",
                                      .scope = OptionScope::kRun});
  table.Add(&arguments->signing_cert, {.name = "signing_cert",
                                       .help = "PEM certificate of that key",
                                       .unit = "file",
                                       .scope = OptionScope::kRun});
  return table;
}

OptionTable VerifyTable(Arguments* arguments) {
  OptionTable table("oms-conformance verify-model", "Exits 0 if the model is what was signed.");
  AddShared(arguments, "bundle", &table);
  table.Add(&arguments->public_key, {.name = "public_key",
                                     .help = "PEM key of the signer",
                                     .unit = "file",
                                     .scope = OptionScope::kRun});
  table.Add(&arguments->ignore_unsigned_files, {.name = "ignore_unsigned_files",
                                                .help = "files that were not signed are no defect",
                                                .scope = OptionScope::kRun});
  return table;
}

}  // namespace
}  // namespace oscar

int main(int argc, char** argv) {
  oscar::Arguments arguments;
  return oscar::RunVerbs(
      argc, argv,
      {"oms-conformance",
       "OpenSSF Model Signing v1.0 behind the command line of its conformance suite.",
       {{oscar::SignTable(&arguments), [&](auto&) { return oscar::Sign(arguments); }},
        {oscar::VerifyTable(&arguments), [&](auto&) { return oscar::Verify(arguments); }}},
       "Reads and writes signatures of the methods key and certificate."});
}
