// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The plain driver, for any compiler. It runs the seeds, the stored inputs of corpus/, and mutated
// inputs that depend only on its arguments. With -seeds=DIRECTORY it writes the first inputs of
// libFuzzer instead: the seeds, and each with single values changed (each.cc).
//   oscar_fuzz [-runs=N] [-seed=S] [-stored=DIRECTORY] [-seeds=DIRECTORY] [HARNESS]...
// Trap: the memory limit counts operator new; a sanitizer has its own.
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <new>
#include <string>

#include "tests/fuzz/fuzz.h"

namespace fs = std::filesystem;

namespace {

constexpr size_t kMaxLiveBytes = size_t{200} << 20;
#if defined(__SANITIZE_ADDRESS__)
constexpr double kMaxSeconds = 20;
#else
constexpr double kMaxSeconds = 2;
#endif

std::atomic<size_t> live_bytes = 0, peak_bytes = 0;

}  // namespace

#if !defined(__SANITIZE_ADDRESS__)
void* operator new(size_t size) {
  void* const memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  live_bytes += malloc_usable_size(memory);
  if (live_bytes > peak_bytes) peak_bytes = live_bytes.load();
  return memory;
}
void operator delete(void* memory) noexcept {
  live_bytes -= malloc_usable_size(memory);
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept { operator delete(memory); }
#endif

namespace oscar::fuzz {
namespace {

double Run(const Harness& harness, const std::string& input) {
  const size_t before = live_bytes;
  peak_bytes = before;
  const std::clock_t begin = std::clock();  // CPU time, because other processes may be running
  RunOne(harness, input);
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  if (seconds > kMaxSeconds)
    Finding(harness.name.data(), 0, fmt::format("{:.1f} s for {} bytes", seconds, input.size()));
  if (peak_bytes - before > kMaxLiveBytes) {
    Finding(harness.name.data(), 0,
            fmt::format("{} bytes of memory for {}", peak_bytes - before, input.size()));
  }
  return seconds;
}

// Writes the current input to the file $OSCAR_FUZZ_KEEP, where it survives a crash.
void Keep(const std::string& input) {
  static const char* const path = std::getenv("OSCAR_FUZZ_KEEP");
  if (path != nullptr) std::ofstream(path, std::ios::binary | std::ios::trunc) << input;
}

// `stored` has a folder of further inputs for each harness, named like the harness.
void RunHarness(const Harness& harness, uint64_t runs, uint64_t seed, const fs::path& stored) {
  std::vector<std::string> inputs = harness.seeds();
  std::vector<fs::path> files;
  if (!stored.empty() && fs::exists(stored / harness.name)) {
    for (const auto& entry : fs::directory_iterator(stored / harness.name))
      files.push_back(entry.path());
  }
  std::ranges::sort(files);
  size_t refused_seeds = 0;
  for (const std::string& input : inputs) {
    try {
      harness.run(input);
    } catch (const Error& error) {
      ++refused_seeds;
      if (!kCampaign)
        std::fprintf(stderr, "%s: a seed is refused: %s\n", harness.name.data(), error.what());
    }
  }
  if (refused_seeds > 0 && !kCampaign) Finding(harness.name.data(), 0, "seeds are valid");
  for (const fs::path& file : files) inputs.push_back(ReadAll(file));
  double slowest = 0;
  for (const std::string& input : inputs) slowest = std::max(slowest, Run(harness, input));
  Random random(seed);
  runs = (runs + harness.slowness - 1) / harness.slowness;
  for (uint64_t i = 0; i < runs; ++i) {
    std::string input = inputs[random() % inputs.size()];
    for (size_t rounds = 1 + random() % 2; rounds > 0; --rounds) {
      if (random() % 8 == 0) {
        const std::string spliced = harness.splice(input, inputs[random() % inputs.size()], random);
        if (!spliced.empty()) {
          input = spliced;
          continue;
        }
      }
      input = harness.mutate != nullptr && random() % 4 != 0
                  ? harness.mutate(input, random)
                  : MutateBytes(input, harness.max_bytes, random);
    }
    Keep(input);
    slowest = std::max(slowest, Run(harness, input));
  }
  std::printf("%-14s %3zu seeds and stored inputs, %llu mutated, slowest %.3f s\n",
              harness.name.data(), inputs.size(), static_cast<unsigned long long>(runs), slowest);
  std::fflush(stdout);
}

}  // namespace
}  // namespace oscar::fuzz

int main(int argc, char** argv) {
  using namespace oscar::fuzz;
  uint64_t runs = 0, seed = 1;
  fs::path seeds, stored = fs::path(OSCAR_SOURCE_DIR) / "tests/fuzz/corpus";
  std::vector<std::string> names;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.starts_with("-runs=")) {
      runs = std::stoull(argument.substr(6));
    } else if (argument.starts_with("-seed=")) {
      seed = std::stoull(argument.substr(6));
    } else if (argument.starts_with("-stored=")) {
      stored = argument.substr(8);
    } else if (argument == "-names") {
      for (const Harness* harness : AllHarnesses()) std::puts(harness->name.data());
      return 0;
    } else if (argument.starts_with("-seeds=")) {
      seeds = argument.substr(7);
    } else {
      names.push_back(argument);
    }
  }
  for (const Harness* harness : AllHarnesses()) {
    const auto named = std::ranges::find(names, harness->name);
    if (!names.empty() && named == names.end()) continue;
    if (seeds.empty()) {
      RunHarness(*harness, runs, seed, stored);
      continue;
    }
    const fs::path folder = seeds / harness->name;
    fs::create_directories(folder);
    const auto write = [&](const std::string& name, const std::string& input) {
      std::ofstream(folder / name, std::ios::binary) << input;
    };
    const auto write_all = [&](const std::string& prefix, const std::vector<std::string>& inputs) {
      for (size_t i = 0; i < inputs.size(); ++i) write(fmt::format("{}-{}", prefix, i), inputs[i]);
    };
    const auto inputs = harness->seeds();
    const auto members = oscar::fuzz::MembersOf(inputs);
    write_all("seed", inputs);
    for (size_t i = 0; i < inputs.size(); ++i) {
      write_all(fmt::format("seed-{}", i), oscar::fuzz::ChangeEach(inputs[i]));
      write_all(fmt::format("added-{}", i), oscar::fuzz::AddEach(inputs[i], members));
    }
    if (!inputs.empty()) write_all("spelled", oscar::fuzz::SpellEach(inputs[0]));
  }
  return 0;
}
