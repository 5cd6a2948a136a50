// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Merges one piece with a linked list of symbols and a heap of candidate merges, in O(n log n) for
// n symbols.
#include <algorithm>
#include <bit>

#include "capture/files/utf8.h"
#include "capture/text/tokenizer/bpe.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

constexpr int32_t kNone = -1;

struct Symbol {
  int32_t token;
  int32_t previous, next;  // positions; kNone at the ends
  bool removed;
};

struct Candidate {
  uint32_t rank;
  int32_t position;  // position of the left symbol
  int32_t token;     // result of the merge
};

// std::push_heap keeps the largest element on top. So the lowest rank, and then the leftmost
// position, must count as the largest.
bool ComesLater(const Candidate& a, const Candidate& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
}

}  // namespace

MergeTable::MergeTable(size_t num_merges)
    : slots_(std::bit_ceil(std::max<size_t>(num_merges * 2, 2)), Slot{kEmpty, {0, 0}}) {}

size_t MergeTable::SlotOf(uint64_t pair) const {
  const size_t mask = slots_.size() - 1;
  // Fibonacci hashing; the high half of the product is well mixed.
  size_t slot = static_cast<size_t>((pair * 0x9E3779B97F4A7C15U) >> 32) & mask;
  while (slots_[slot].pair != kEmpty && slots_[slot].pair != pair) slot = (slot + 1) & mask;
  return slot;
}

void MergeTable::Put(int32_t left, int32_t right, Merge merge) {
  const uint64_t pair = uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  slots_[SlotOf(pair)] = {pair, merge};
}

const MergeTable::Merge* MergeTable::Find(int32_t left, int32_t right) const {
  const uint64_t pair = uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  const Slot& slot = slots_[SlotOf(pair)];
  return slot.pair == pair ? &slot.merge : nullptr;
}

// A byte without a token becomes the unknown token or is omitted (see models/bpe/model.rs below).
uint32_t BpeModel::Bytes(std::string_view piece, std::vector<int32_t>& symbols) const {
  symbols.reserve(piece.size());
  uint32_t lost = 0;
  bool after_unknown = false;
  for (const char c : piece) {
    const int32_t id = byte_ids_[static_cast<uint8_t>(c)];
    if (id >= 0) {
      symbols.push_back(id);
    } else if (!unknown_) {
      ++lost;
    } else if (!(fuse_unknown_ && after_unknown)) {
      symbols.push_back(*unknown_);
    }
    after_unknown = id < 0;
  }
  return lost;
}

// Like merge_word in models/bpe/model.rs of Hugging Face tokenizers: the unknown token is only
// added at the next known character. So it comes after the byte tokens of characters in between.
uint32_t BpeModel::Characters(std::string_view piece, std::vector<int32_t>& symbols) const {
  uint32_t lost = 0;
  bool unknown_is_due = false;
  const auto add_unknown = [&] {
    if (unknown_is_due) symbols.push_back(*unknown_);
    unknown_is_due = false;
  };
  for (size_t i = 0; i < piece.size();) {
    if (!user_defined_.empty()) {
      if (const auto whole = user_defined_.FindAt(piece, i)) {
        add_unknown();
        symbols.push_back(static_cast<int32_t>(whole->index));
        i = whole->end;
        continue;
      }
    }
    const size_t begin = i;
    NextCodePoint(piece, i);
    const std::string_view character = piece.substr(begin, i - begin);
    if (const auto known = TokenId(character)) {
      add_unknown();
      symbols.push_back(*known);
      continue;
    }
    const auto byte_id = [&](char c) { return byte_ids_[static_cast<uint8_t>(c)]; };
    if (std::ranges::all_of(character, [&](char c) { return byte_id(c) >= 0; })) {
      for (const char c : character) symbols.push_back(byte_id(c));
      continue;
    }
    if (!unknown_) {
      ++lost;
      continue;
    }
    if (!fuse_unknown_) add_unknown();
    unknown_is_due = true;
  }
  add_unknown();
  return lost;
}

uint32_t BpeModel::EncodeNew(std::string_view piece, std::vector<int32_t>& ids) const {
  if (ignore_merges_) {
    const auto whole = whole_pieces_.find(piece);
    if (whole != whole_pieces_.end()) {
      ids.push_back(whole->second);
      return 0;
    }
  }
  std::vector<int32_t> start;
  const uint32_t lost =
      symbols_ == Symbols::kCharacters ? Characters(piece, start) : Bytes(piece, start);
  OSCAR_CHECK_LT(start.size(), size_t{1} << 31);
  const auto size = static_cast<int32_t>(start.size());
  std::vector<Symbol> symbols(start.size());
  std::vector<Candidate> heap;
  heap.reserve(start.size());
  const auto consider = [&](int32_t position, int32_t next) {
    if (position == kNone || next == kNone) return false;
    const MergeTable::Merge* merge = merges_.Find(symbols[static_cast<size_t>(position)].token,
                                                  symbols[static_cast<size_t>(next)].token);
    if (merge == nullptr) return false;
    heap.push_back({merge->rank, position, merge->token});
    return true;
  };
  for (int32_t i = 0; i < size; ++i) {
    symbols[static_cast<size_t>(i)] = {start[static_cast<size_t>(i)], i - 1,
                                       i + 1 < size ? i + 1 : kNone, false};
    consider(i - 1, i);
  }
  std::make_heap(heap.begin(), heap.end(), ComesLater);

  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), ComesLater);
    const Candidate top = heap.back();
    heap.pop_back();
    Symbol& left = symbols[static_cast<size_t>(top.position)];
    if (left.removed || left.next == kNone) continue;
    Symbol& right = symbols[static_cast<size_t>(left.next)];
    const MergeTable::Merge* current = merges_.Find(left.token, right.token);
    if (current == nullptr || current->token != top.token) continue;  // stale
    left.token = top.token;
    left.next = right.next;
    right.removed = true;
    if (right.next != kNone) symbols[static_cast<size_t>(right.next)].previous = top.position;
    if (consider(left.previous, top.position)) {
      std::push_heap(heap.begin(), heap.end(), ComesLater);
    }
    if (consider(top.position, left.next)) std::push_heap(heap.begin(), heap.end(), ComesLater);
  }
  for (int32_t i = 0; i != kNone && i < size; i = symbols[static_cast<size_t>(i)].next) {
    ids.push_back(symbols[static_cast<size_t>(i)].token);
  }
  return lost;
}

}  // namespace oscar
