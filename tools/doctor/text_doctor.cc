// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Diagnoses the tokenizer and chat template of a model directory; declared in model_doctor.h. A
// calibration on token ids needs neither.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "capture/text/data/chat_format.h"
#include "capture/text/tokenizer/tokenizer_files.h"
#include "capture/text/tokenizer/tokenizer_json.h"
#include "linalg/base/error.h"
#include "tools/doctor/model_doctor.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

const Json& MemberOrNull(const Json& root, const char* key) {
  static const Json null;
  const auto found = root.find(key);
  return found == root.end() ? null : *found;
}

// Returns, for example, "Sequence(Split, ByteLevel)".
std::string TypesText(const Json& component) {
  if (!component.is_object()) return "none";
  std::string text = "?";
  if (const auto type = component.find("type"); type != component.end() && type->is_string())
    text = type->get<std::string>();
  for (const char* members : {"pretokenizers", "normalizers", "decoders", "processors"}) {
    const auto found = component.find(members);
    if (found == component.end() || !found->is_array()) continue;
    std::vector<std::string> parts;
    for (const Json& part : *found) parts.push_back(TypesText(part));
    text += fmt::format("({})", fmt::join(parts, ", "));
  }
  return text;
}

// Returns the problems of all components. (Loading stops at the first problem.)
std::vector<std::string> ComponentProblems(const Json& root, const std::string& file) {
  std::vector<std::string> problems;
  const auto attempt = [&](const auto& step) {
    try {
      step();
    } catch (const InputError& error) {
      problems.emplace_back(error.what());
    }
  };
  const auto where = [&](const char* member) { return file + ": " + member; };
  TokenModel::Symbols symbols = TokenModel::Symbols::kCharacters;
  attempt([&] { MakeNormalizers(MemberOrNull(root, "normalizer"), where("normalizer")); });
  attempt([&] {
    const auto steps =
        MakePreTokenizers(MemberOrNull(root, "pre_tokenizer"), where("pre_tokenizer"));
    if (!steps.empty() && steps.back()->is_byte_level()) symbols = TokenModel::Symbols::kBytes;
  });
  const bool pieces_known = problems.empty();
  attempt(
      [&] { MakePostProcessors(MemberOrNull(root, "post_processor"), where("post_processor")); });
  attempt([&] { MakeDecoders(MemberOrNull(root, "decoder"), where("decoder")); });
  // The model's symbols depend on the pre-tokenizers, so the model is checked only if these are
  // known.
  const Json& model = MemberOrNull(root, "model");
  if (pieces_known || TypesText(model) != "BPE")
    attempt([&] { (void)TokenModel::Make(model, symbols, where("model")); });
  return problems;
}

void DescribeTokenizer(const Json& root, const Tokenizer* tokenizer, Diagnosis& diagnosis) {
  const bool is_gguf = fs::is_regular_file(diagnosis.location.directory);
  std::string text = root.is_object() ? TypesText(MemberOrNull(root, "model"))
                     : is_gguf        ? "the keys of the GGUF"
                                      : "SentencePiece's tokenizer.model";
  if (tokenizer != nullptr) text += fmt::format(", {} tokens", tokenizer->vocab_size());
  for (const char* member : {"normalizer", "pre_tokenizer", "post_processor", "decoder"})
    if (root.is_object())
      text += fmt::format("\n{} {}", member, TypesText(MemberOrNull(root, member)));
  diagnosis.facts.emplace_back("tokenizer", text);
}

void ReportMissingTokenizer(const fs::path& directory, Diagnosis& diagnosis) {
  std::error_code ignored;
  if (fs::is_symlink(directory / "tokenizer.json", ignored)) return;  // already reported
  std::string other;
  for (const char* name : {"tiktoken.model", "tekken.json", "vocab.txt"}) {
    if (other.empty() && fs::exists(directory / name, ignored))
      other = fmt::format(
          " ({} is not supported; convert it with transformers: "
          "AutoTokenizer.from_pretrained(...).save_pretrained(...))",
          name);
  }
  diagnosis.missing.push_back("tokenizer.json" + other +
                              ": without it, only rows with \"input_ids\" can be used");
}

void DiagnoseTokenizer(bool allow_small, Diagnosis& diagnosis) {
  const fs::path directory = diagnosis.location.directory, path = directory / "tokenizer.json";
  std::error_code ignored;
  Json root;  // null if the tokenizer is in another file
  try {
    if (fs::exists(path, ignored)) root = ReadJsonFile(path.string());
  } catch (const InputError& error) {
    diagnosis.reasons.emplace_back(error.what());
    return;
  }
  try {
    const std::optional<Tokenizer> tokenizer = OpenTokenizer(directory);
    if (!tokenizer) return ReportMissingTokenizer(directory, diagnosis);
    diagnosis.has_tokenizer = true;
    DescribeTokenizer(root, &*tokenizer, diagnosis);
    if (!diagnosis.spec || allow_small) return;
    const std::string why = WhyOtherTokenizer(*tokenizer, *diagnosis.spec);
    if (why.empty()) return;
    diagnosis.reasons.push_back(fmt::format("{}: {}", directory.string(), why));
    diagnosis.unknown_fields_only = false;
  } catch (const InputError& error) {
    std::vector<std::string> problems;
    if (root.is_object()) problems = ComponentProblems(root, path.string());
    if (std::ranges::find(problems, error.what()) == problems.end())
      problems.insert(problems.begin(), error.what());
    diagnosis.reasons.insert(diagnosis.reasons.end(), problems.begin(), problems.end());
    diagnosis.unknown_fields_only = false;
    if (root.is_object()) DescribeTokenizer(root, nullptr, diagnosis);
  }
}

void DiagnoseTemplate(const ChatArguments& chat, Diagnosis& diagnosis) {
  try {
    const auto format = ChatFormat::Find(diagnosis.location.directory,
                                         {chat.chat_template, chat.template_var, chat.date});
    if (!format) {
      diagnosis.missing.emplace_back(
          "a chat template: without it, rows with \"messages\" need --chat-template FILE, or a "
          "tokenizer with <|im_start|> and <|im_end|>; the built-in corpus does not need one");
      return;
    }
    const Json described = format->Describe(/*reads_time=*/false);
    diagnosis.facts.emplace_back("template",
                                 "SHA-256 " + described.value("sha256", "").substr(0, 12));
  } catch (const InputError& error) {
    diagnosis.reasons.push_back(
        fmt::format("{}; use another template with --chat-template FILE", error.what()));
    diagnosis.unknown_fields_only = false;
  }
}

}  // namespace

void DiagnoseText(const ModelArguments& model, const ChatArguments& chat, Diagnosis& diagnosis) {
  DiagnoseTokenizer(model.allow_small_vocabulary, diagnosis);
  DiagnoseTemplate(chat, diagnosis);
}

}  // namespace oscar
