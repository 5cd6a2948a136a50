// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Longer than 400 lines because all uses of c10d, and their absence, share one interface.
#include "capture/ranks/rank_group.h"

#ifdef OSCAR_C10D
// ProcessGroupGloo.hpp uses types of Gloo, whose headers the torch wheel lacks, so gloo_names.h
// declares them. ProcessGroupGloo.hpp only holds pointers to them, so objects made here have the
// layout with which LibTorch was built; CMakeLists.txt refuses a header that uses them in another
// way. Nothing here creates, copies or calls one of these types.
#define USE_C10D_GLOO
#include <ATen/ATen.h>

#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#endif

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <map>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>
#include <type_traits>
#include <utility>

#include "capture/gpu/gpu_module.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace oscar {

#ifdef OSCAR_C10D

namespace {

// RankWatch detects ranks that hang, so no wait for other ranks has a timeout of its own.
constexpr std::chrono::hours kPatience{24 * 30};
constexpr std::chrono::seconds kReading{3};  // longest wait for another rank to read a value
constexpr const char* kNobodyThere = "the ranks cannot reach each other";

std::string HostName() {
  char name[256] = "?";
  gethostname(name, sizeof(name) - 1);
  return name;
}

std::vector<uint8_t> BytesOf(std::string_view text) { return {text.begin(), text.end()}; }
std::string TextOf(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

// Returns the first line of a message, because LibTorch's errors end with a call stack.
std::string FirstLine(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

// Returns the threads of this process.
std::set<pid_t> Threads() {
  std::set<pid_t> threads;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task"))
    threads.insert(std::stoi(entry.path().filename()));
  return threads;
}

// Silences c10d, which would print a call stack for each retry. We report the outcome ourselves.
void KeepC10dQuiet() {
  setenv("TORCH_CPP_LOG_LEVEL", "FATAL", 0);
  c10::initLogging();
}

// Opens rank 0's store, for which the others wait.
c10::intrusive_ptr<c10d::Store> OpenStore(const RankPlace& place,
                                          std::chrono::milliseconds timeout) {
  KeepC10dQuiet();
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(place.port);
  options.isServer = place.rank == 0 && !place.has_store;
  options.waitWorkers = false;
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    // c10d tries a second time, after a pause of up to 1.6 times the timeout.
    const auto left =
        std::chrono::floor<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    options.timeout = std::max(left / 4, std::chrono::milliseconds(500));
    try {
      return c10::make_intrusive<c10d::TCPStore>(place.address, options);
    } catch (const std::exception& error) {
      const std::string text = FirstLine(error);
      if (options.isServer) {
        throw ResourceError(
            fmt::format("rank 0 cannot open port {} of {}, where the other ranks connect to it: "
                        "{}; set MASTER_PORT to a free port",
                        place.port, place.address, text));
      }
      if (std::chrono::steady_clock::now() < deadline) continue;
      throw ResourceError(
          fmt::format("rank {} on {} cannot reach rank 0 at {} port {} within {} s: {}", place.rank,
                      HostName(), place.address, place.port, timeout.count() / 1000, text));
    }
  }
}

using GlooDevice = std::shared_ptr<gloo::transport::Device>;
static_assert(
    std::is_same_v<decltype(c10d::ProcessGroupGloo::Options::devices), std::vector<GlooDevice>>,
    "this version of LibTorch passes devices to Gloo in another way; use the version in "
    "tools/requirements-libtorch.txt");

// The device owns a thread that polls for messages a hundred times a second.
GlooDevice OpenGlooDevice(const RankPlace& place) {
  if (const char* const interface = std::getenv("GLOO_SOCKET_IFNAME"))
    return c10d::ProcessGroupGloo::createDeviceForInterface(interface, false);
  return place.local_size == place.size
             ? c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1", false)
             : c10d::ProcessGroupGloo::createDefaultDevice(false);
}

c10::intrusive_ptr<c10d::Backend> MakeGloo(const c10::intrusive_ptr<c10d::Store>& store,
                                           const RankPlace& place, const std::string& name,
                                           const GlooDevice& device) {
  auto options = c10d::ProcessGroupGloo::Options::create(kPatience);
  options->devices = {device};
  return c10::make_intrusive<c10d::ProcessGroupGloo>(
      c10::make_intrusive<c10d::PrefixStore>(name, store), place.rank, place.size, options);
}

// Returns an id that is equal for all ranks on a running machine, in containers too.
std::string MachineId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  return std::getline(file, id) ? id : HostName();
}

// Whether the key is set before the deadline.
bool AwaitKey(c10d::Store& store, const std::string& key,
              std::chrono::steady_clock::time_point deadline) {
  while (!store.check({key})) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

// Called in handlers of c10d's exceptions. Throws LostRank if a peer or the store is gone; rethrows
// other failures.
[[noreturn]] void Lost(const std::string& what, const std::exception& error) {
  const std::string text = FirstLine(error);
  std::string lower = text;
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const char* sign : {"connection", "socket", "timed out", "timeout", "broken pipe", "nccl",
                           "unreachable", "network", "closed by peer", "store"}) {
    if (lower.find(sign) != std::string::npos) throw LostRank(fmt::format("{}: {}", what, text));
  }
  throw;
}

// Runs `function` while marking this rank as waiting for others.
template <typename Function>
auto Talk(RankWatch* watch, const std::string& what, const Function& function) {
  struct Waiting {
    explicit Waiting(RankWatch* of) : watch(of) {
      if (watch != nullptr) watch->BeginWait();
    }
    ~Waiting() {
      if (watch != nullptr) watch->EndWait();
    }
    RankWatch* watch;
  };
  const Waiting waiting(watch);
  try {
    return function();
  } catch (const std::exception& error) {
    Lost(what, error);
  }
}

}  // namespace

using Works = std::vector<c10::intrusive_ptr<c10d::Work>>;

struct RankGroup::Impl {
  c10::intrusive_ptr<c10d::Store> store;
  GlooDevice gloo;
  std::vector<pid_t> servers;  // threads of store and channel that answer other ranks
  c10::intrusive_ptr<c10d::Backend> tensors, bytes;
  bool on_cpu = true;
  std::map<int, int> sent, received;  // number of tensors sent and received, by rank; used as tags
  std::mutex issuing;                 // guards the sending of bytes
  std::shared_future<void> ready;     // when the channel of tensors is ready; null: it is

  c10d::Backend& Tensors() const {
    if (ready.valid()) ready.get();
    return *tensors;
  }
  // Calls function(channel, works) and starts all its sends and receives at once. On a GPU, they
  // use the communicator of all ranks, because NCCL would otherwise create one for each pair of
  // ranks.
  template <typename Function>
  Works Pairwise(const Function& function) const {
    c10d::Backend& channel = Tensors();
    Works works;
    if (!on_cpu) channel.startCoalescing();
    function(channel, works);
    if (!on_cpu) works = {channel.endCoalescing()};
    return works;
  }
};

namespace {

// The first calls create NCCL's communicator and load its kernels, which takes seconds.
void WarmUpChannel(c10d::Backend& channel, int size, at::Device device) {
  const at::Tensor own = at::zeros({size, 1}, at::dtype(at::kInt).device(device));
  at::Tensor all = at::empty_like(own), row = own.narrow(0, 0, 1), copy = own.clone();
  std::vector<int64_t> one_each(static_cast<size_t>(size), 1);
  channel._allgather_base(all, row)->wait();
  channel.alltoall_base(all, copy, one_each, one_each)->wait();
  (void)all.cpu();
}

}  // namespace

std::string RankGroup::Missing(at::DeviceType device) {
  if (device == at::kCPU) return "";
  const GpuModule* const gpu = LoadGpuModule();
  return gpu != nullptr && gpu->make_nccl != nullptr
             ? ""
             : "LibTorch's NCCL, or the headers of CUDA and NCCL";
}

RankGroup::RankGroup(const RankPlace& place, std::chrono::milliseconds timeout)
    : place_(place), impl_(std::make_unique<Impl>()) {
  const std::set<pid_t> before = Threads();
  impl_->store = OpenStore(place, timeout);
  if (place.has_store) {  // several runs may use the store in turn
    const char* const run = std::getenv("TORCHELASTIC_RESTART_COUNT");
    impl_->store = c10::make_intrusive<c10d::PrefixStore>(
        fmt::format("oscar/{}", run == nullptr ? "0" : run), impl_->store);
  }
  impl_->store->setTimeout(timeout);
  Join(timeout);
  Talk(nullptr, kNobodyThere, [&] {
    impl_->gloo = OpenGlooDevice(place_);
    impl_->bytes = MakeGloo(impl_->store, place_, "bytes", impl_->gloo);
  });
  std::ranges::set_difference(Threads(), before, std::back_inserter(impl_->servers));
}

RankGroup::RankGroup() : impl_(std::make_unique<Impl>()) {
  impl_->store = c10::make_intrusive<c10d::HashStore>();
}

RankGroup::~RankGroup() {
  watch_.reset();
  // If the channel is still being created, it may wait for ranks that have left, so the wait here
  // is short. The thread that creates the channel keeps it alive.
  if (impl_->ready.valid()) impl_->ready.wait_for(std::chrono::seconds(1));
}

void RankGroup::Join(std::chrono::milliseconds timeout) {
  const auto told = [](int size) { return fmt::format("{} ranks", size); };
  const auto key = [](int rank) { return fmt::format("here/{}", rank); };
  const std::string own = told(size());
  if (rank() == 0) {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    for (int r = 1; r < size(); ++r) {
      if (!AwaitKey(*impl_->store, key(r), deadline)) {
        std::string missing;
        for (int k = 1; k < size(); ++k)
          if (!impl_->store->check({key(k)})) missing += fmt::format(" {}", k);
        throw ResourceError(
            fmt::format("some of {} ranks did not join within {} s; missing ranks:{}", size(),
                        timeout.count() / 1000, missing));
      }
      const std::string says = TextOf(impl_->store->get(key(r)));
      if (says == own) continue;
      impl_->store->set("all", BytesOf(own));
      // This process owns the store, so it waits until the rank with another size has read "all".
      AwaitKey(*impl_->store, fmt::format("read/{}", r),
               std::chrono::steady_clock::now() + kReading);
      throw UsageError(fmt::format(
          "rank {} was started as one of {} ranks, but rank 0 as one of {}", r, says, own));
    }
    impl_->store->set("all", BytesOf(own));
  } else {
    std::string all;
    try {
      impl_->store->set(key(rank()), BytesOf(own));
      impl_->store->wait({"all"}, timeout + std::chrono::seconds(2));
      all = TextOf(impl_->store->get("all"));
      impl_->store->set(fmt::format("read/{}", rank()), BytesOf("1"));
    } catch (const std::exception&) {
      if (all.empty()) {
        throw ResourceError(
            fmt::format("rank {}: not all of {} ranks joined within {} s, or rank 0 has ended",
                        rank(), size(), timeout.count() / 1000));
      }
    }
    if (all != own) {
      throw UsageError(fmt::format(
          "rank {} was started as one of {} ranks, but rank 0 as one of {}", rank(), own, all));
    }
  }
  impl_->store->setTimeout(kPatience);
}

void RankGroup::StartWatch(std::chrono::milliseconds timeout,
                           std::function<void(const RankWatch::End&)> report) {
  const c10::intrusive_ptr<c10d::Store> store = impl_->store->clone();
  store->setTimeout(timeout);
  watch_ = std::make_unique<RankWatch>(
      place_, timeout,
      RankWatch::Words{[store](const std::string& key, const std::string& value) {
                         store->set(key, BytesOf(value));
                       },
                       [store](const std::string& key) {
                         return store->check({key}) ? std::optional(TextOf(store->get(key)))
                                                    : std::nullopt;
                       },
                       impl_->servers},
      std::move(report));
}

void RankGroup::Set(const std::string& key, std::string_view value) const {
  Talk(watch_.get(), "rank 0 is lost", [&] { impl_->store->set(key, BytesOf(value)); });
}

std::string RankGroup::Get(const std::string& key) const {
  return Talk(watch_.get(), "rank 0 is lost", [&] { return TextOf(impl_->store->get(key)); });
}

bool RankGroup::Has(const std::string& key) const {
  return Talk(watch_.get(), "rank 0 is lost", [&] { return impl_->store->check({key}); });
}

void RankGroup::OpenChannel(at::Device device) {
  impl_->on_cpu = device.is_cpu();
  if (impl_->on_cpu) {
    Talk(watch_.get(), kNobodyThere,
         [&] { impl_->tensors = MakeGloo(impl_->store, place_, "tensors", impl_->gloo); });
    return;
  }
  impl_->tensors = LoadGpuModule()->make_nccl(impl_->store, rank(), size());
  std::packaged_task<void()> warm_up([tensors = impl_->tensors, device, size = size()] {
    try {
      WarmUpChannel(*tensors, size, device);
    } catch (const std::exception& error) {
      Lost(kNobodyThere, error);
    }
  });
  impl_->ready = warm_up.get_future().share();
  std::thread(std::move(warm_up)).detach();
}

std::vector<int> RankGroup::ReadersOf(const std::string& files) const {
  const auto key = [](int rank) { return fmt::format("files/{}", rank); };
  const std::string own = MachineId() + '\n' + files;
  Set(key(rank()), own);
  std::vector<int> readers;
  for (int r = 0; r < size(); ++r)
    if (Get(key(r)) == own) readers.push_back(r);
  return readers;
}

void RankGroup::Share(const std::vector<SharedTensor>& tensors, const std::vector<int>& readers) {
  Talk(watch_.get(), "a rank of this machine is lost", [&] {
    const auto share = [&](c10d::Backend& channel, Works& works) {
      for (const auto& [tensor, owner] : tensors) {
        OSCAR_CHECK(tensor.is_contiguous());
        std::vector<at::Tensor> bytes = {tensor.view({-1}).view(at::kByte)};
        if (owner != rank()) works.push_back(channel.recv(bytes, owner, impl_->received[owner]++));
        for (const int to : readers)
          if (owner == rank() && to != owner)
            works.push_back(channel.send(bytes, to, impl_->sent[to]++));
      }
    };
    for (const auto& work : impl_->Pairwise(share)) work->wait();
  });
}

void RankGroup::Send(const at::Tensor& tensor, int to) {
  Talk(watch_.get(), fmt::format("rank {} is lost", to), [&] {
    std::vector<at::Tensor> sent = {tensor.contiguous()};
    const Works works = impl_->Pairwise([&](c10d::Backend& channel, Works& all) {
      all.push_back(channel.send(sent, to, impl_->sent[to]++));
    });
    if (impl_->on_cpu) works[0]->wait();
  });
}

std::function<void()> RankGroup::Receive(const at::Tensor& tensor, int from) {
  OSCAR_CHECK(tensor.is_contiguous());
  std::vector<at::Tensor> received = {tensor};
  const auto what = fmt::format("rank {} is lost", from);
  const auto work = Talk(watch_.get(), what, [&] {
    return impl_->Pairwise([&](c10d::Backend& channel, Works& all) {
      all.push_back(channel.recv(received, from, impl_->received[from]++));
    })[0];
  });
  OSCAR_CHECK(work);
  return [this, work, what] { Talk(watch_.get(), what, [&] { work->wait(); }); };
}

at::Tensor RankGroup::AllGather(const at::Tensor& own) {
  std::vector<int64_t> shape = own.sizes().vec();
  shape.insert(shape.begin(), size());
  at::Tensor all = at::empty(shape, own.options());
  at::Tensor input = own.contiguous().unsqueeze(0);  // the shape that Gloo requires
  Talk(watch_.get(), "a rank is lost",
       [&] { impl_->Tensors()._allgather_base(all, input)->wait(); });
  return all;
}

at::Tensor RankGroup::AllToAll(const at::Tensor& rows, std::vector<int64_t> sent,
                               std::vector<int64_t> received) {
  std::vector<int64_t> shape = rows.sizes().vec();
  shape[0] = std::accumulate(received.begin(), received.end(), int64_t{0});
  at::Tensor all = at::empty(shape, rows.options());
  at::Tensor input = rows.contiguous();
  Talk(watch_.get(), "a rank is lost",
       [&] { impl_->Tensors().alltoall_base(all, input, received, sent)->wait(); });
  return all;
}

void RankGroup::SendBytes(std::string_view bytes, int to, int tag) {
  Talk(watch_.get(), fmt::format("rank {} is lost", to), [&] {
    std::vector<at::Tensor> size = {at::full({1}, std::ssize(bytes), at::kLong)};
    std::vector<at::Tensor> content = {at::empty({std::ssize(bytes)}, at::kByte)};
    std::memcpy(content[0].mutable_data_ptr(), bytes.data(), bytes.size());
    c10::intrusive_ptr<c10d::Work> first, second;
    {
      const std::lock_guard lock(impl_->issuing);
      first = impl_->bytes->send(size, to, 2 * tag);
      second = impl_->bytes->send(content, to, 2 * tag + 1);
    }
    first->wait();
    second->wait();
  });
}

std::string RankGroup::ReceiveBytes(int from, int tag) {
  return Talk(watch_.get(), fmt::format("rank {} is lost", from), [&] {
    const auto receive = [&](const at::Tensor& tensor, int with) {
      std::vector<at::Tensor> to = {tensor};
      c10::intrusive_ptr<c10d::Work> work;
      {
        const std::lock_guard lock(impl_->issuing);
        work = impl_->bytes->recv(to, from, with);
      }
      work->wait();
    };
    const at::Tensor size = at::empty({1}, at::kLong);
    receive(size, 2 * tag);
    std::string bytes(static_cast<size_t>(size.item<int64_t>()), '\0');
    receive(at::from_blob(bytes.data(), {std::ssize(bytes)}, at::kByte), 2 * tag + 1);
    return bytes;
  });
}

#else

struct RankGroup::Impl {
  std::map<std::string, std::string> words;  // for a process that is alone
};

std::string RankGroup::Missing(at::DeviceType) { return "LibTorch's c10d with Gloo"; }
RankGroup::RankGroup(const RankPlace& place, std::chrono::milliseconds) : place_(place) {
  throw ResourceError(
      fmt::format("this is rank {} of {}, but oscar was built with a LibTorch that lacks c10d with "
                  "Gloo; run a single rank, or build with the pinned torch wheel",
                  place.rank, place.size));
}
RankGroup::RankGroup() : impl_(std::make_unique<Impl>()) {}
RankGroup::~RankGroup() = default;
void RankGroup::StartWatch(std::chrono::milliseconds, std::function<void(const RankWatch::End&)>) {
  OSCAR_CHECK(false);
}
void RankGroup::Set(const std::string& key, std::string_view value) const {
  impl_->words[key] = value;
}
std::string RankGroup::Get(const std::string& key) const { return impl_->words.at(key); }
bool RankGroup::Has(const std::string& key) const { return impl_->words.contains(key); }
void RankGroup::OpenChannel(at::Device) { OSCAR_CHECK(false); }
void RankGroup::Send(const at::Tensor&, int) { OSCAR_CHECK(false); }
std::function<void()> RankGroup::Receive(const at::Tensor&, int) { OSCAR_CHECK(false); }
at::Tensor RankGroup::AllGather(const at::Tensor&) { OSCAR_CHECK(false); }
at::Tensor RankGroup::AllToAll(const at::Tensor&, std::vector<int64_t>, std::vector<int64_t>) {
  OSCAR_CHECK(false);
}
std::vector<int> RankGroup::ReadersOf(const std::string&) const { OSCAR_CHECK(false); }
void RankGroup::Share(const std::vector<SharedTensor>&, const std::vector<int>&) {
  OSCAR_CHECK(false);
}
void RankGroup::SendBytes(std::string_view, int, int) { OSCAR_CHECK(false); }
std::string RankGroup::ReceiveBytes(int, int) { OSCAR_CHECK(false); }

#endif

RankGroup& OneRank() {
  static RankGroup group;
  return group;
}

}  // namespace oscar
