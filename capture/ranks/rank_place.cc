// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/ranks/rank_place.h"

#include <fmt/format.h>

#include <charconv>

#include "linalg/base/error.h"

namespace oscar {
namespace {

class Variables {
 public:
  explicit Variables(const RankEnvironment& environment) : environment_(environment) {}

  bool Has(const std::string& name) const { return environment_(name).has_value(); }
  int Int(const std::string& name) const {
    const std::optional<std::string> text = environment_(name);
    if (!text) throw UsageError(fmt::format("the environment variable {} is missing", name));
    int value = 0;
    const char* const end = text->data() + text->size();
    const auto [at, error] = std::from_chars(text->data(), end, value);
    if (error != std::errc() || at != end || value < 0)
      throw UsageError(
          fmt::format("the environment variable {}={} is not a number of at least 0", name, *text));
    return value;
  }
  int IntOr(const std::string& name, int other) const { return Has(name) ? Int(name) : other; }
  std::string TextOr(const std::string& name, const std::string& other) const {
    return environment_(name).value_or(other);
  }

 private:
  const RankEnvironment& environment_;
};

// Returns the first host of a list: node01 for "node[01-04,07],other".
std::string FirstHost(const std::string& list) {
  const size_t bracket = list.find('['), comma = list.find(',');
  if (bracket == std::string::npos || comma < bracket) return list.substr(0, comma);
  const size_t end = list.find_first_of("-,]", bracket);
  return list.substr(0, bracket) + list.substr(bracket + 1, end - bracket - 1);
}

void Check(const RankPlace& place) {
  if (place.rank < place.size && place.local_rank < place.local_size &&
      place.local_size <= place.size && place.port > 0 && place.port < 65536)
    return;
  throw UsageError(fmt::format(
      "{}: found rank {} of {}, local rank {} of {} and port {}; expected ranks below these "
      "numbers, no more local ranks than ranks, and a port from 1 to 65535; let only the launcher "
      "set these variables",
      place.launcher, place.rank, place.size, place.local_rank, place.local_size, place.port));
}

}  // namespace

std::optional<RankPlace> PlaceInJob(const RankEnvironment& environment) {
  const Variables variables(environment);
  RankPlace place;
  const auto address = [&](const std::string& other) {
    place.address = variables.TextOr("MASTER_ADDR", other);
    place.port = variables.IntOr("MASTER_PORT", place.port);
    if (place.address.empty()) {
      throw UsageError(
          fmt::format("{} started {} ranks on several machines; set MASTER_ADDR to the name of the "
                      "machine of rank 0",
                      place.launcher, place.size));
    }
  };
  if (variables.Has("RANK") && variables.Has("WORLD_SIZE")) {
    place.launcher = variables.TextOr("OSCAR_LAUNCHER", "torchrun");
    place.rank = variables.Int("RANK");
    place.size = variables.Int("WORLD_SIZE");
    place.local_rank = variables.IntOr("LOCAL_RANK", place.rank);
    place.local_size = variables.IntOr("LOCAL_WORLD_SIZE", place.size);
    place.has_store = variables.TextOr("TORCHELASTIC_USE_AGENT_STORE", "") == "True";
    address(place.local_size == place.size ? "127.0.0.1" : "");
  } else if (variables.Has("SLURM_PROCID") && variables.Has("SLURM_STEP_NUM_TASKS")) {
    place.launcher = "srun";
    place.rank = variables.Int("SLURM_PROCID");
    place.size = variables.Int("SLURM_STEP_NUM_TASKS");
    place.local_rank = variables.IntOr("SLURM_LOCALID", 0);
    const int nodes = variables.IntOr("SLURM_STEP_NUM_NODES", 1);
    place.local_size = nodes == 1 ? place.size : variables.IntOr("SLURM_NTASKS_PER_NODE", 0);
    if (place.local_size == 0) place.local_size = (place.size + nodes - 1) / nodes;
    // The port depends on the job, so that two jobs on one machine do not collide.
    place.port = 20000 + variables.IntOr("SLURM_JOB_ID", 0) % 10000;
    address(FirstHost(variables.TextOr("SLURM_STEP_NODELIST", "")));
  } else if (variables.Has("OMPI_COMM_WORLD_RANK")) {
    place.launcher = "mpirun";
    place.rank = variables.Int("OMPI_COMM_WORLD_RANK");
    place.size = variables.Int("OMPI_COMM_WORLD_SIZE");
    place.local_rank = variables.IntOr("OMPI_COMM_WORLD_LOCAL_RANK", place.rank);
    place.local_size = variables.IntOr("OMPI_COMM_WORLD_LOCAL_SIZE", place.size);
    address(place.local_size == place.size ? "127.0.0.1" : "");
  }
  if (place.size == 1) return std::nullopt;
  Check(place);
  return place;
}

}  // namespace oscar
