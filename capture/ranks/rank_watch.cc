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
// A rank makes progress if, since its last step, it has used kComputed seconds of processor time
// and the share kShare of the elapsed time. Threads that only wait use a tenth of that share. After
// a virtual machine was suspended, the lost time counts as processor time of the running thread.
constexpr double kComputed = 0.1, kShare = 0.02;  // seconds; share of one processor
constexpr std::chrono::seconds kSuspected{3};     // longest silence after a rank has lost a peer
constexpr std::chrono::seconds kAllHeard{10};     // if no rank is lost by then, the network failed
constexpr std::chrono::seconds kLeaving{2};       // longest wait for all others to leave
constexpr std::chrono::seconds kFinishing{5};     // the same if no rank has failed
constexpr std::chrono::milliseconds kLook{20};    // between two reads of a key

constexpr const char* kEnd = "end";
constexpr const char* kSuspicion = "suspicion";
constexpr const char* kFinished = "finished";
std::string BeatKey(int rank) { return fmt::format("beat/{}", rank); }
std::string LeftKey(int rank) { return fmt::format("left/{}", rank); }

std::string HostName() {
  char name[256] = "?";
  gethostname(name, sizeof(name) - 1);
  return name;
}

double ProcessorSeconds(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Returns the CPU-time clock of a thread, given its kernel id. clock_getcpuclockid computes a
// process's clock in the same way, but without the thread flag.
clockid_t ClockOf(pid_t thread) {
  constexpr int kOfAThread = 4, kScheduled = 2;
  return static_cast<clockid_t>((~static_cast<unsigned>(thread) << 3) | kOfAThread | kScheduled);
}

// Returns the processor time of this process, without this thread and those that answer other
// ranks.
double ComputedSeconds(const std::vector<pid_t>& servers) {
  double seconds =
      ProcessorSeconds(CLOCK_PROCESS_CPUTIME_ID) - ProcessorSeconds(CLOCK_THREAD_CPUTIME_ID);
  for (const pid_t server : servers) seconds -= ProcessorSeconds(ClockOf(server));
  return seconds;
}

// A rank's own report: "<beat> <steps> <waits> <done> <host> <where>".
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

// The last report of a rank, and its times.
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

  std::mutex mutex;  // guards the members below
  std::condition_variable changed;
  Beat own;
  int waits = 0;
  bool done = false;  // this rank has finished and is no longer checked
  bool over = false, joined = false;
  Clock::time_point answered = Clock::now();  // the store's last answer
  std::atomic<int64_t> ticks = 0;

  std::vector<Seen> seen;
  std::thread thread, guard;

  void Run();
  void Guard();
  void Judge();
  void CheckRank(int rank, bool suspected);
  std::string NameOf(int rank, const Beat& beat) const;
  void Say(const End& end) {
    words.set(kEnd, fmt::format("{}\n{}", static_cast<int>(end.exit_code), end.message));
  }
  void AwaitOthers(std::chrono::seconds patience) const;
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
  if (place.rank != 0) impl_->guard = std::thread([this] { impl_->Guard(); });
}

// Rank 0 leaves last, because it usually owns the store of all words. The other ranks watch it
// until it has finished.
RankWatch::~RankWatch() {
  const auto tell = [&](bool Impl::*what) {
    const std::lock_guard lock(impl_->mutex);
    (*impl_).*what = true;
    impl_->changed.notify_all();
  };
  if (impl_->place.rank != 0) {
    tell(&Impl::done);
    try {
      while (!impl_->words.find(kFinished)) std::this_thread::sleep_for(kLook);
      impl_->words.set(LeftKey(impl_->place.rank), "");
    } catch (const std::exception&) {  // the watch thread fails too, and leaves
      std::this_thread::sleep_for(kSuspected);
    }
  } else if (!impl_->over) {
    try {
      impl_->words.set(kFinished, "");
      impl_->AwaitOthers(kFinishing);
    } catch (const std::exception&) {  // the launcher owns the store; nobody waits any more
    }
  }
  tell(&Impl::over);
  impl_->thread.join();
  tell(&Impl::joined);
  if (impl_->guard.joinable()) impl_->guard.join();
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

// Sends this rank's reports until the job ends. A rank makes progress if its main thread calls
// Tick(), or if it uses processor time: even a little is enough, because the machine may be busy.
void RankWatch::Impl::Run() {
  int64_t told = 0;
  double cpu = ComputedSeconds(words.servers);
  Clock::time_point then = Clock::now();
  try {
    while (true) {
      Beat beat;
      bool last = false;
      {
        std::unique_lock lock(mutex);
        changed.wait_for(lock, kBeat, [&] { return over; });
        last = over;
        const int64_t at = ticks;
        const double now = ComputedSeconds(words.servers);
        answered = Clock::now();
        const std::chrono::duration<double> passed = answered - then;
        if (at != told || now - cpu > std::max(kComputed, kShare * passed.count())) {
          ++own.steps;
          told = at;
          cpu = now;
          then = answered;
        }
        ++own.beat;
        own.waits = waits > 0;
        own.done = done;
        beat = own;
      }
      words.set(BeatKey(place.rank), beat.Text());
      if (last) return;
      if (const auto end = words.find(kEnd)) {
        const size_t line = end->find('\n');
        const auto code = static_cast<ExitCode>(std::atoi(end->c_str()));
        if (place.rank == 0) {
          report({code, end->substr(line + 1)});
          AwaitOthers(kLeaving);
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
      if (over) return;
    }
    // Our own launcher reports the end of rank 0. With other launchers, rank 1 does.
    if (place.launcher != "oscar" && place.rank == 1) {
      report({ExitCode::kResources,
              fmt::format("rank 0 at {} port {} is lost; it was killed, or its machine is down",
                          place.address, place.port)});
    }
    Leave(ExitCode::kResources);
  }
}

// Ends this process if the store does not answer: c10d waits without a limit, so a stopped rank 0
// would block the watch thread.
void RankWatch::Impl::Guard() {
  std::unique_lock lock(mutex);
  while (!changed.wait_for(lock, kBeat, [&] { return joined; })) {
    const auto silent = Clock::now() - answered;
    if (silent <= timeout) continue;
    if (place.rank == 1) {
      report({ExitCode::kResources,
              fmt::format("rank 0 at {} port {} has not answered for {} s; it was stopped, or its "
                          "machine is down",
                          place.address, place.port,
                          std::chrono::duration_cast<std::chrono::seconds>(silent).count())});
    }
    Leave(ExitCode::kResources);
  }
}

// Checks reports: rank 0 checks those of all ranks, and rank 1 those of rank 0.
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
  bool hears = false;
  const auto silent = now - of_rank.heard;
  const auto limit = suspected ? std::min<std::chrono::milliseconds>(timeout, kSuspected) : timeout;
  if (silent > limit) {
    end.message = fmt::format(
        "{} has not responded for {} s; it was killed or stopped, or its machine is down", who,
        seconds(silent));
  } else if (now - of_rank.got_on > timeout) {
    hears = true;
    end.message = fmt::format(
        "{} has made no progress for {} s (--rank-timeout), and the others are waiting for it", who,
        seconds(now - of_rank.got_on));
  } else {
    return;
  }
  Say(end);
  if (place.rank == 0 || hears) return;  // rank 0 reads and reports it next
  report(end);
  Leave(end.exit_code);
}

std::string RankWatch::Impl::NameOf(int rank, const Beat& beat) const {
  return fmt::format("rank {} of {} on {}, at {},", rank, place.size, beat.host,
                     beat.where.empty() ? "the start" : beat.where);
}

void RankWatch::Impl::AwaitOthers(std::chrono::seconds patience) const {
  const Clock::time_point begin = Clock::now();
  for (int rank = 1; rank < place.size; ++rank) {
    while (Clock::now() - begin < patience && !words.find(LeftKey(rank)))
      std::this_thread::sleep_for(kLook);
  }
}

void RankWatch::Fail(ExitCode exit_code, const std::string& cause) {
  Impl& impl = *impl_;
  std::string who;
  {
    const std::lock_guard lock(impl.mutex);
    who = impl.NameOf(impl.place.rank, impl.own);
    if (impl.place.rank == 0) impl.over = true;  // rank 0 reads its own verdict
  }
  try {
    impl.Say({exit_code, fmt::format("{}: {}", who.substr(0, who.size() - 1), cause)});
    if (impl.place.rank == 0) {
      impl.AwaitOthers(kLeaving);
      return;
    }
    impl.words.set(LeftKey(impl.place.rank), "");
  } catch (const std::exception&) {  // nobody would receive it
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
    std::this_thread::sleep_for(kSuspected);  // the watch thread reports it
  }
  impl_->report({ExitCode::kResources, symptom});
  impl_->Leave(ExitCode::kResources);
}

}  // namespace oscar
