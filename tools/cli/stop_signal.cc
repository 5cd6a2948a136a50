// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/stop_signal.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

// These are globals, because a signal handler receives no pointer of ours.
std::atomic<int> g_signals{0};
std::atomic<bool> g_installed{false};
char g_notice[500];
size_t g_notice_size = 0;  // bytes
static_assert(std::atomic<int>::is_always_lock_free, "a handler must not take a lock");

void OnSignal(int signal) {
  const int saved_errno = errno;
  if (g_signals.fetch_add(1) == 0) {
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, g_notice, g_notice_size);
  } else {
    // Takes effect when this handler returns: the signal ends the process, as its parent expects.
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
  errno = saved_errno;
}

}  // namespace

StopSignal::StopSignal(std::string_view notice) {
  OSCAR_CHECK(!g_installed.exchange(true));
  g_signals = 0;
  g_notice_size = std::min(notice.size(), sizeof(g_notice));
  std::copy_n(notice.data(), g_notice_size, g_notice);
  struct sigaction action {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART;  // a read in progress continues
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &old_interrupt_);
  sigaction(SIGTERM, &action, &old_terminate_);
}

StopSignal::~StopSignal() {
  sigaction(SIGINT, &old_interrupt_, nullptr);
  sigaction(SIGTERM, &old_terminate_, nullptr);
  g_installed = false;
}

bool StopSignal::requested() const { return g_signals > 0; }

void StopSignal::ThrowIfRequested(const std::string& done) const {
  if (requested()) throw Interrupted("interrupted: " + done);
}

}  // namespace oscar
