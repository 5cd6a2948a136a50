// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/text/data/builtin_corpus.h"

#include <algorithm>

#include "capture/files/digest.h"
#include "linalg/base/check.h"

// Defined in corpus/corpus.S.
extern "C" {
extern const char oscar_calibration_text_begin[], oscar_calibration_text_end[];
extern const char oscar_evaluation_text_begin[], oscar_evaluation_text_end[];
extern const char oscar_haystack_text_begin[], oscar_haystack_text_end[];
}

namespace oscar {
namespace {

// A document is a line "==== name source" and the following lines up to the next of these.
std::vector<BuiltinDocument> Split(std::string_view text) {
  constexpr std::string_view kHead = "==== ";
  std::vector<BuiltinDocument> corpus;
  while (!text.empty()) {
    OSCAR_CHECK(text.starts_with(kHead));
    const size_t line_end = text.find('\n');
    const size_t end = std::min(text.find("\n==== ", line_end), text.size() - 1) + 1;
    const std::string_view head = text.substr(kHead.size(), line_end - kHead.size());
    const std::string_view name = head.substr(0, head.find(' '));
    corpus.push_back({name.substr(0, name.rfind('-')), name, head.substr(name.size() + 1),
                      text.substr(line_end + 1, end - line_end - 1)});
    text.remove_prefix(end);
  }
  return corpus;
}

}  // namespace

std::vector<BuiltinDocument> BuiltinCorpus() {
  return Split({oscar_calibration_text_begin, oscar_calibration_text_end});
}

std::vector<BuiltinDocument> BuiltinEvaluationCorpus() {
  return Split({oscar_evaluation_text_begin, oscar_evaluation_text_end});
}

std::string_view BuiltinHaystack() { return {oscar_haystack_text_begin, oscar_haystack_text_end}; }

std::string BuiltinCorpusDigest(const std::vector<BuiltinDocument>& corpus) {
  Sha256 digest;
  for (const BuiltinDocument& document : corpus) {
    for (const std::string_view part : {document.name, document.text}) {
      digest.Add(part);
      digest.Add(std::string_view("\0", 1));
    }
  }
  return digest.FinishHex();
}

}  // namespace oscar
