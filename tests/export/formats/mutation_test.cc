// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests that damage never passes unnoticed. Every prefix of a valid file is refused. A changed byte
// is refused, or it changes nothing that is read.
#include <gtest/gtest.h>

#include <fstream>

#include "export/formats/inspect.h"
#include "export/formats/pt/pt_writer.h"
#include "export/formats/pt/zip_reader.h"
#include "export/formats/rotation_file.h"
#include "linalg/base/error.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

// Writes a new file each time, because truncating an old one makes ext4 flush it to disk.
void Spill(const std::filesystem::path& path, const std::string& bytes) {
  std::filesystem::remove(path);
  std::ofstream(path, std::ios::binary) << bytes;
}

// Returns a v1 file with two 4 x 4 layers and every kind of value that our pickles can contain.
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

// Returns everything that a user of the file sees: the whole report except the file's digest.
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
  // The accepted changes are in attributes and version numbers of the ZIP directory, which are not
  // read.
  EXPECT_LT(unchanged, refused / 10);
}

}  // namespace
}  // namespace oscar
