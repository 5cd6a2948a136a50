// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/capture/checkpoint/checkpoint_files.h"

#include <fstream>

namespace oscar {

std::string SafetensorsBytes(std::string_view header, std::string_view data) {
  std::string file;
  for (int i = 0; i < 8; ++i) {
    file += static_cast<char>(static_cast<uint64_t>(header.size()) >> (8 * i) & 0xFF);
  }
  return file.append(header).append(data);
}

void WriteText(const std::filesystem::path& path, std::string_view content) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary)
      .write(content.data(), static_cast<std::streamsize>(content.size()));
}

void WriteOneTensor(const std::filesystem::path& path, const std::string& name, char fill) {
  WriteText(path, SafetensorsBytes("{\"" + name +
                                       "\":{\"dtype\":\"F32\",\"shape\":[2,2],"
                                       "\"data_offsets\":[0,16]}}",
                                   std::string(16, fill)));
}

}  // namespace oscar
