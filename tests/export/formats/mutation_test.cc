// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Damage never passes unnoticed: every prefix of a valid file is refused, and a changed byte is
// refused or changes nothing that is read.
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>
#include <fstream>

#include "capture/files/digest.h"
#include "export/formats/inspect.h"
#include "export/formats/pt/pt_writer.h"
#include "export/formats/pt/zip_reader.h"
#include "export/formats/rotation_file.h"
#include "linalg/base/error.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

// A new file each time: truncating an old one makes ext4 flush it to disk.
void Spill(const std::filesystem::path& path, const std::string& bytes) {
  std::filesystem::remove(path);
  std::ofstream(path, std::ios::binary) << bytes;
}

// A v1 file of two layers of 4 x 4 with everything a pickle of ours can hold.
std::string SmallFile(const std::filesystem::path& scratch) {
  const auto eye = std::make_shared<FloatTensor>(FloatTensor{{4, 4}, std::vector<float>(16, 0)});
  for (size_t i = 0; i < 4; ++i) eye->values[5 * i] = 1;
  const FloatTensorPtr matrix = eye;
  const FloatTensorPtr values = std::make_shared<const FloatTensor>(FloatTensor{{4}, {1, 2, 3, 4}});
  PtOutDict layers;
  for (int64_t id : {3, 70000}) {
    layers.emplace_back(id, PtOutDict{{PtKey("layer_id"), id},
                                      {PtKey("rotation"), matrix},
                                      {PtKey("eigenvalues"), values}});
  }
  WritePt(scratch / "small.pt",
          PtOutDict{{PtKey("format_version"), int64_t{1}},
                    {PtKey("objective"), "qqt_r_h_pbr"},
                    {PtKey("calibration"), PtFromJson(Json{{"x", {1.5, nullptr, true, -7}}})},
                    {PtKey("layers"), layers}},
          "small");
  return ReadText(scratch / "small.pt");
}

// Everything a user of the file sees: the whole report but the digest of the file itself.
std::string Seen(const std::filesystem::path& path) {
  Json report = InspectFile(path);
  report.erase("sha256");
  return report.dump();
}

TEST(Mutation, EveryPrefixIsRefused) {
  const auto scratch = TestScratch("prefixes");
  const std::string bytes = SmallFile(scratch);
  const auto path = scratch / "cut.pt";
  for (size_t size = 0; size < bytes.size(); ++size) {
    Spill(path, bytes.substr(0, size));
    EXPECT_THROW(OpenRotationFile(path), InputError) << size;
  }
}

TEST(Mutation, AChangedByteIsRefusedOrChangesNothing) {
  const auto scratch = TestScratch("bytes");
  const std::string bytes = SmallFile(scratch);
  const auto path = scratch / "small.pt";
  const std::string original = Seen(path);
  int refused = 0, unchanged = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (const int flip : {0x01, 0x80}) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ flip);
      Spill(path, changed);
      try {
        EXPECT_EQ(Seen(path), original) << "byte " << i << " flipped by " << flip;
        ++unchanged;
      } catch (const InputError&) {
        ++refused;
      }
    }
  }
  // Left alone: attributes and version numbers in the directory, which nobody reads.
  EXPECT_LT(unchanged, refused / 10);
}

// The CRC hides the pickle from the test above: here the pickle changes and its CRC with it.
TEST(Mutation, AChangedPickleNeverCrashes) {
  const auto scratch = TestScratch("pickles");
  SmallFile(scratch);
  const ZipReader valid = ZipReader::Open(scratch / "small.pt");
  const auto pickled = valid.record("data.pkl");
  const std::string bytes(reinterpret_cast<const char*>(pickled.data()), pickled.size());
  const auto path = scratch / "changed.pt";
  const std::string file = ReadText(scratch / "small.pt");
  const size_t data = valid.records()[0].offset;
  const size_t descriptor_crc = data + bytes.size() + 4;
  const size_t directory_crc = file.find("PK\x01\x02") + 16;
  int accepted = 0, refused = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (const int flip : {0x01, 0x08, 0x20, 0x80}) {
      std::string changed = file;
      changed[data + i] = static_cast<char>(changed[data + i] ^ flip);
      const auto* begin = reinterpret_cast<const unsigned char*>(changed.data()) + data;
      const auto crc = static_cast<uint32_t>(crc32_z(0, begin, bytes.size()));
      for (const size_t at : {descriptor_crc, directory_crc}) {
        std::memcpy(changed.data() + at, &crc, sizeof(crc));
      }
      Spill(path, changed);
      try {
        InspectFile(path);
        ++accepted;
      } catch (const InputError&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(accepted, 0);  // a letter of the objective
  EXPECT_GT(refused, accepted);
}

}  // namespace
}  // namespace oscar
