// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/files/unpack.h"

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include "linalg/base/error.h"
#include "tests/support/said.h"

namespace oscar {
namespace {

std::string Gzip(const std::string& text) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string Zstd(const std::string& text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  return packed;
}

std::optional<std::string> UnpackText(const std::string& packed, uint64_t most = kMostUnpacked) {
  return Unpack(std::as_bytes(std::span(packed)), "rows.gz", most);
}

std::string Refusal(const std::string& packed, uint64_t most = kMostUnpacked) {
  return ErrorOf<InputError>([&] { UnpackText(packed, most); });
}

TEST(Unpack, GivesBackWhatWasPacked) {
  std::string text;
  for (int i = 0; i < 700'000; ++i) text += static_cast<char>('a' + i * i % 23);  // several pieces
  for (const std::string& one : {std::string(), std::string("x"), text}) {
    EXPECT_EQ(UnpackText(Gzip(one)), one);
    EXPECT_EQ(UnpackText(Zstd(one)), one);
    EXPECT_EQ(UnpackText(Gzip(one) + Gzip("more")), one + "more");  // like `cat a.gz b.gz`
    EXPECT_EQ(UnpackText(Zstd(one) + Zstd("more")), one + "more");
  }
  EXPECT_EQ(UnpackText("plain text"), std::nullopt);
  EXPECT_EQ(UnpackText(""), std::nullopt);
}

TEST(Unpack, RefusesWhatIsCutOrDamaged) {
  const std::string text = "some words, and some more words, and some more";
  for (const std::string& packed : {Gzip(text), Zstd(text)}) {
    for (size_t size = 4; size < packed.size(); ++size)
      EXPECT_TRUE(Says(Refusal(packed.substr(0, size)), "rows.gz: damaged")) << size;
    EXPECT_NE(Refusal(packed + "tail"), "");
  }
  std::string flipped = Gzip(text);
  flipped[flipped.size() - 6] ^= 1;  // a bit of its CRC
  EXPECT_NE(Refusal(flipped), "");
}

TEST(Unpack, StopsAtTheLimit) {
  const std::string zeros(50'000'000, '\0');
  for (const std::string& packed : {Gzip(zeros), Zstd(zeros)}) {
    EXPECT_LT(packed.size(), 60'000u);
    EXPECT_TRUE(Says(Refusal(packed, 2 << 20), "unpacks to more than 2 MiB"));
    EXPECT_EQ(UnpackText(packed, zeros.size())->size(), zeros.size());
    EXPECT_NE(Refusal(packed, zeros.size() - 1), "");
  }
}

}  // namespace
}  // namespace oscar
