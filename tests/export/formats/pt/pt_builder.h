// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Makes .pt files from raw pickle bytes, to test files that torch.save would never write.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "export/formats/pt/zip_writer.h"

namespace oscar {

// Returns the opcodes of a BINUNICODE string.
inline std::string PickleText(std::string_view text) {
  std::string out = "X";
  for (int i = 0; i < 4; ++i) out += static_cast<char>((text.size() >> (8 * i)) & 0xff);
  return out + std::string(text);
}

// Returns the opcodes of an integer from 0 to 2^31 - 1.
inline std::string PickleInt(int64_t value) {
  std::string out = "J";
  for (int i = 0; i < 4; ++i) out += static_cast<char>((value >> (8 * i)) & 0xff);
  return out;
}

inline std::string PickleTuple(const std::vector<int64_t>& values) {
  std::string out = "(";
  for (const int64_t value : values) out += PickleInt(value);
  return out + "t";
}

// Returns the opcodes of a tensor over the record data/<key>, by default of float32.
inline std::string PickleTensor(std::string_view key, int64_t numel, int64_t offset,
                                const std::vector<int64_t>& shape,
                                const std::vector<int64_t>& strides,
                                std::string_view storage = "FloatStorage") {
  return "ctorch._utils\n_rebuild_tensor_v2\n((" + PickleText("storage") + "ctorch\n" +
         std::string(storage) + "\n" + PickleText(key) + PickleText("cpu") + PickleInt(numel) +
         "tQ" + PickleInt(offset) + PickleTuple(shape) + PickleTuple(strides) +
         "\x89"
         "ccollections\nOrderedDict\n)RtR";
}

inline std::string Pickle(const std::string& body) { return "\x80\x02" + body + "."; }

// Writes the pickle and the records data/0, data/1, ... given as float32 values.
inline std::filesystem::path BuildPt(const std::filesystem::path& path, const std::string& pickle,
                                     const std::vector<std::vector<float>>& storages) {
  ZipWriter writer(path, "archive");
  writer.Add("data.pkl", pickle);
  writer.Add("byteorder", "little");
  for (size_t i = 0; i < storages.size(); ++i) {
    writer.Add("data/" + std::to_string(i), std::as_bytes(std::span(storages[i])));
  }
  writer.Add("version", "3\n");
  writer.Commit();
  return path;
}

}  // namespace oscar
