// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "export/formats/gguf_file.h"
#include "export/formats/npy_file.h"
#include "export/formats/pt/pickle_reader.h"
#include "export/formats/pt/pt_file.h"
#include "export/formats/pt/pt_writer.h"
#include "export/formats/rotation_file.h"
#include "tests/fuzz/harness/harnesses.h"

namespace oscar::fuzz {
namespace {

using namespace std::string_literals;

constexpr size_t kPtBytes = 16384;

// A v1 rotation file of two layers with everything a pickle of ours can hold.
std::string SmallPt() {
  auto eye = std::make_shared<FloatTensor>(FloatTensor{{4, 4}, std::vector<float>(16, 0)});
  for (size_t i = 0; i < 4; ++i) eye->values[5 * i] = 1;
  const FloatTensorPtr matrix = eye;
  const FloatTensorPtr values = std::make_shared<const FloatTensor>(FloatTensor{{4}, {1, 2, 3, 4}});
  PtOutDict layers;
  for (int64_t id : {3, 70000}) {
    layers.emplace_back(id, PtOutDict{{PtKey("layer_id"), id},
                                      {PtKey("rotation"), matrix},
                                      {PtKey("eigenvalues"), values}});
  }
  const auto path = Scratch() / "seed.pt";
  WritePt(path,
          PtOutDict{{PtKey("format_version"), int64_t{1}},
                    {PtKey("objective"), "qqt_r_h_pbr"},
                    {PtKey("calibration"), PtFromJson(Json{{"x", {1.5, nullptr, true, -7}}})},
                    {PtKey("layers"), layers}},
          "seed");
  return ReadAll(path);
}

void CheckJson(const PtValue& root) {
  const std::string text = PtToJson(root).dump();  // throws where a text is no UTF-8
  FUZZ_CHECK(text.size() <= 256 * PtTree::kMaxExpandedNodes);
}

void RunPickle(std::string_view input) {
  const PickleResult pickle = ReadPickle(BytesOf(input), "data.pkl");
  CheckJson(*pickle.tree.root);
}

std::vector<std::string> PickleSeeds() {
  const std::string file = SmallPt();
  const ZipReader archive = ZipReader::Open(FileOf(file));
  const auto bytes = archive.record("data.pkl");
  return {{reinterpret_cast<const char*>(bytes.data()), bytes.size()},
          "\x80\x02}q\0(X\1\0\0\0aq\1K\7X\1\0\0\0bq\2]q\3(G?\xF0\0\0\0\0\0\0N\x88"
          "eu."s};
}

// Accepted: every tensor expands within its bound, and data without tensors is written and read
// back equal.
void RunPt(std::string_view input) {
  const PtFile file = PtFile::Open(FileOf(input, "input.pt"));
  CheckJson(file.root());
  const RotationFile rotations = ReadRotationFile(file);
  uint64_t bytes = 0;
  for (const RotationLayer& layer : rotations.layers) {
    for (const FloatTensorPtr& tensor : {layer.rotation, layer.eigenvalues, layer.q_rotation}) {
      if (!tensor) continue;
      uint64_t count = 1;
      for (const int64_t size : tensor->shape) count *= static_cast<uint64_t>(size);
      FUZZ_CHECK(count == tensor->values.size());
      bytes += count * sizeof(float);
    }
  }
  FUZZ_CHECK(bytes <= (uint64_t{64} << 20) + 64 * input.size());
}

std::vector<std::string> PtSeeds() {
  std::vector<std::string> seeds = {SmallPt()};
  for (std::string& file : SeedFiles("upstream/synthetic", ".pt", kPtBytes)) {
    try {
      RunPt(file);
      seeds.push_back(std::move(file));
    } catch (const Error&) {  // a dump, which another reader takes
    }
  }
  return seeds;
}

// A change of the pickle, and its CRC made right wherever it stands.
std::string MutatePt(const std::string& input, Random& random) {
  try {
    const ZipReader archive = ZipReader::Open(FileOf(input));
    for (const ZipRecord& record : archive.records()) {
      if (record.name != "data.pkl") continue;
      std::string pickle = input.substr(record.offset, record.size);
      for (size_t changes = 1 + random() % 3; changes > 0; --changes)
        pickle[random() % pickle.size()] =
            static_cast<char>(random() % 3 == 0 ? random() : random() % 16);
      const auto crc = static_cast<uint32_t>(
          crc32_z(0, reinterpret_cast<const unsigned char*>(pickle.data()), pickle.size()));
      std::string file = input;
      file.replace(record.offset, pickle.size(), pickle);
      const std::string old(reinterpret_cast<const char*>(&record.crc), sizeof(record.crc));
      for (size_t at = 0; (at = file.find(old, at)) != file.npos; at += sizeof(crc))
        std::memcpy(file.data() + at, &crc, sizeof(crc));
      return file;
    }
  } catch (const Error&) {
  }
  return MutateBytes(input, kPtBytes, random);
}

// Accepted: a merge leaves every entry, tensor and byte of the model as it was.
void RunGguf(std::string_view input) {
  const GgufFile model = GgufFile::Open(FileOf(input, "model.gguf"));
  for (const GgufTensorInfo& tensor : model.tensors) {
    const auto bytes = model.Bytes(tensor);
    FUZZ_CHECK(bytes.size() == tensor.size);
    volatile std::byte last{};
    if (!bytes.empty()) last = bytes.back();
    (void)last;
  }
  const auto path = Scratch() / "merged.gguf";
  std::filesystem::remove(path);
  AppendToGguf(model, path, {{"oscar.added", uint32_t{7}}},
               {{"oscar.t", std::make_shared<const FloatTensor>(FloatTensor{{2}, {1, 2}})}});
  const GgufFile merged = GgufFile::Open(path);
  FUZZ_CHECK(merged.tensors.size() == model.tensors.size() + 1);
  FUZZ_CHECK(merged.entries.size() == model.entries.size() + 1);
  for (const auto& [key, value] : model.entries) {
    const auto found = merged.entries.find(key);
    FUZZ_CHECK(found != merged.entries.end());
    if (const auto* number = std::get_if<double>(&value); number != nullptr && std::isnan(*number))
      continue;
    FUZZ_CHECK(found->second == value);
  }
  for (const GgufTensorInfo& tensor : model.tensors) {
    const GgufTensorInfo* found = merged.Find(tensor.name);
    FUZZ_CHECK(found != nullptr && found->dims == tensor.dims && found->type == tensor.type);
    const auto a = model.Bytes(tensor), b = merged.Bytes(*found);
    FUZZ_CHECK(b.size() >= a.size() && std::equal(a.begin(), a.end(), b.begin()));
  }
}

std::vector<std::string> GgufSeeds() {
  const auto path = Scratch() / "seed.gguf";
  WriteGguf(path,
            {{"general.architecture", std::string("llama")},
             {"llama.block_count", uint32_t{2}},
             {"x.flag", true},
             {"x.eps", 1e-5F}},
            {{"blk.0.attn_k.weight",
              std::make_shared<const FloatTensor>(FloatTensor{{2, 3}, {1, 2, 3, 4, 5, 6}})},
             {"output_norm.weight", std::make_shared<const FloatTensor>(FloatTensor{{1}, {9}})}});
  return {ReadAll(path)};
}

void RunNpy(std::string_view input) {
  const NpyFile array = ReadNpyFile(FileOf(input, "a.npy"));
  size_t count = 1;
  for (const int64_t size : array.shape) {
    FUZZ_CHECK(size > 0);
    count *= static_cast<size_t>(size);
  }
  FUZZ_CHECK(count == array.values.size());
  FUZZ_CHECK(count * (array.dtype == DType::kF64   ? 8
                      : array.dtype == DType::kF32 ? 4
                                                   : 2) <
             input.size());
}

std::vector<std::string> NpySeeds() {
  const auto file = [](const std::string& descr, const std::string& shape, size_t bytes) {
    std::string header =
        "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (" + shape + "), }";
    header.resize(118, ' ');
    header.back() = '\n';
    return std::string("\x93NUMPY\x01\0", 8) + static_cast<char>(header.size()) + '\0' + header +
           std::string(bytes, '\x3C');
  };
  return {file("<f4", "2, 3", 24), file("<f2", "5,", 10), file("<f8", "1, 2, 2", 32)};
}

}  // namespace

const Harness kPickle = {"pickle", RunPickle, PickleSeeds};
const Harness kPt = {"pt", RunPt, PtSeeds, MutatePt, kPtBytes};
const Harness kGguf = {"gguf", RunGguf, GgufSeeds};
const Harness kNpy = {"npy", RunNpy, NpySeeds, nullptr, 1024};

}  // namespace oscar::fuzz
