// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/ranks/rank_place.h"

#include <gtest/gtest.h>

#include <map>

#include "linalg/base/error.h"

namespace oscar {
namespace {

using Environment = std::map<std::string, std::string>;

std::optional<RankPlace> Place(const Environment& environment) {
  return PlaceInJob([&](const std::string& name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    return found == environment.end() ? std::nullopt : std::optional(found->second);
  });
}

TEST(RankPlace, IsNoneWhereNobodyLaunched) {
  EXPECT_FALSE(Place({}));
  EXPECT_FALSE(Place({{"RANK", "0"}, {"WORLD_SIZE", "1"}}));
  // These are the variables of the batch script itself, which srun did not start.
  EXPECT_FALSE(Place({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "16"}, {"SLURM_JOB_ID", "7"}}));
}

TEST(RankPlace, IsWhatTorchrunSays) {
  const auto place = Place({{"RANK", "9"},
                            {"WORLD_SIZE", "16"},
                            {"LOCAL_RANK", "1"},
                            {"LOCAL_WORLD_SIZE", "8"},
                            {"MASTER_ADDR", "node3"},
                            {"MASTER_PORT", "4711"},
                            {"TORCHELASTIC_USE_AGENT_STORE", "True"}});
  ASSERT_TRUE(place);
  EXPECT_EQ(place->rank, 9);
  EXPECT_EQ(place->size, 16);
  EXPECT_EQ(place->local_rank, 1);
  EXPECT_EQ(place->local_size, 8);
  EXPECT_EQ(place->address, "node3");
  EXPECT_EQ(place->port, 4711);
  EXPECT_TRUE(place->has_store);
}

TEST(RankPlace, IsWhatSrunSays) {
  Environment slurm = {{"SLURM_PROCID", "5"},          {"SLURM_STEP_NUM_TASKS", "8"},
                       {"SLURM_LOCALID", "1"},         {"SLURM_STEP_NUM_NODES", "2"},
                       {"SLURM_NTASKS_PER_NODE", "4"}, {"SLURM_STEP_NODELIST", "gpu[07-08],x1"},
                       {"SLURM_JOB_ID", "1234567"}};
  const auto place = Place(slurm);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->rank, 5);
  EXPECT_EQ(place->local_size, 4);
  EXPECT_EQ(place->address, "gpu07");
  EXPECT_EQ(place->port, 24567);
  const Environment first_of = {{"a,b", "a"}, {"a", "a"}, {"a[1,3]", "a1"}, {"a,b[1-2]", "a"}};
  for (const auto& [list, first] : first_of) {
    slurm["SLURM_STEP_NODELIST"] = list;
    EXPECT_EQ(Place(slurm)->address, first);
  }
}

TEST(RankPlace, IsWhatMpirunSays) {
  Environment mpi = {{"OMPI_COMM_WORLD_RANK", "1"},
                     {"OMPI_COMM_WORLD_SIZE", "4"},
                     {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                     {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}};
  EXPECT_EQ(Place(mpi)->address, "127.0.0.1");
  mpi["OMPI_COMM_WORLD_LOCAL_SIZE"] = "2";  // several machines, and rank 0's address is unknown
  EXPECT_THROW(Place(mpi), UsageError);
  mpi["MASTER_ADDR"] = "node1";
  EXPECT_EQ(Place(mpi)->address, "node1");
}

TEST(RankPlace, RefusesWhatCannotBe) {
  for (const Environment& bad :
       {Environment{{"RANK", "4"}, {"WORLD_SIZE", "4"}},
        Environment{{"RANK", "x"}, {"WORLD_SIZE", "4"}},
        Environment{{"RANK", "-1"}, {"WORLD_SIZE", "4"}},
        Environment{{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"MASTER_PORT", "0"}},
        Environment{{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "9"}}})
    EXPECT_THROW(Place(bad), UsageError);
}

}  // namespace
}  // namespace oscar
