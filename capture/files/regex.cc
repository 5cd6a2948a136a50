// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#define PCRE2_CODE_UNIT_WIDTH 8
#include "capture/files/regex.h"

#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <utility>

#include "capture/files/utf8.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr uint32_t kMatchLimit = 10'000'000;   // backtracking steps per match
constexpr uint32_t kNameMatchLimit = 100'000;  // for a name of about a hundred bytes
constexpr uint32_t kDepthLimit = 100'000;      // nested backtracking points (interpreter)
constexpr uint32_t kHeapLimitKib = 64 << 10;   // for the interpreter
constexpr size_t kJitStackStart = 32 << 10;    // bytes
constexpr size_t kJitStackMost = 4 << 20;      // bytes
constexpr uint32_t kParenthesesLimit = 100;    // nesting depth
constexpr size_t kShownBytes = 300;            // most bytes of a pattern shown in errors

template <auto kFree>
struct Deleter {
  template <class T>
  void operator()(T* pointer) const {
    kFree(pointer);
  }
};
using CodePointer = std::unique_ptr<pcre2_code, Deleter<pcre2_code_free>>;
using CompileContext = std::unique_ptr<pcre2_compile_context, Deleter<pcre2_compile_context_free>>;
using MatchContext = std::unique_ptr<pcre2_match_context, Deleter<pcre2_match_context_free>>;
using MatchData = std::unique_ptr<pcre2_match_data, Deleter<pcre2_match_data_free>>;
using JitStack = std::unique_ptr<pcre2_jit_stack, Deleter<pcre2_jit_stack_free>>;

template <class Pointer>
Pointer Allocated(Pointer pointer) {
  if (pointer == nullptr) throw ResourceError("out of memory in the regular expression library");
  return pointer;
}

MatchContext MakeContext(uint32_t match_limit) {
  MatchContext context = Allocated(MatchContext(pcre2_match_context_create(nullptr)));
  pcre2_set_match_limit(context.get(), match_limit);
  pcre2_set_depth_limit(context.get(), kDepthLimit);
  pcre2_set_heap_limit(context.get(), kHeapLimitKib);
  return context;
}

// Whether PCRE2 would refuse a pattern for Python's re (3.11), or interpret it differently.
bool IsForeignToPython(std::string_view pattern) {
  constexpr std::string_view kEscapedLetters = "dDwWsSbB";
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const std::string_view rest = pattern.substr(i + 1);
    if (pattern[i] == '\\') {
      const char next = rest.empty() ? ' ' : rest[0];
      const bool letter_or_digit = (next >= '0' && next <= '9') || (next >= 'a' && next <= 'z') ||
                                   (next >= 'A' && next <= 'Z');
      if (letter_or_digit && kEscapedLetters.find(next) == kEscapedLetters.npos) return true;
      ++i;
    } else if (in_class) {
      if (pattern[i] == '[' && !rest.empty() && std::string_view(":.=").find(rest[0]) != rest.npos)
        return true;  // POSIX class
      in_class = pattern[i] != ']';
    } else if (pattern[i] == '[') {
      in_class = true;  // a ] at the beginning is literal
      if (rest.starts_with('^')) ++i;
      if (pattern.substr(i + 1).starts_with(']')) ++i;
    } else if (pattern[i] == '(') {
      if (rest.starts_with('*')) return true;  // backtracking verb
      if (!rest.starts_with('?')) continue;
      if (std::ranges::none_of(std::array{"?:", "?=", "?!", "?<=", "?<!"},
                               [&](const char* known) { return rest.starts_with(known); }))
        return true;
    } else if (pattern[i] == '{') {
      if (rest.empty() || rest[0] < '0' || rest[0] > '9') return true;  // Python allows {,n}
    }
  }
  return false;
}

std::string ErrorText(int code) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

}  // namespace

class Regex::Code {
 public:
  // Whether there is a match at or after `at`; `data` then holds it.
  bool Match(std::string_view subject, size_t at, pcre2_match_data* data,
             pcre2_match_context* context) const {
    const auto match = [&](uint32_t options) {
      return pcre2_match(code.get(), reinterpret_cast<PCRE2_SPTR>(subject.data()), subject.size(),
                         at, PCRE2_NO_UTF_CHECK | options, data, context);
    };
    int found = match(0);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) found = match(PCRE2_NO_JIT);
    if (found == PCRE2_ERROR_NOMATCH) return false;
    if (found < 0) {
      throw InputError(fmt::format(
          "{}: the pattern failed on a text of {} bytes, at byte {}: {}. It may backtrack "
          "endlessly; give rows with \"input_ids\", or the names of modules, instead",
          where, subject.size(), at, ErrorText(found)));
    }
    return true;
  }

  CodePointer code;
  std::string where;
  bool is_anchored = false;
};

struct RegexMatcher::Scratch {
  MatchContext context;
  MatchData data;
  JitStack stack;
};

Regex::Regex(std::string_view pattern, Syntax syntax, std::string where) {
  if (syntax == Syntax::kPython && IsForeignToPython(pattern)) {
    throw InputError(
        fmt::format("{}: the pattern uses a construct that Python reads differently: {}", where,
                    pattern.substr(0, kShownBytes)));
  }
  // PCRE2_LITERAL excludes the options that only affect metacharacters.
  uint32_t options = PCRE2_UTF;
  if (syntax == Syntax::kLiteral) {
    options |= PCRE2_LITERAL;
  } else {
    options |= PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C;
    options |= syntax == Syntax::kPython ? PCRE2_ANCHORED : PCRE2_MULTILINE;
  }
  const CompileContext context = Allocated(CompileContext(pcre2_compile_context_create(nullptr)));
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  pcre2_set_parens_nest_limit(context.get(), kParenthesesLimit);
  int error = 0;
  PCRE2_SIZE offset = 0;
  CodePointer code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                 options, &error, &offset, context.get()));
  if (code == nullptr) {
    throw InputError(fmt::format("{}: the pattern does not compile: {} at byte {} of {}", where,
                                 ErrorText(error), offset, pattern.substr(0, kShownBytes)));
  }
  // Without JIT (an unusual machine, or memory that may not be executed), pcre2_match interprets.
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  auto compiled = std::make_shared<Code>();
  compiled->code = std::move(code);
  compiled->where = std::move(where);
  compiled->is_anchored = syntax == Syntax::kPython;
  code_ = std::move(compiled);
}

bool Regex::MatchesName(std::string_view subject) const {
  OSCAR_CHECK(code_->is_anchored);
  const MatchContext context = MakeContext(kNameMatchLimit);
  const auto data =
      Allocated(MatchData(pcre2_match_data_create_from_pattern(code_->code.get(), nullptr)));
  return code_->Match(subject, 0, data.get(), context.get());
}

RegexMatcher::RegexMatcher(const Regex& regex)
    : code_(regex.code_), scratch_(std::make_unique<Scratch>()) {
  scratch_->context = MakeContext(kMatchLimit);
  scratch_->data =
      Allocated(MatchData(pcre2_match_data_create_from_pattern(code_->code.get(), nullptr)));
  scratch_->stack = JitStack(pcre2_jit_stack_create(kJitStackStart, kJitStackMost, nullptr));
  pcre2_jit_stack_assign(scratch_->context.get(), nullptr, scratch_->stack.get());
}

RegexMatcher::~RegexMatcher() = default;

void RegexMatcher::Reset(std::string_view subject) {
  subject_ = subject;
  search_from_ = 0;
  last_match_end_ = kNoMatchYet;
}

bool RegexMatcher::Next(size_t& begin, size_t& end) {
  while (search_from_ <= subject_.size()) {
    if (!code_->Match(subject_, search_from_, scratch_->data.get(), scratch_->context.get())) {
      search_from_ = subject_.size() + 1;
      return false;
    }
    const PCRE2_SIZE* offsets = pcre2_get_ovector_pointer(scratch_->data.get());
    begin = offsets[0];
    end = offsets[1];
    OSCAR_CHECK_LE(search_from_, begin);
    OSCAR_CHECK_LE(begin, end);
    if (begin == end && end == last_match_end_) {
      if (search_from_ == subject_.size()) {
        ++search_from_;
      } else {
        NextCodePoint(subject_, search_from_);
      }
      continue;
    }
    search_from_ = end;
    last_match_end_ = end;
    return true;
  }
  return false;
}

}  // namespace oscar
