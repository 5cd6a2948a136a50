// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/ranks/rank_watch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <mutex>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

namespace oscar {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kBeat{250};
constexpr double kComputed = 0.005;            // seconds of a processor that are a step forward
constexpr std::chrono::seconds kSuspected{3};  // of silence, where a peer has lost somebody
constexpr std::chrono::seconds kAllHeard{10};  // after which it was the network, not a rank
constexpr std::chrono::seconds kLeaving{2};    // at most, until all others have left

constexpr const char* kEnd = "end";
constexpr const char* kSuspicion = "suspicion";
std::string BeatKey(int rank) { return fmt::format("beat/{}", rank); }
std::string LeftKey(int rank) { return fmt::format("left/{}", rank); }

std::string HostName() {
  char name[256] = "?";
  gethostname(name, sizeof(name) - 1);
  return name;
}

// Of this process, but for this thread.
double CpuSecondsOfOthers() {
  const auto seconds = [](clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  return seconds(CLOCK_PROCESS_CPUTIME_ID) - seconds(CLOCK_THREAD_CPUTIME_ID);
}

// What one rank says of itself: "<beat> <steps> <waits> <done> <host> <where>".
struct Beat {
  int64_t beat = -1, steps = 0;
  bool waits = false, done = false;
  std::string host = "?", where;

  std::string Text() const {
    return fmt::format("{} {} {:d} {:d} {} {}", beat, steps, waits, done, host, where);
  }
  static Beat Of(const std::string& text) {
    Beat beat;
    std::istringstream stream(text);
    stream >> beat.beat >> beat.steps >> beat.waits >> beat.done >> beat.host;
    std::getline(stream >> std::ws, beat.where);
    return beat;
  }
};

// What is known of a rank, and since when.
struct Seen {
  Beat last;
  Clock::time_point heard = Clock::now(), got_on = Clock::now();
};

}  // namespace

struct RankWatch::Impl {
  RankPlace place;
  std::chrono::milliseconds timeout;
  Words words;
  std::function<void(const End&)> report;

  std::mutex mutex;  // of what follows
  std::condition_variable changed;
  Beat own;
  int waits = 0;
  bool done = false;
  std::atomic<int64_t> ticks = 0;

  std::vector<Seen> seen;
  std::thread thread;

  void Run();
  void Judge();
  void CheckRank(int rank, bool suspected);
  std::string NameOf(int rank, const Beat& beat) const;
  void Say(const End& end) {
    words.set(kEnd, fmt::format("{}\n{}", static_cast<int>(end.exit_code), end.message));
  }
  void AwaitOthers(bool have_failed) const;
  [[noreturn]] void Leave(ExitCode code) const { _exit(static_cast<int>(code)); }
};

RankWatch::RankWatch(const RankPlace& place, std::chrono::milliseconds timeout, Words words,
                     std::function<void(const End&)> report)
    : impl_(std::make_unique<Impl>()) {
  impl_->place = place;
  impl_->timeout = timeout;
  impl_->words = std::move(words);
  impl_->report = std::move(report);
  impl_->own.host = HostName();
  impl_->own.where = "the start";
  impl_->seen.resize(static_cast<size_t>(place.size));
  impl_->thread = std::thread([this] { impl_->Run(); });
}

// The words of all stand at rank 0.
RankWatch::~RankWatch() {
  if (impl_->place.rank == 0 && !impl_->done) impl_->AwaitOthers(/*have_failed=*/false);
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->done = true;
  }
  impl_->changed.notify_all();
  impl_->thread.join();
}

void RankWatch::At(const std::string& where) {
  Tick();
  const std::lock_guard lock(impl_->mutex);
  impl_->own.where = where;
}

void RankWatch::Tick() { ++impl_->ticks; }

void RankWatch::BeginWait() {
  const std::lock_guard lock(impl_->mutex);
  ++impl_->waits;
}

void RankWatch::EndWait() {
  Tick();
  const std::lock_guard lock(impl_->mutex);
  --impl_->waits;
}

// A rank gets on where its main thread says so, or where it computes, however slowly: on a machine
// that is busy with other things it may be given little.
void RankWatch::Impl::Run() {
  int64_t told = 0;
  double cpu = CpuSecondsOfOthers();
  try {
    while (true) {
      Beat beat;
      {
        std::unique_lock lock(mutex);
        changed.wait_for(lock, kBeat, [&] { return done; });
        const int64_t at = ticks;
        const double now = CpuSecondsOfOthers();
        if (at != told || now - cpu > kComputed) {
          ++own.steps;
          told = at;
          cpu = now;
        }
        ++own.beat;
        own.waits = waits > 0;
        own.done = done;
        beat = own;
      }
      words.set(BeatKey(place.rank), beat.Text());
      if (beat.done) return;
      if (const auto end = words.find(kEnd)) {
        const size_t line = end->find('\n');
        const auto code = static_cast<ExitCode>(std::atoi(end->c_str()));
        if (place.rank == 0) {
          report({code, end->substr(line + 1)});
          AwaitOthers(/*have_failed=*/true);
        } else {
          words.set(LeftKey(place.rank), "");
        }
        Leave(code);
      }
      Judge();
    }
  } catch (const std::exception&) {
    {
      const std::lock_guard lock(mutex);
      if (done) return;
    }
    // Who started us sees what has become of rank 0.
    if (place.launcher != "oscar" && place.rank != 0) {
      report(
          {ExitCode::kResources, fmt::format("rank 0 at {} port {} is lost: it was killed, or its "
                                             "machine is gone",
                                             place.address, place.port)});
    }
    Leave(ExitCode::kResources);
  }
}

// Rank 0 judges all, and rank 1 judges rank 0.
void RankWatch::Impl::Judge() {
  if (place.rank > 1) return;
  const bool suspected = words.find(kSuspicion).has_value();
  if (place.rank == 1) {
    CheckRank(0, suspected);
    return;
  }
  for (int rank = 0; rank < place.size; ++rank) CheckRank(rank, suspected);
}

void RankWatch::Impl::CheckRank(int rank, bool suspected) {
  Seen& of_rank = seen[static_cast<size_t>(rank)];
  const Clock::time_point now = Clock::now();
  if (const auto text = words.find(BeatKey(rank))) {
    Beat beat = Beat::Of(*text);
    if (beat.beat != of_rank.last.beat) of_rank.heard = now;
    if (beat.steps != of_rank.last.steps || beat.waits) of_rank.got_on = now;
    of_rank.last = std::move(beat);
  }
  if (of_rank.last.done) return;
  const auto seconds = [](auto time) {
    return std::chrono::duration_cast<std::chrono::seconds>(time).count();
  };
  const std::string who = NameOf(rank, of_rank.last);
  End end;
  const auto silent = now - of_rank.heard;
  const auto limit = suspected ? std::min<std::chrono::milliseconds>(timeout, kSuspected) : timeout;
  if (silent > limit) {
    end.message = fmt::format(
        "{} has given no sign of life for {} s: it was killed or stopped, or its "
        "machine is gone",
        who, seconds(silent));
  } else if (now - of_rank.got_on > timeout) {
    end.message = fmt::format(
        "{} makes no progress for {} s (--rank-timeout), and the others wait "
        "for it",
        who, seconds(now - of_rank.got_on));
  } else {
    return;
  }
  Say(end);
  if (place.rank == 0) return;  // and reads it next
  report(end);
  Leave(end.exit_code);
}

std::string RankWatch::Impl::NameOf(int rank, const Beat& beat) const {
  return fmt::format("rank {} of {} on {}, at {},", rank, place.size, beat.host,
                     beat.where.empty() ? "the start" : beat.where);
}

void RankWatch::Impl::AwaitOthers(bool have_failed) const {
  const Clock::time_point begin = Clock::now();
  const auto gone = [&](int rank) {
    if (have_failed && words.find(LeftKey(rank))) return true;
    const auto beat = words.find(BeatKey(rank));
    return beat && Beat::Of(*beat).done;
  };
  for (int rank = 1; rank < place.size; ++rank) {
    while (Clock::now() - begin < kLeaving && !gone(rank))
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

void RankWatch::Fail(ExitCode exit_code, const std::string& cause) {
  Impl& impl = *impl_;
  std::string who;
  {
    const std::lock_guard lock(impl.mutex);
    who = impl.NameOf(impl.place.rank, impl.own);
    if (impl.place.rank == 0) impl.done = true;  // what it will read is its own
  }
  try {
    impl.Say({exit_code, fmt::format("{}: {}", who.substr(0, who.size() - 1), cause)});
    if (impl.place.rank == 0) {
      impl.AwaitOthers(/*have_failed=*/true);
      return;
    }
    impl.words.set(LeftKey(impl.place.rank), "");
  } catch (const std::exception&) {  // nobody hears it
    if (impl.place.rank == 0) return;
    impl.report({exit_code, cause});
  }
  impl.Leave(exit_code);
}

void RankWatch::AwaitEnd(const std::string& symptom) {
  BeginWait();
  try {
    impl_->words.set(kSuspicion, "");
    std::this_thread::sleep_for(std::min<std::chrono::milliseconds>(impl_->timeout, kAllHeard) +
                                std::chrono::seconds(5));
  } catch (const std::exception&) {
    std::this_thread::sleep_for(kSuspected);  // the thread says it
  }
  impl_->report({ExitCode::kResources, symptom});
  impl_->Leave(ExitCode::kResources);
}

}  // namespace oscar
