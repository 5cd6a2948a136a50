// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/bench_timer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "export/cuda/device/cuda_check.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kWarmUpUs = 50'000;  // clocks need milliseconds to rise

double Microseconds(Clock::time_point since) {
  return std::chrono::duration<double, std::micro>(Clock::now() - since).count();
}

struct Stream {
  cudaStream_t stream = nullptr;
  Stream() { OSCAR_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { cudaStreamDestroy(stream); }
  void Wait() const { OSCAR_CUDA_CHECK(cudaStreamSynchronize(stream)); }
};

struct Event {
  cudaEvent_t event = nullptr;
  Event() { OSCAR_CUDA_CHECK(cudaEventCreate(&event)); }
  Event(Event&& other) noexcept : event(std::exchange(other.event, nullptr)) {}
  ~Event() {
    if (event != nullptr) cudaEventDestroy(event);
  }
};

class Graph {
 public:
  // Captures the launches that `record` makes on the stream.
  Graph(const Stream& stream, const std::function<void()>& record) {
    // The mode is relaxed, because a library may query its memory during the capture.
    OSCAR_CUDA_CHECK(cudaStreamBeginCapture(stream.stream, cudaStreamCaptureModeRelaxed));
    cudaGraph_t graph = nullptr;
    try {
      record();
    } catch (...) {
      cudaStreamEndCapture(stream.stream, &graph);
      if (graph != nullptr) cudaGraphDestroy(graph);
      throw;
    }
    OSCAR_CUDA_CHECK(cudaStreamEndCapture(stream.stream, &graph));
    const cudaError_t status = cudaGraphInstantiate(&exec_, graph, 0);
    cudaGraphDestroy(graph);
    OSCAR_CUDA_CHECK(status);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() { cudaGraphExecDestroy(exec_); }

  void Launch(const Stream& stream) const {
    OSCAR_CUDA_CHECK(cudaGraphLaunch(exec_, stream.stream));
  }

 private:
  cudaGraphExec_t exec_ = nullptr;
};

// Times `body` between two events. With `idle`, each sample starts on an idle device; otherwise all
// samples are queued at once.
std::vector<double> EventSamples(const Stream& stream, int samples, bool idle,
                                 const std::function<void()>& body) {
  std::vector<Event> begin(static_cast<size_t>(samples)), end(static_cast<size_t>(samples));
  for (size_t i = 0; i < begin.size(); ++i) {
    OSCAR_CUDA_CHECK(cudaEventRecord(begin[i].event, stream.stream));
    body();
    OSCAR_CUDA_CHECK(cudaEventRecord(end[i].event, stream.stream));
    if (idle) stream.Wait();
  }
  stream.Wait();
  std::vector<double> us;
  for (size_t i = 0; i < begin.size(); ++i) {
    float ms = 0;
    OSCAR_CUDA_CHECK(cudaEventElapsedTime(&ms, begin[i].event, end[i].event));
    us.push_back(1000.0 * ms);
  }
  return us;
}

BenchSummary PerLaunch(std::vector<double> us, int launches) {
  for (double& value : us) value /= launches;
  return Summarize(std::move(us));
}

}  // namespace

BenchSummary Summarize(std::vector<double> us) {
  OSCAR_CHECK(!us.empty());
  std::ranges::sort(us);
  const auto rank = [&](double fraction) {
    const double place = std::ceil(fraction * static_cast<double>(us.size()));
    return us[static_cast<size_t>(std::max(place, 1.0)) - 1];
  };
  return {.median = rank(0.5),
          .p10 = rank(0.1),
          .p90 = rank(0.9),
          .min = us.front(),
          .samples = static_cast<int>(us.size())};
}

int SamplesFor(double launch_us, int samples) {
  if (launch_us <= kLongLaunchUs) return samples;
  return std::min(samples, std::max(kFewSamples, samples / 5));
}

BenchTiming TimeCase(const BenchCase& bench, int samples) {
  OSCAR_CHECK(bench.buffers > 0);
  const Stream stream;
  const auto launch_all = [&] {
    for (int set = 0; set < bench.buffers; ++set) bench.launch(stream.stream, set);
  };
  launch_all();  // loads code and fills the caches of libraries
  stream.Wait();
  auto began = Clock::now();
  launch_all();
  stream.Wait();
  const int count = SamplesFor(Microseconds(began) / bench.buffers, samples);

  BenchTiming timing;
  timing.eager = PerLaunch(EventSamples(stream, count, true, launch_all), bench.buffers);
  if (!bench.graph) return timing;
  const Graph graph(stream, launch_all);
  for (began = Clock::now(); Microseconds(began) < kWarmUpUs;) {
    graph.Launch(stream);
    stream.Wait();
  }
  timing.graph =
      PerLaunch(EventSamples(stream, count, false, [&] { graph.Launch(stream); }), bench.buffers);
  return timing;  // the following check sees what the replays wrote
}

}  // namespace oscar
