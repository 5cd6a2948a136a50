// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "export/formats/gguf_writer.h"
#include "export/formats/npy_file.h"
#include "export/formats/pt/pickle_reader.h"
#include "export/formats/pt/pt_file.h"
#include "export/formats/pt/pt_writer.h"
#include "export/formats/pt/zip_writer.h"
#include "export/formats/rotation_file.h"
#include "tests/fuzz/harness/harnesses.h"

namespace oscar::fuzz {
namespace {

using namespace std::string_literals;

constexpr size_t kPtBytes = 16384;

// Returns a v1 rotation file of two layers with everything that our pickles contain.
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
  const std::string text = PtToJson(root).dump();  // throws if a text is not UTF-8
  FUZZ_CHECK(text.size() <= 128 * PtTree::kMaxExpandedNodes);
}

void RunPickle(std::string_view input) {
  const PickleResult pickle = ReadPickle(BytesOf(input), "data.pkl");
  CheckJson(*pickle.tree.root);
}

// Checks that tensors of an accepted file have as many values as their shapes, and do not expand
// beyond a bound.
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
  // The folder also has dumps of attention, which RunPt refuses.
  for (std::string& file : Accepted(SeedFiles("upstream/synthetic", ".pt", kPtBytes), RunPt))
    seeds.push_back(std::move(file));
  if (kCampaign)
    for (std::string& file : SeedFiles("upstream/hostile", ".pt", kPtBytes))
      seeds.push_back(std::move(file));
  return seeds;
}

std::vector<std::string> PickleSeeds() {
  std::vector<std::string> seeds = {
      "\x80\x02}q\0(X\1\0\0\0aq\1K\7X\1\0\0\0bq\2]q\3(G?\xF0\0\0\0\0\0\0N\x88"
      "eu."s};
  for (const std::string& file : PtSeeds()) {
    try {
      const ZipReader archive = ZipReader::Open(FileOf(file));
      const auto bytes = archive.record("data.pkl");
      seeds.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    } catch (const Error&) {
    }
  }
  return seeds;
}

// Inserts pickle operations, which may replace a few bytes, or changes bytes.
std::string MutatePickle(const std::string& input, Random& random) {
  static const std::string kOperations[] = {"N"s,
                                            "\x88"s,
                                            "\x89"s,
                                            "K\1"s,
                                            "M\0\1"s,
                                            "J\xFF\xFF\xFF\xFF"s,
                                            "\x8A\1\7"s,
                                            "G?\xF0\0\0\0\0\0\0"s,
                                            "X\1\0\0\0a"s,
                                            "U\1a"s,
                                            "C\1a"s,
                                            "\x8C\1a"s,
                                            "]"s,
                                            "}"s,
                                            ")"s,
                                            "("s,
                                            "t"s,
                                            "\x85"s,
                                            "\x86"s,
                                            "\x87"s,
                                            "l"s,
                                            "d"s,
                                            "e"s,
                                            "a"s,
                                            "s"s,
                                            "u"s,
                                            "q\1"s,
                                            "h\1"s,
                                            "h\0"s,
                                            "R"s,
                                            "Q"s,
                                            "b"s,
                                            "0"s,
                                            "2"s,
                                            "\x94"s,
                                            "."s,
                                            "ctorch\nFloatStorage\n"s,
                                            "ctorch._utils\n_rebuild_tensor_v2\n"s,
                                            "ccollections\nOrderedDict\n"s};
  std::string out = input;
  for (size_t changes = 1 + random() % 3; changes > 0; --changes) {
    const size_t at = random() % (out.size() + 1), count = std::min(out.size() - at, random() % 4);
    if (random() % 4 == 0) {
      out = MutateBytes(out, 8192, random);
    } else {
      out.replace(at, count, kOperations[random() % std::size(kOperations)]);
    }
  }
  return out;
}

// Returns the archive with its pickle changed, or with bytes changed if it is not an archive.
std::string MutatePt(const std::string& input, Random& random) {
  if (random() % 4 == 0) return MutateBytes(input, kPtBytes, random);
  try {
    const ZipReader archive = ZipReader::Open(FileOf(input));
    const auto path = Scratch() / "mutated.pt";
    ZipWriter writer(path, "archive");
    for (const ZipRecord& record : archive.records()) {
      const std::string bytes = input.substr(record.offset, record.size);
      writer.Add(record.name, record.name == "data.pkl" ? MutatePickle(bytes, random) : bytes);
    }
    writer.Commit();
    return ReadAll(path);
  } catch (const Error&) {
    return MutateBytes(input, kPtBytes, random);
  }
}

// Checks that a merge keeps every entry, tensor and byte of an accepted model.
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

// Changes bytes or makes a new file, because byte changes seldom change an alignment, a type and
// the offsets together.
std::string MutateGguf(const std::string& input, Random& random) {
  if (random() % 4 != 0) return MutateBytes(input, 8192, random);
  std::string out;
  const auto number = [&](uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
  };
  const auto text = [&](const std::string& value) {
    number(value.size(), 8);
    out += value;
  };
  const uint64_t tensors = random() % 4, entries = random() % 4;
  const uint64_t alignment = uint64_t{1} << random() % 9;
  number(kGgufMagic, 4);
  number(2 + random() % 2, 4);
  number(tensors, 8);
  number(entries + 1, 8);
  text(std::string(kGgufAlignmentKey));
  number(kUint32, 4);
  number(alignment, 4);
  for (uint64_t i = 0; i < entries; ++i) {
    text("k" + std::to_string(i));
    const auto type = static_cast<uint32_t>(random() % (kFloat64 + 1));
    number(type, 4);
    if (type == kString) {
      text(std::string(random() % 9, 'v'));
    } else if (type == kArray) {
      number(kUint16, 4);
      number(3, 8);
      number(random(), 6);
    } else {
      static constexpr size_t kBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
      number(type == kBool ? random() % 2 : random(), kBytes[type]);
    }
  }
  std::string data;
  for (uint64_t i = 0; i < tensors; ++i) {
    text("t" + std::to_string(i));
    const uint64_t columns = 32 * (1 + random() % 3), rows = 1 + random() % 3;
    const bool packed = random() % 2 == 0;  // Q8_0: 34 bytes per 32 values
    number(2, 4);
    number(columns, 8);
    number(rows, 8);
    number(packed ? 8 : random() % 2, 4);
    const uint32_t type = static_cast<uint8_t>(out[out.size() - 4]);
    number(data.size(), 8);
    data.append(columns * rows * (type == 8 ? 34 : type == 1 ? 64 : 128) / 32, 'd');
    data.resize(GgufPadded(data.size(), alignment), '\0');
  }
  out.resize(GgufPadded(out.size(), alignment), '\0');
  return out + data;
}

void RunNpy(std::string_view input) {
  const NpyFile array = ReadNpyFile(FileOf(input, "a.npy"));
  size_t count = 1;
  for (const int64_t size : array.shape) {
    FUZZ_CHECK(size > 0);
    count *= static_cast<size_t>(size);
  }
  FUZZ_CHECK(count == array.values.size());
  const auto byte = [&](size_t at) { return size_t{static_cast<uint8_t>(input.at(at))}; };
  const size_t header =
      byte(6) == 1 ? 10 + byte(8) + 256 * byte(9) : 12 + byte(8) + 256 * byte(9) + 65536 * byte(10);
  const size_t width = array.dtype == DType::kF64 ? 8 : array.dtype == DType::kF32 ? 4 : 2;
  FUZZ_CHECK(header + count * width == input.size());
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
  std::vector<std::string> seeds = {file("<f4", "2, 3", 24), file("<f4", "1, 2, 2", 16),
                                    file("<f4", "4,", 16)};
  if (kCampaign) seeds.insert(seeds.end(), {file("<f2", "2,", 4), file("<f8", "2, 1", 16)});
  return seeds;
}

// Replaces a type or number of the header by another.
std::string MutateNpy(const std::string& input, Random& random) {
  static constexpr std::string_view kPieces[] = {
      "<f2", "<f4", "<f8", ">f4", "<i4",       "True", "False", "0",    "1",   "2",
      "3",   "4",   "6",   "12",  "999999999", ", ",   ",",     "\x01", "\x02"};
  std::string out = input;
  const std::string_view old = kPieces[random() % std::size(kPieces)];
  const size_t at = out.find(old, random() % 3 == 0 ? random() % (out.size() + 1) : 0);
  if (at == out.npos || random() % 4 == 0) return MutateBytes(input, 1024, random);
  out.replace(at, old.size(), kPieces[random() % std::size(kPieces)]);
  // Pads the header as numpy does, so that the data stay in place.
  const size_t brace = out.find('}');
  if (out.size() > input.size() && brace != out.npos)
    out.erase(std::min(brace + 1, out.size()), out.size() - input.size());
  else if (brace != out.npos)
    out.insert(brace + 1, input.size() - out.size(), ' ');
  return out;
}

}  // namespace

const Harness kPickle = {"pickle", RunPickle, PickleSeeds, MutatePickle};
const Harness kPt = {"pt", RunPt, PtSeeds, MutatePt, kPtBytes};
const Harness kGguf = {"gguf", RunGguf, GgufSeeds, MutateGguf};
const Harness kNpy = {"npy", RunNpy, NpySeeds, MutateNpy, 1024};

}  // namespace oscar::fuzz
