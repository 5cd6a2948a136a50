// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/text/tokenizer/post_processor.h"

#include <limits>
#include <utility>

#include "capture/files/quote.h"
#include "capture/text/tokenizer/tokenizer_components.h"

namespace oscar {
namespace {

constexpr size_t kMaxTemplatePieces = 64;

class Template : public PostProcessor {
 public:
  struct Piece {
    bool is_text;              // true: the text's own tokens go here
    std::vector<int32_t> ids;  // used if not is_text
  };
  explicit Template(std::vector<Piece> pieces) : pieces_(std::move(pieces)) {}

  std::vector<int32_t> Apply(std::vector<int32_t> ids, size_t max_ids) const override {
    std::vector<int32_t> out;
    for (const Piece& piece : pieces_) {
      const std::vector<int32_t>& part = piece.is_text ? ids : piece.ids;
      if (out.size() + part.size() > max_ids) {
        throw InputError(
            fmt::format("the tokenizer's templates make more than {} tokens from a text, which no "
                        "real tokenizer does; give rows with \"input_ids\"",
                        max_ids));
      }
      out.insert(out.end(), part.begin(), part.end());
    }
    return out;
  }

  std::vector<int32_t> InsertedIds() const override {
    std::vector<int32_t> inserted;
    for (const Piece& piece : pieces_) {
      inserted.insert(inserted.end(), piece.ids.begin(), piece.ids.end());
    }
    return inserted;
  }

 private:
  std::vector<Piece> pieces_;
};

std::vector<int32_t> SpecialIds(const Json& special_tokens, const std::string& name,
                                const std::string& where) {
  if (!special_tokens.is_object() || !special_tokens.contains(name)) {
    throw InputError(fmt::format("{}: the template names {}, which is not in special_tokens", where,
                                 Quoted(name)));
  }
  const Json& ids = JsonMember(special_tokens.at(name), "ids", where);
  std::vector<int32_t> out;
  for (const Json& id : ids) {
    if (!ids.is_array() || !id.is_number_unsigned() ||
        id.get<uint64_t>() > std::numeric_limits<int32_t>::max()) {
      throw InputError(
          fmt::format("{}: special token {}: expected \"ids\" to be an array of "
                      "integers in [0, 2^31), found {}",
                      where, Quoted(name), Escaped(ids.dump())));
    }
    out.push_back(id.get<int32_t>());
  }
  return out;
}

void AppendTemplate(const Json& component, const std::string& where, Chain<PostProcessor>& chain) {
  const Json& single = JsonMember(component, "single", where);
  if (!single.is_array() || single.size() > kMaxTemplatePieces) {
    throw InputError(fmt::format("{}: \"single\" must be an array of at most {} pieces", where,
                                 kMaxTemplatePieces));
  }
  std::vector<Template::Piece> pieces;
  for (const Json& piece : single) {
    if (piece.is_object() && piece.size() == 1 && piece.contains("Sequence") &&
        JsonString(piece.at("Sequence"), "id", where) == "A") {
      pieces.push_back({true, {}});
    } else if (piece.is_object() && piece.size() == 1 && piece.contains("SpecialToken")) {
      const std::string name = JsonString(piece.at("SpecialToken"), "id", where);
      pieces.push_back(
          {false, SpecialIds(JsonMember(component, "special_tokens", where), name, where)});
    } else {
      throw InputError(
          fmt::format("{}: template piece {} is not supported; supported: {{\"Sequence"
                      "\": {{\"id\": \"A\"}}}}, {{\"SpecialToken\": {{\"id\": ...}}}}",
                      where, Escaped(piece.dump())));
    }
  }
  chain.push_back(std::make_unique<Template>(std::move(pieces)));
}

// {"cls": ["<s>", 0], "sep": ["</s>", 2]}: `cls` before the text, `sep` after it.
void AppendRoberta(const Json& component, const std::string& where, Chain<PostProcessor>& chain) {
  const auto id_of = [&](const char* key) -> std::vector<int32_t> {
    const Json& pair = JsonMember(component, key, where);
    if (!pair.is_array() || pair.size() != 2 || !pair[1].is_number_unsigned() ||
        pair[1].get<uint64_t>() > std::numeric_limits<int32_t>::max()) {
      throw InputError(fmt::format("{}: \"{}\" must be [token, id], found {}", where, key,
                                   Escaped(pair.dump())));
    }
    return {pair[1].get<int32_t>()};
  };
  chain.push_back(std::make_unique<Template>(
      std::vector<Template::Piece>{{false, id_of("cls")}, {true, {}}, {false, id_of("sep")}}));
}

std::span<const ComponentKind<PostProcessor>> Kinds() {
  static const std::vector<ComponentKind<PostProcessor>> kinds = {
      {"TemplateProcessing", {"single", "pair", "special_tokens"}, AppendTemplate},
      {"RobertaProcessing", {"sep", "cls", "trim_offsets", "add_prefix_space"}, AppendRoberta},
      {"BertProcessing", {"sep", "cls"}, AppendRoberta},
      // This only moves offsets, which we do not report.
      {"ByteLevel",
       {"add_prefix_space", "trim_offsets", "use_regex"},
       [](const Json&, const std::string&, Chain<PostProcessor>&) {}},
      {"Sequence",
       {"processors"},
       [](const Json& component, const std::string& where, Chain<PostProcessor>& chain) {
         AppendSequence(Kinds(), component, "processors", where, chain);
       }},
  };
  return kinds;
}

}  // namespace

Chain<PostProcessor> MakePostProcessors(const Json& component, const std::string& where) {
  Chain<PostProcessor> chain;
  AppendComponent(Kinds(), component, where, chain);
  return chain;
}

std::vector<std::string_view> PostProcessorTypes() { return TypesOf(Kinds()); }

}  // namespace oscar
