// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A second GGUF implementation for tests, written from ggml's docs/gguf.md: it builds files byte by
// byte, and its reader does not validate its input.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace oscar {

template <typename T>
std::string RawNumber(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof(T)};
}
inline std::string RawText(std::string_view text) {
  return RawNumber<uint64_t>(text.size()) + std::string(text);
}
inline std::string RawEntry(std::string_view key, uint32_t type, const std::string& value) {
  return RawText(key) + RawNumber(type) + value;
}
inline std::string RawEntry(std::string_view key, uint32_t value) {
  return RawEntry(key, 4, RawNumber(value));
}
inline std::string RawEntry(std::string_view key, std::string_view value) {
  return RawEntry(key, 8, RawText(value));
}
inline std::string RawInfo(std::string_view name, const std::vector<uint64_t>& dims, uint32_t type,
                           uint64_t offset) {
  std::string info = RawText(name) + RawNumber(static_cast<uint32_t>(dims.size()));
  for (const uint64_t dim : dims) info += RawNumber(dim);
  return info + RawNumber(type) + RawNumber(offset);
}

// Writes a new file instead of overwriting the old one, which may still be mapped.
inline std::filesystem::path WriteBytes(const std::filesystem::path& path,
                                        const std::string& bytes) {
  std::filesystem::remove(path);
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

struct RawGguf {
  uint32_t version = 3;
  size_t alignment = 32;             // bytes
  std::vector<std::string> entries;  // RawEntry
  std::vector<std::string> infos;    // RawInfo
  std::string data;

  std::string Bytes() const {
    std::string bytes = "GGUF" + RawNumber(version) + RawNumber<uint64_t>(infos.size()) +
                        RawNumber<uint64_t>(entries.size());
    for (const std::string& entry : entries) bytes += entry;
    for (const std::string& info : infos) bytes += info;
    bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
    return bytes + data;
  }
  std::filesystem::path Write(const std::filesystem::path& path) const {
    return WriteBytes(path, Bytes());
  }
};

struct ReadGguf {
  struct Tensor {
    std::string name;
    std::vector<uint64_t> dims;
    uint32_t type = 0;
    uint64_t offset = 0;

    std::vector<float> Floats(const ReadGguf& file) const {
      size_t count = 1;
      for (const uint64_t dim : dims) count *= dim;
      std::vector<float> values(count);
      EXPECT_EQ(type, 0U);
      const std::string raw = file.bytes.substr(file.data_begin + offset, count * sizeof(float));
      EXPECT_EQ(raw.size(), count * sizeof(float));
      std::memcpy(values.data(), raw.data(), raw.size());
      return values;
    }
  };

  explicit ReadGguf(std::string content) : bytes(std::move(content)) {
    EXPECT_EQ(bytes.substr(0, 4), "GGUF");
    at = 4;
    version = Number<uint32_t>();
    const auto num_tensors = Number<uint64_t>(), num_entries = Number<uint64_t>();
    for (uint64_t i = 0; i < num_entries; ++i) {
      const std::string key = Text();
      const auto type = Number<uint32_t>();
      const size_t begin = at;
      Skip(type);
      // Stores a string without its length prefix, any other value as its raw bytes.
      EXPECT_TRUE(entries
                      .emplace(key, bytes.substr(begin + (type == 8 ? 8 : 0),
                                                 at - begin - (type == 8 ? 8 : 0)))
                      .second);
    }
    entries_end = at;
    for (uint64_t i = 0; i < num_tensors; ++i) {
      Tensor tensor;
      tensor.name = Text();
      tensor.dims.resize(Number<uint32_t>());
      for (uint64_t& dim : tensor.dims) dim = Number<uint64_t>();
      tensor.type = Number<uint32_t>();
      tensor.offset = Number<uint64_t>();
      tensors.push_back(tensor);
    }
    infos_end = at;
    const auto alignment = entries.find("general.alignment");
    const size_t step = alignment == entries.end() ? 32 : As<uint32_t>(alignment->second);
    data_begin = (at + step - 1) / step * step;
  }

  template <typename T>
  static T As(const std::string& raw) {
    T value{};
    EXPECT_EQ(raw.size(), sizeof(T));
    std::memcpy(&value, raw.data(), sizeof(T));
    return value;
  }
  const Tensor& Of(const std::string& name) const {
    for (const Tensor& tensor : tensors)
      if (tensor.name == name) return tensor;
    throw std::out_of_range(name);
  }

  std::string bytes;
  size_t at = 0;
  uint32_t version = 0;
  size_t entries_end = 0, infos_end = 0, data_begin = 0;
  std::map<std::string, std::string> entries;
  std::vector<Tensor> tensors;

 private:
  template <typename T>
  T Number() {
    at += sizeof(T);
    return As<T>(bytes.substr(at - sizeof(T), sizeof(T)));
  }
  std::string Text() {
    const auto size = Number<uint64_t>();
    at += size;
    return bytes.substr(at - size, size);
  }
  void Skip(uint32_t type) {
    constexpr size_t kSizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    if (type == 8) {
      Text();
    } else if (type == 9) {
      const auto of = Number<uint32_t>();
      const auto count = Number<uint64_t>();
      for (uint64_t i = 0; i < count; ++i) Skip(of);
    } else {
      at += kSizes[type];
    }
  }
};

}  // namespace oscar
