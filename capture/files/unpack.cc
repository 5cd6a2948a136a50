// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/files/unpack.h"

#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <string_view>

#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr size_t kPiece = size_t{1} << 20;  // bytes unpacked at a time
constexpr int kGzipOnly = 16;               // zlib's windowBits: no zlib or raw streams
constexpr int kLargestZstdWindow = 27;      // log2 bytes, zstd's own limit without --long

// The unpacked bytes, with their limit.
class Output {
 public:
  Output(const std::string& what, uint64_t most) : what_(what), most_(most) {}

  char* piece() { return piece_.get(); }
  void Take(size_t size) {
    if (size > most_ - text_.size()) {
      throw InputError(fmt::format(
          "{}: unpacks to more than {} MiB; unpack it and give the unpacked file, or a part of it",
          what_, most_ >> 20));
    }
    text_.append(piece_.get(), size);
  }
  [[noreturn]] void Refuse(const char* format, std::string_view why) const {
    throw InputError(
        fmt::format("{}: damaged {} data: {}; download the file again", what_, format, why));
  }
  std::string Finish() && { return std::move(text_); }

 private:
  const std::string& what_;
  uint64_t most_;
  std::unique_ptr<char[]> piece_ = std::make_unique<char[]>(kPiece);
  std::string text_;
};

void UnpackGzip(std::span<const std::byte> bytes, Output& output) {
  z_stream stream = {};
  if (inflateInit2(&stream, MAX_WBITS + kGzipOnly) != Z_OK) throw std::bad_alloc();
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, inflateEnd);
  bool member_ended = false;
  while (true) {
    if (stream.avail_in == 0) {
      const size_t next = std::min<size_t>(bytes.size(), std::numeric_limits<uInt>::max());
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));
      stream.avail_in = static_cast<uInt>(next);
      bytes = bytes.subspan(next);
    }
    if (member_ended) {
      if (stream.avail_in == 0) return;
      inflateReset(&stream);  // next gzip member
    }
    stream.next_out = reinterpret_cast<Bytef*>(output.piece());
    stream.avail_out = kPiece;
    const int status = inflate(&stream, Z_NO_FLUSH);
    output.Take(kPiece - stream.avail_out);
    member_ended = status == Z_STREAM_END;
    if (member_ended) continue;
    if (status == Z_MEM_ERROR) throw std::bad_alloc();
    if (status != Z_OK) {
      output.Refuse("gzip", status == Z_BUF_ERROR   ? "it is truncated"
                            : stream.msg != nullptr ? stream.msg
                                                    : "not understood");
    }
  }
}

void UnpackZstd(std::span<const std::byte> bytes, Output& output) {
  const std::unique_ptr<ZSTD_DStream, size_t (*)(ZSTD_DStream*)> stream(ZSTD_createDStream(),
                                                                        ZSTD_freeDStream);
  if (stream == nullptr) throw std::bad_alloc();
  ZSTD_DCtx_setParameter(stream.get(), ZSTD_d_windowLogMax, kLargestZstdWindow);
  ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
  while (true) {
    ZSTD_outBuffer out{output.piece(), kPiece, 0};
    const size_t left = ZSTD_decompressStream(stream.get(), &out, &in);
    if (ZSTD_isError(left)) output.Refuse("zstd", ZSTD_getErrorName(left));
    output.Take(out.pos);
    if (in.pos < in.size || out.pos == out.size) continue;
    if (left != 0) output.Refuse("zstd", "it is truncated");
    return;
  }
}

}  // namespace

std::optional<std::string> Unpack(std::span<const std::byte> bytes, const std::string& what,
                                  uint64_t most) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  Output output(what, most);
  if (text.starts_with("\x1F\x8B")) {
    UnpackGzip(bytes, output);
  } else if (text.starts_with("\x28\xB5\x2F\xFD")) {
    UnpackZstd(bytes, output);
  } else {
    return std::nullopt;
  }
  return std::move(output).Finish();
}

}  // namespace oscar
