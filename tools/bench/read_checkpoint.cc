// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// How fast a checkpoint's tensors reach the GPU, or on a machine without one main memory, by the
// path of a calibration. What the page cache holds already is not the disk's speed; see
// read_checkpoint.sh beside this, which empties it and compares with dd.
//
//   oscar-bench-read MODEL [auto|direct|cached]
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>

#include "capture/model/device.h"
#include "capture/model/weight_loader.h"
#include "linalg/error.h"

namespace oscar {
namespace {

ReadMode ModeOf(const std::string& name) {
  if (name == "auto") return ReadMode::kAuto;
  if (name == "direct") return ReadMode::kDirect;
  if (name == "cached") return ReadMode::kCached;
  throw UsageError(fmt::format("'{}' is no way to read: expected auto, direct or cached", name));
}

struct Bytes {
  uint64_t direct = 0, cached = 0;
};

// About as much at a time as a large layer.
constexpr uint64_t kBatchBytes = uint64_t{400} << 20;

Bytes ToGpu(const Checkpoint& checkpoint, ReadMode mode, at::Device device) {
  WeightLoader loader(checkpoint, {device, at::kBFloat16}, mode);
  uint64_t batch = 0;
  std::vector<at::Tensor> tensors;
  const auto finish = [&] {
    loader.Finish();
    tensors.clear();
    batch = 0;
  };
  for (const std::string& name : checkpoint.names()) {
    tensors.push_back(loader.Load(name));
    batch += checkpoint.info(name).size;
    if (batch >= kBatchBytes) finish();
  }
  finish();
  return {loader.direct_bytes(), loader.cached_bytes()};
}

Bytes ToMemory(const Checkpoint& checkpoint, ReadMode mode) {
  struct Nowhere : PieceSink {
    void Take(const FilePiece&) override {}
    void WaitForBlock(size_t) override {}
  } nowhere;
  const auto alignment = std::align_val_t(kDirectAlignment);
  const auto size = static_cast<size_t>(kPinnedBytes);
  std::byte* const memory = static_cast<std::byte*>(::operator new(size, alignment));
  std::vector<std::filesystem::path> files;
  for (const std::string& file : checkpoint.files()) files.push_back(checkpoint.directory() / file);
  std::vector<FileRange> ranges;
  for (const std::string& name : checkpoint.names()) {
    const TensorInfo& info = checkpoint.info(name);
    ranges.push_back({checkpoint.file_index(name), info.offset, info.size});
  }
  Bytes bytes;
  {
    BlockReader reader(files, {memory, size}, static_cast<size_t>(kPinnedBlockBytes), mode);
    reader.Read(ranges, nowhere);
    bytes = {reader.direct_bytes(), reader.cached_bytes()};
  }
  ::operator delete(memory, alignment);
  return bytes;
}

void Run(const std::string& model, ReadMode mode) {
  const Checkpoint checkpoint = Checkpoint::Open(model);
  const at::Device device = ParseDevice("auto");
  if (!device.is_cpu()) QueryMemory(device);  // the driver starts before the clock does
  const auto begin = std::chrono::steady_clock::now();
  const Bytes bytes =
      device.is_cpu() ? ToMemory(checkpoint, mode) : ToGpu(checkpoint, mode, device);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const auto total = static_cast<double>(bytes.direct + bytes.cached);
  std::puts(
      fmt::format("{:.2f} GB/s: {:.2f} GB to {} in {:.2f} s, {:.0f} % of them past the page cache",
                  total / seconds / 1e9, total / 1e9, DescribeDevice(device), seconds,
                  100 * static_cast<double>(bytes.direct) / total)
          .c_str());
}

}  // namespace
}  // namespace oscar

int main(int argc, char** argv) {
  try {
    if (argc < 2 || argc > 3)
      throw oscar::UsageError("usage: oscar-bench-read MODEL [auto|direct|cached]");
    oscar::Run(argv[1], oscar::ModeOf(argc == 3 ? argv[2] : "auto"));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
