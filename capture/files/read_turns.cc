// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/files/read_turns.h"

#include <algorithm>

#include "linalg/base/error.h"

namespace oscar {
namespace {

// How long the disk must be idle before the background may read. Between two parts of a model it is
// idle for a few milliseconds, too short to be worth a seek.
constexpr std::chrono::milliseconds kPause{20};

}  // namespace

ReadTurns::Urgent::Urgent(ReadTurns& turns) : turns_(turns) {
  const std::scoped_lock lock(turns_.mutex_);
  ++turns_.urgent_;
}

ReadTurns::Urgent::~Urgent() {
  {
    const std::scoped_lock lock(turns_.mutex_);
    --turns_.urgent_;
    turns_.last_urgent_ = std::chrono::steady_clock::now();
  }
  turns_.changed_.notify_all();
}

void ReadTurns::SetLead(double share) {
  const std::scoped_lock lock(mutex_);
  lead_ = share;
}

void ReadTurns::Reach(double share) {
  {
    const std::scoped_lock lock(mutex_);
    reached_ = std::max(reached_, share);
  }
  changed_.notify_all();
}

void ReadTurns::WaitForTurn(double share) {
  std::unique_lock lock(mutex_);
  while (!closed_) {
    if (urgent_ > 0 || share > reached_ + lead_) {
      changed_.wait(lock);
      continue;
    }
    const auto turn = last_urgent_ + kPause;
    if (std::chrono::steady_clock::now() >= turn) return;
    changed_.wait_until(lock, turn);
  }
  throw Interrupted("reading in the background was stopped because it is not needed anymore");
}

void ReadTurns::Close() {
  {
    const std::scoped_lock lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

}  // namespace oscar
