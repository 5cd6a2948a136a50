// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
#include "capture/text/normalizer.h"

#include <utf8proc.h>

#include <cstdint>
#include <cstdlib>

#include "linalg/check.h"

namespace oscar {
namespace {

class UnicodeForm : public Normalizer {
 public:
  // All code points below `first_affected` are left alone by this form in any combination.
  UnicodeForm(int options, uint8_t first_affected_lead)
      : options_(options), first_affected_lead_(first_affected_lead) {}

  std::string Apply(std::string text) const override {
    bool affected = false;
    for (const char c : text) affected |= static_cast<uint8_t>(c) >= first_affected_lead_;
    if (!affected) return text;
    utf8proc_uint8_t* mapped = nullptr;
    const utf8proc_ssize_t size =
        utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                     static_cast<utf8proc_ssize_t>(text.size()), &mapped,
                     static_cast<utf8proc_option_t>(UTF8PROC_STABLE | options_));
    if (size == UTF8PROC_ERROR_NOMEM) throw ResourceError("out of memory in text normalization");
    OSCAR_CHECK_LE(0, size);  // the other errors are invalid UTF-8, which never comes here
    text.assign(reinterpret_cast<const char*>(mapped), static_cast<size_t>(size));
    std::free(mapped);
    return text;
  }

 private:
  int options_;
  uint8_t first_affected_lead_;
};

// Below U+0300 (lead byte CC) nothing composes and NFC leaves every character alone; the other
// forms leave only ASCII alone.
constexpr uint8_t kFirstLeadNfc = 0xCC;
constexpr uint8_t kFirstLeadOther = 0x80;

template <int kOptions, uint8_t kFirstLead>
void AppendForm(const Json&, const std::string&, Chain<Normalizer>& chain) {
  chain.push_back(std::make_unique<UnicodeForm>(kOptions, kFirstLead));
}

std::span<const ComponentKind<Normalizer>> Kinds() {
  static const std::vector<ComponentKind<Normalizer>> kinds = {
      {"NFC", {}, AppendForm<UTF8PROC_COMPOSE, kFirstLeadNfc>},
      {"NFD", {}, AppendForm<UTF8PROC_DECOMPOSE, kFirstLeadOther>},
      {"NFKC", {}, AppendForm<UTF8PROC_COMPOSE | UTF8PROC_COMPAT, kFirstLeadOther>},
      {"NFKD", {}, AppendForm<UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT, kFirstLeadOther>},
      {"Sequence",
       {"normalizers"},
       [](const Json& component, const std::string& where, Chain<Normalizer>& chain) {
         AppendSequence(Kinds(), component, "normalizers", where, chain);
       }},
  };
  return kinds;
}

}  // namespace

Chain<Normalizer> MakeNormalizers(const Json& component, const std::string& where) {
  Chain<Normalizer> chain;
  AppendComponent(Kinds(), component, where, chain);
  return chain;
}

std::string Normalize(const Chain<Normalizer>& chain, std::string text) {
  for (const auto& step : chain) text = step->Apply(std::move(text));
  return text;
}

}  // namespace oscar
