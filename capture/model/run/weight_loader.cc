// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/run/weight_loader.h"

#include <ATen/ops/empty.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "capture/model/run/dequantize.h"
#include "capture/model/run/device.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

using Bytes = std::span<const std::byte>;

// Uses small steps that LibTorch runs on one thread, because the other cores are busy with the
// current layer.
void OnCpu(Bytes data, at::ScalarType stored, const at::Tensor& result) {
  constexpr int64_t kStep = 16384;  // values
  const at::Tensor flat = result.view({-1});
  const size_t value_bytes = c10::elementSize(stored);
  OSCAR_CHECK_EQ(static_cast<size_t>(flat.numel()) * value_bytes, data.size());
  if (stored == result.scalar_type()) {
    if (!data.empty()) std::memcpy(result.data_ptr(), data.data(), data.size());
    return;
  }
  const at::Tensor step = at::empty({kStep}, stored);
  for (int64_t begin = 0; begin < flat.numel(); begin += kStep) {
    const int64_t count = std::min(kStep, flat.numel() - begin);
    // Mapped data may be unaligned for its type.
    std::memcpy(step.data_ptr(), data.data() + static_cast<size_t>(begin) * value_bytes,
                static_cast<size_t>(count) * value_bytes);
    flat.narrow(0, begin, count).copy_(step.narrow(0, 0, count));
  }
}

// Reads through the page cache by default. Digests of the files read the same bytes, so every byte
// is read from the disk only once.
ReadMode WayTo(ReadMode read) { return read == ReadMode::kAuto ? ReadMode::kCached : read; }

}  // namespace

// Uploads the stored parts of weights to the device. Each part is a range of a file. Parts that
// need conversion stay in separate tensors until the weight's last piece has arrived.
class WeightLoader::Uploader : public PieceSink {
 public:
  Uploader(const Checkpoint& checkpoint, at::Device device, ReadMode read)
      : checkpoint_(checkpoint),
        implementation_(device.type()),
        compute_stream_(implementation_.getStream(device)),
        stream_(implementation_.getStreamFromGlobalPool(device)),
        pinned_(
            at::empty({kPinnedBytes}, at::TensorOptions().dtype(at::kByte).pinned_memory(true))),
        way_(WayTo(read)),
        reader_(Paths(checkpoint),
                {static_cast<std::byte*>(pinned_.mutable_data_ptr()), pinned_.nbytes()},
                static_cast<size_t>(kPinnedBlockBytes), way_) {
    copied_.reserve(kPinnedBytes / kPinnedBlockBytes);
    while (copied_.size() < kPinnedBytes / kPinnedBlockBytes) copied_.emplace_back(device.type());
  }

  at::Tensor Allocate(const WeightStorage& storage, at::ScalarType dtype) const {
    const c10::StreamGuard guard(stream_);
    at::Tensor result =
        at::empty(storage.shape, at::TensorOptions().dtype(dtype).device(stream_.device()));
    result.record_stream(compute_stream_);
    return result;
  }

  void Ask(const WeightStorage& storage, const at::Tensor& result, bool in_order) {
    for (size_t part = 0; part < storage.parts.size(); ++part) {
      const WeightPart& stored = storage.parts[part];
      const size_t file = checkpoint_.file_index(stored.name);
      ranges_.push_back({file, checkpoint_.info(stored.name).offset + stored.begin, stored.size});
      places_.push_back({wanted_.size(), part});
    }
    wanted_.push_back({result, storage, in_order, storage.bytes(), {}});
    wanted_.back().raw.resize(storage.parts.size());
  }

  void Take(const FilePiece& piece) override {
    const c10::StreamGuard guard(stream_);
    const Place place = places_[piece.range];
    Wanted& wanted = wanted_[place.weight];
    const WeightPart& part = wanted.storage.parts[place.part];
    const auto count = static_cast<int64_t>(piece.bytes.size());
    at::Tensor& raw = wanted.raw[place.part];
    if (!raw.defined()) {
      const at::ScalarType stored = PartScalarType(part.dtype, part.name);
      raw = wanted.storage.plain() && stored == wanted.result.scalar_type()
                ? wanted.result
                : at::empty(part.shape, wanted.result.options().dtype(stored));
      OSCAR_CHECK_EQ(raw.nbytes(), part.size);
    }
    const int64_t at = static_cast<int64_t>(
        piece.bytes.data() - static_cast<const std::byte*>(pinned_.const_data_ptr()));
    raw.view({-1})
        .view(at::kByte)
        .narrow(0, static_cast<int64_t>(piece.begin), count)
        .copy_(pinned_.narrow(0, at, count), /*non_blocking=*/true);
    copied_[piece.block].record(stream_);
    wanted.missing -= piece.bytes.size();
    if (wanted.missing > 0) return;
    if (wanted.in_order) checkpoint_.turns()->Reach(PlaceOf(checkpoint_, wanted.storage));
    if (!wanted.storage.plain()) {
      Dequantize(wanted.storage, wanted.raw, wanted.result);
    } else if (!raw.is_same(wanted.result)) {
      wanted.result.copy_(raw);
    }
    wanted.raw.clear();
  }

  void WaitForBlock(size_t block) override { copied_[block].synchronize(); }

  void Finish() {
    const std::vector<FileRange> ranges = std::exchange(ranges_, {});
    // No turn is needed to read through the page cache: whoever reads first also reads for the
    // others.
    std::optional<ReadTurns::Urgent> first;
    if (way_ != ReadMode::kCached && !ranges.empty()) first.emplace(*checkpoint_.turns());
    try {
      reader_.Read(ranges, *this);
    } catch (...) {
      wanted_.clear();
      places_.clear();
      throw;
    }
    wanted_.clear();
    places_.clear();
    stream_.synchronize();
  }

  const BlockReader& reader() const { return reader_; }

 private:
  static std::vector<std::filesystem::path> Paths(const Checkpoint& checkpoint) {
    std::vector<std::filesystem::path> paths;
    for (const std::string& file : checkpoint.files())
      paths.push_back(checkpoint.directory() / file);
    return paths;
  }

  struct Wanted {
    at::Tensor result;
    WeightStorage storage;
    bool in_order;
    uint64_t missing;             // bytes
    std::vector<at::Tensor> raw;  // parts in stored form; `result` itself if nothing is converted
  };
  struct Place {
    size_t weight, part;
  };
  const Checkpoint& checkpoint_;
  c10::impl::VirtualGuardImpl implementation_;
  c10::Stream compute_stream_, stream_;
  at::Tensor pinned_;               // [kPinnedBytes] bytes
  std::vector<c10::Event> copied_;  // last copy out of each block
  std::vector<FileRange> ranges_;   // requested ranges
  std::vector<Place> places_;       // destinations of those ranges
  std::vector<Wanted> wanted_;
  ReadMode way_;
  BlockReader reader_;
};

WeightLoader::WeightLoader(const Checkpoint& checkpoint, const WeightTarget& target, ReadMode read)
    : checkpoint_(checkpoint), target_(target) {
  if (!target.device.is_cpu())
    uploader_ = std::make_unique<Uploader>(checkpoint, target.device, read);
}

WeightLoader::~WeightLoader() = default;

at::Tensor WeightLoader::Load(const std::string& name) { return LoadAs(name, target_.dtype); }

at::Tensor WeightLoader::Load(const std::string& name, int64_t first, int64_t count) {
  return Read(SliceStorage(FindWeightStorage(checkpoint_, name), first, count), target_.dtype);
}

at::Tensor WeightLoader::LoadAs(const std::string& name, at::ScalarType dtype) {
  const at::Tensor tensor = Read(FindWeightStorage(checkpoint_, name), dtype);
  if (loaded_ != nullptr) loaded_->push_back(tensor);
  return tensor;
}

at::Tensor WeightLoader::Read(const WeightStorage& storage, at::ScalarType dtype) {
  const at::Tensor tensor =
      uploader_ ? uploader_->Allocate(storage, dtype) : at::empty(storage.shape, dtype);
  if (readers_.size() > 1) {
    asked_.push_back({tensor, storage});
  } else {
    ReadInto(storage, tensor);
  }
  return tensor;
}

void WeightLoader::ReadInto(const WeightStorage& storage, const at::Tensor& tensor) {
  CheckGroupIndex(checkpoint_, storage);
  bytes_read_ += storage.bytes();
  if (uploader_) {
    uploader_->Ask(storage, tensor, in_order_);
    return;
  }
  std::vector<at::Tensor> parts;
  for (const WeightPart& part : storage.parts) {
    const Bytes data = checkpoint_.tensor(part.name).data.subspan(part.begin, part.size);
    const at::ScalarType stored = PartScalarType(part.dtype, part.name);
    parts.push_back(storage.plain() ? tensor : at::empty(part.shape, stored));
    OnCpu(data, stored, parts.back());
    checkpoint_.Release(part.name);
  }
  if (in_order_) checkpoint_.turns()->Reach(PlaceOf(checkpoint_, storage));
  if (!storage.plain()) Dequantize(storage, parts, tensor);
}

// Assigns each tensor, the largest first, to the reader that has the least to read. Reads those of
// this rank.
void WeightLoader::ReadOwnPart() {
  std::ranges::stable_sort(asked_, std::greater(),
                           [](const Asked& asked) { return asked.storage.bytes(); });
  std::vector<uint64_t> bytes(readers_.size(), 0);
  for (const auto& [tensor, storage] : std::exchange(asked_, {})) {
    const auto least = std::ranges::min_element(bytes);
    *least += storage.bytes();
    const int reader = readers_[static_cast<size_t>(least - bytes.begin())];
    if (reader == rank_) ReadInto(storage, tensor);
    if (tensor.numel() > 0) shared_.push_back({tensor, reader});
  }
}

uint64_t WeightLoader::direct_bytes() const {
  return uploader_ ? uploader_->reader().direct_bytes() : 0;
}

uint64_t WeightLoader::cached_bytes() const {
  return uploader_ ? uploader_->reader().cached_bytes() : 0;
}

void WeightLoader::Finish() {
  ReadOwnPart();
  if (uploader_) uploader_->Finish();
}

}  // namespace oscar
