// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/text/data/prompts.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include "capture/text/data/builtin_corpus.h"
#include "capture/text/data/data_rows.h"
#include "capture/text/data/row_encoder.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

using jinja::Value;

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // replaces bytes that are not a
                                                           // character

std::string_view WithoutBrokenEnds(std::string_view text) {
  while (text.starts_with(kReplacement)) text.remove_prefix(kReplacement.size());
  while (text.ends_with(kReplacement)) text.remove_suffix(kReplacement.size());
  return text;
}

// The sort key of a prompt.
struct Place {
  size_t passage = 0, row = 0, file = 0;
  auto operator<=>(const Place&) const = default;
};

class PromptLoader {
 public:
  PromptLoader(const DataOptions& options, const LazyTokenizer& tokenizer, int64_t vocab_size,
               size_t most, int64_t longest)
      : rows_(options.model_directory, options.chat, tokenizer, vocab_size),
        most_(most),
        longest_(longest) {}

  void BeginFile() {
    if (row_ > 0) ++file_;
    row_ = 0;
  }

  void Add(const DataRow& row) {
    if (std::holds_alternative<std::monostate>(row.value)) return;
    const size_t index = row_++;
    if (index >= most_) return;
    if (const auto* text = std::get_if<std::string>(&row.value)) {
      AddText(*text, row, index);
    } else if (const auto* chat = std::get_if<ChatRow>(&row.value)) {
      chat->text.empty() || rows_.CanChat() ? AddChat(*chat, row, index)
                                            : AddText(chat->text, row, index);
    } else {
      AddIds(rows_.Encode(row), row, index);
    }
  }

  PromptSet Finish() && {
    std::ranges::stable_sort(found_, {}, &Found::place);
    PromptSet set;
    for (Found& prompt : found_) {
      if (set.prompts.size() == most_) break;
      if (std::ssize(prompt.document.ids) > longest_) {
        ++set.too_long;
      } else {
        set.prompts.push_back(std::move(prompt.document));
      }
    }
    set.chat_format = rows_.chat_format();
    set.chat_template = rows_.chat_template();
    return set;
  }

 private:
  struct Found {
    Place place;
    Document document;
  };

  void Take(std::vector<int32_t> ids, const DataRow& row, size_t index, size_t passage) {
    if (ids.empty()) return;
    std::string origin = "self:" + row.origin;
    if (passage > 0) origin += fmt::format("#{}", passage + 1);
    found_.push_back({{passage, index, file_}, {std::move(origin), std::move(ids)}});
  }

  void AddChat(const ChatRow& chat, const DataRow& row, size_t index) {
    std::vector<Value> messages = chat.messages.items();
    const auto answers = [](const Value& message) {
      return message.dict().Find("role")->as_string() == "assistant";
    };
    while (!messages.empty() && answers(messages.back())) messages.pop_back();
    if (messages.empty()) return;
    const ChatRow open{Value::List(std::move(messages)), chat.tools, chat.documents};
    Take(rows_.EncodeChat(open, row.where, /*generation_prompt=*/true), row, index, 0);
  }

  void AddText(const std::string& text, const DataRow& row, size_t index) {
    const Tokenizer& tokenizer = rows_.tokenizer(row.where);
    ForPassages(tokenizer.Encode(text, /*add_special_tokens=*/false),
                [&](const std::vector<int32_t>& ids, size_t passage) {
                  const std::string decoded = tokenizer.Decode(ids, /*skip_special_tokens=*/true);
                  const std::string part(WithoutBrokenEnds(decoded));
                  if (part.empty()) return;
                  Take(rows_.CanChat() ? Asked(part, row.where) : rows_.EncodeText(part, row.where),
                       row, index, passage);
                });
  }

  void AddIds(const std::vector<int32_t>& all, const DataRow& row, size_t index) {
    ForPassages(all, [&](const std::vector<int32_t>& ids, size_t passage) {
      Take(ids, row, index, passage);
    });
  }

  std::vector<int32_t> Asked(const std::string& text, const std::string& where) {
    jinja::Dict message;
    message.Set(Value::String("role"), Value::String("user"));
    message.Set(Value::String("content"), Value::String(text));
    std::vector<Value> messages;
    messages.push_back(Value::FromDict(std::move(message)));
    return rows_.EncodeChat({Value::List(std::move(messages)), Value::None(), Value::None()}, where,
                            /*generation_prompt=*/true);
  }

  // Calls `use` for each passage. The first passage may be short; later ones have full length.
  template <class Use>
  static void ForPassages(const std::vector<int32_t>& ids, const Use& use) {
    const auto size = std::ssize(ids);
    for (int64_t begin = 0; begin == 0 || begin + kPassageTokens <= size; begin += kPassageStride) {
      const int64_t end = std::min(size, begin + kPassageTokens);
      use({ids.begin() + begin, ids.begin() + end}, static_cast<size_t>(begin / kPassageStride));
    }
  }

  RowEncoder rows_;
  size_t most_;
  int64_t longest_;
  size_t file_ = 0, row_ = 0;
  std::vector<Found> found_;
};

}  // namespace

PromptSet LoadPrompts(const DataOptions& options, const LazyTokenizer& tokenizer,
                      int64_t vocab_size, int64_t most, int64_t longest) {
  PromptLoader loader(options, tokenizer, vocab_size, static_cast<size_t>(most), longest);
  if (options.files.empty()) {
    const std::vector<BuiltinDocument> corpus =
        options.builtin == BuiltinText::kEvaluation ? BuiltinEvaluationCorpus() : BuiltinCorpus();
    for (const BuiltinDocument& document : corpus) {
      const std::string origin = "builtin:" + std::string(document.name);
      loader.Add({origin, origin, std::string(document.text)});
    }
  }
  for (const std::filesystem::path& file : options.files) {
    loader.BeginFile();
    ReadDataRows(file, [&](const DataRow& row) { loader.Add(row); });
  }
  PromptSet set = std::move(loader).Finish();
  if (set.prompts.empty()) {
    throw InputError(
        fmt::format(
            "self-generated text: there is nothing to continue, because the data has no user "
            "message and no text of at most {} tokens ({} prompts are longer); give other data",
            longest, set.too_long),
        Remedy::kShorterAnswers);
  }
  return set;
}

}  // namespace oscar
