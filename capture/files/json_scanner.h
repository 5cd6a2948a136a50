// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The quick half of ParseStrictJson: reads sound JSON of the kind that programs write some times
// faster than nlohmann's lexer. What it does not know it leaves alone, sound or not ("\\u" escapes,
// integers beyond 64 bits, every error): the parser that knows them reads such a text from its
// beginning, and says what is wrong with it.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

#include "capture/files/utf8.h"

namespace oscar {

// `Handler` has the callbacks of nlohmann's SAX interface.
template <typename Handler>
class JsonScanner {
 public:
  JsonScanner(std::string_view text, Handler* out)
      : at_(text.data()), end_(text.data() + text.size()), out_(*out) {}

  // Whether all of the text was read.
  bool Read() {
    while (true) {
      Space();
      if (Take('{')) {
        out_.start_object(0);
        closers_ += '}';
        Space();
        if (!Take('}')) {
          if (!Key()) return false;
          continue;
        }
        Close();
      } else if (Take('[')) {
        out_.start_array(0);
        closers_ += ']';
        Space();
        if (!Take(']')) continue;
        Close();
      } else if (!Scalar()) {
        return false;
      }
      while (true) {
        Space();
        if (closers_.empty()) return at_ == end_;
        if (Take(',')) {
          Space();
          if (closers_.back() == '}' && !Key()) return false;
          break;
        }
        if (!Take(closers_.back())) return false;
        Close();
      }
    }
  }

 private:
  void Space() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
  }
  bool Take(char c) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }
  bool Take(std::string_view word) {
    if (!std::string_view(at_, end_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  void Close() {
    closers_.back() == '}' ? out_.end_object() : out_.end_array();
    closers_.pop_back();
  }
  bool Key() {
    if (!Text()) return false;
    out_.key(text_);
    Space();
    return Take(':');
  }
  bool Scalar() {
    if (at_ == end_) return false;
    if (*at_ == '"') return Text() && out_.string(text_);
    if (Take("true")) return out_.boolean(true);
    if (Take("false")) return out_.boolean(false);
    if (Take("null")) return out_.null();
    return Number();
  }

  // A string, into text_.
  bool Text() {
    if (!Take('"')) return false;
    text_.clear();
    bool ascii = true;
    for (const char* run = at_; at_ != end_; ++at_) {
      const auto byte = static_cast<unsigned char>(*at_);
      if (byte == '"') {
        text_.append(run, at_++);
        return ascii || !FirstInvalidUtf8(text_);
      }
      if (byte < 0x20) return false;
      ascii &= byte < 0x80;
      if (byte != '\\') continue;
      text_.append(run, at_++);
      constexpr std::string_view kEscapes = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
      const size_t which = at_ == end_ ? kEscapes.npos : kEscapes.find(*at_);
      if (which == kEscapes.npos) return false;
      text_ += kMeant[which];
      run = at_ + 1;
    }
    return false;
  }

  bool Digits() {
    const char* const first = at_;
    while (at_ != end_ && *at_ >= '0' && *at_ <= '9') ++at_;
    return at_ != first;
  }
  bool Number() {
    const char* const first = at_;
    const bool negative = Take('-');
    if (!Take('0') && !Digits()) return false;
    bool integer = true;
    if (Take('.')) {
      integer = false;
      if (!Digits()) return false;
    }
    if (Take('e') || Take('E')) {
      integer = false;
      if (!Take('-')) Take('+');
      if (!Digits()) return false;
    }
    if (!integer) return As<double>(first, [&](double v) { return out_.number_float(v, {}); });
    if (negative) return As<int64_t>(first, [&](int64_t v) { return out_.number_integer(v); });
    return As<uint64_t>(first, [&](uint64_t v) { return out_.number_unsigned(v); });
  }
  template <typename T, typename Give>
  bool As(const char* first, Give give) {
    T value{};
    const auto [end, error] = std::from_chars(first, at_, value);
    return error == std::errc() && end == at_ && give(value);
  }

  const char* at_;
  const char* end_;
  Handler& out_;
  std::string closers_;  // of what is open
  std::string text_;
};

}  // namespace oscar
