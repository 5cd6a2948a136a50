// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks that each file of the pack of hostile files is accepted or refused as its index.json says.
#include <gtest/gtest.h>

#include <optional>

#include "capture/checkpoint/checkpoint.h"
#include "capture/files/strict_json.h"
#include "linalg/base/error.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

// Gives access to the tensors of a file or of a sharded directory through one interface.
struct Opened {
  std::optional<SafetensorsFile> file;
  std::optional<Checkpoint> checkpoint;

  explicit Opened(const std::filesystem::path& path) {
    if (std::filesystem::is_directory(path)) {
      checkpoint = Checkpoint::Open(path);
    } else {
      file = SafetensorsFile::Open(path);
    }
  }
  std::vector<std::string> names() const {
    if (checkpoint) return checkpoint->names();
    std::vector<std::string> names;
    for (const auto& [name, info] : file->tensors()) names.push_back(name);
    return names;
  }
  TensorView tensor(const std::string& name) const {
    return file ? file->tensor(name) : checkpoint->tensor(name);
  }
};

void CompareTensors(const Opened& opened, const Json& expected) {
  EXPECT_EQ(opened.names().size(), expected.size());
  for (const auto& [listed, tensor] : expected.items()) {
    std::string name = listed;
    // The index shortens very long names to "nnn... (60000 bytes)".
    if (name.ends_with(" bytes)") && expected.size() == 1) name = opened.names().at(0);
    const TensorView view = opened.tensor(name);
    EXPECT_EQ(DTypeName(view.dtype), tensor["dtype"].get<std::string>());
    EXPECT_EQ(view.shape, tensor["shape"].get<std::vector<int64_t>>());
    EXPECT_EQ(Sha256Hex(view.data), tensor["sha256"].get<std::string>()) << name;
    if (opened.file && tensor.contains("data_offsets")) {
      const auto& tensors = opened.file->tensors();
      uint64_t data_begin = std::filesystem::file_size(opened.file->path());
      for (const auto& [other, info] : tensors) data_begin = std::min(data_begin, info.offset);
      const TensorInfo& info = tensors.find(name)->second;
      EXPECT_EQ(info.offset - data_begin, tensor["data_offsets"][0].get<uint64_t>());
      EXPECT_EQ(info.offset + info.size - data_begin, tensor["data_offsets"][1].get<uint64_t>());
    }
  }
}

TEST(HostilePack, EveryFileGetsItsVerdict) {
  OSCAR_PACK_OR_SKIP(path, "hostile_safetensors");
  const Json index = ReadJsonFile(path / "index.json");
  size_t cases = 0;
  for (const Json& test : index["cases"]) {
    const std::string name = test["file"].get<std::string>();
    SCOPED_TRACE(name + ": " + test["why"].get<std::string>());
    ++cases;
    std::string refusal;
    try {
      const Opened opened(path / name);
      if (test.contains("tensors")) CompareTensors(opened, test["tensors"]);
    } catch (const InputError& error) {
      refusal = error.what();
      EXPECT_NE(refusal.find(name), refusal.npos) << refusal;
      EXPECT_LT(refusal.size(), 2000u);
    }
    if (!test["strict"].get<bool>()) continue;
    EXPECT_EQ(refusal.empty(), test["class"] == "accept") << refusal;
  }
  EXPECT_GT(cases, 50u);
}

}  // namespace
}  // namespace oscar
