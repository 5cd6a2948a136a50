// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/weight_loader.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>

#include "capture/model/device.h"
#include "linalg/check.h"

namespace oscar {
namespace {

using Bytes = std::span<const std::byte>;

// from_blob takes no const; what it makes here is only read.
at::Tensor Borrow(const std::byte* data, at::IntArrayRef shape, at::ScalarType dtype) {
  return at::from_blob(const_cast<std::byte*>(data), shape, dtype);
}

// Small steps, which LibTorch does not spread over threads: the other cores belong to the layer
// that computes meanwhile.
at::Tensor OnCpu(Bytes data, at::IntArrayRef shape, at::ScalarType stored, at::ScalarType dtype) {
  constexpr int64_t kStep = 16384;  // values
  const at::Tensor result = at::empty(shape, dtype), flat = result.view({-1});
  const at::Tensor step = at::empty({kStep}, stored);
  const size_t value_bytes = c10::elementSize(stored);
  OSCAR_CHECK_EQ(static_cast<size_t>(flat.numel()) * value_bytes, data.size());
  for (int64_t begin = 0; begin < flat.numel(); begin += kStep) {
    const int64_t count = std::min(kStep, flat.numel() - begin);
    // Mapped data need not be aligned for its type.
    std::memcpy(step.data_ptr(), data.data() + static_cast<size_t>(begin) * value_bytes,
                static_cast<size_t>(count) * value_bytes);
    flat.narrow(0, begin, count).copy_(step.narrow(0, 0, count));
  }
  return result;
}

}  // namespace

class WeightLoader::Uploader {
 public:
  explicit Uploader(at::Device device)
      : implementation_(device.type()),
        compute_stream_(implementation_.getStream(device)),
        stream_(implementation_.getStreamFromGlobalPool(device)) {
    for (Piece& piece : pieces_) {
      piece.pinned =
          at::empty({kPinnedPieceBytes}, at::TensorOptions().dtype(at::kByte).pinned_memory(true));
      piece.copied.emplace(device.type());
    }
  }

  at::Tensor Upload(Bytes data, at::IntArrayRef shape, at::ScalarType stored,
                    at::ScalarType dtype) {
    const c10::StreamGuard guard(stream_);
    const at::Tensor raw =
        at::empty(shape, at::TensorOptions().dtype(stored).device(stream_.device()));
    const at::Tensor raw_bytes = raw.view({-1}).view(at::kByte);
    const int64_t size = static_cast<int64_t>(data.size());
    OSCAR_CHECK_EQ(raw_bytes.numel(), size);
    for (int64_t begin = 0; begin < size; begin += kPinnedPieceBytes, turn_ = 1 - turn_) {
      const int64_t count = std::min(kPinnedPieceBytes, size - begin);
      Piece& piece = pieces_[turn_];
      piece.copied->synchronize();
      const at::Tensor pinned = piece.pinned.narrow(0, 0, count);
      pinned.copy_(Borrow(data.data() + begin, {count}, at::kByte));
      raw_bytes.narrow(0, begin, count).copy_(pinned, /*non_blocking=*/true);
      piece.copied->record(stream_);
    }
    at::Tensor result = raw.to(dtype);
    result.record_stream(compute_stream_);
    return result;
  }

  void Finish() { stream_.synchronize(); }

 private:
  struct Piece {
    at::Tensor pinned;                 // [kPinnedPieceBytes] bytes
    std::optional<c10::Event> copied;  // out of it, the last time
  };
  c10::impl::VirtualGuardImpl implementation_;
  c10::Stream compute_stream_, stream_;
  Piece pieces_[2];
  size_t turn_ = 0;
};

WeightLoader::WeightLoader(const Checkpoint& checkpoint, const WeightTarget& target)
    : checkpoint_(checkpoint), target_(target) {
  if (!target.device.is_cpu()) uploader_ = std::make_unique<Uploader>(target.device);
}

WeightLoader::~WeightLoader() = default;

at::Tensor WeightLoader::Load(const std::string& name) {
  const TensorView view = checkpoint_.tensor(name);
  const at::ScalarType stored = ToScalarType(view.dtype, name);
  at::Tensor result = uploader_ ? uploader_->Upload(view.data, view.shape, stored, target_.dtype)
                                : OnCpu(view.data, view.shape, stored, target_.dtype);
  checkpoint_.Release(name);
  return result;
}

at::Tensor WeightLoader::LoadRows(const std::string& name, int64_t begin, int64_t end) {
  const TensorView view = checkpoint_.tensor(name);
  OSCAR_CHECK_EQ(view.shape.size(), size_t{2});
  OSCAR_CHECK(begin >= 0 && begin <= end && end <= view.shape[0]);
  const size_t row_bytes = view.data.size() / static_cast<size_t>(view.shape[0]);
  const Bytes rows = view.data.subspan(static_cast<size_t>(begin) * row_bytes,
                                       static_cast<size_t>(end - begin) * row_bytes);
  const int64_t shape[] = {end - begin, view.shape[1]};
  const at::ScalarType stored = ToScalarType(view.dtype, name);
  at::Tensor result = uploader_ ? uploader_->Upload(rows, shape, stored, target_.dtype)
                                : OnCpu(rows, shape, stored, target_.dtype);
  checkpoint_.Release(name);
  return result;
}

void WeightLoader::Finish() {
  if (uploader_) uploader_->Finish();
}

}  // namespace oscar
