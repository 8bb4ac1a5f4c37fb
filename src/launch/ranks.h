// SPDX-License-Identifier: Apache-2.0
// The place of this process in a run, from its launcher's variables. Pure functions of an environment; opens nothing.
#pragma once

#include <cstdint>
#include <string>

#include "launch/batch/environment.h"

namespace welkin::launch {

struct RankInfo {
  int64_t rank = 0, world_size = 1;
  int64_t local_rank = 0, local_size = 1;  // among the processes of this node
  int64_t node = 0, num_nodes = 1;
  std::string launcher;             // "welkin launch", "torchrun", "Slurm", "Open MPI", ...; empty: a process of its own
  std::string master_address;       // where rank 0 listens; empty only in a world of one
  int64_t master_port = 0;          // 0: not said
  int64_t attempt = 0;              // restarts so far (torchrun); keeps the keys of two attempts apart
  bool store_is_served = false;     // the launcher serves the store at the address itself (torchrun's agent)
  std::string store_file;           // WIREUP_FILE_PATH; empty: not given
  bool store_is_launchers = false;  // the launcher serves our store at the address (an elastic job)
  std::string elastic;              // "MIN:MAX" of an elastic job; empty: none
  std::string elastic_id;           // the name of this process in it
  int64_t listen_descriptor = -1;   // rank 0 of `welkin launch`: a socket that listens at the address already
};

// Reads, in this order: variables of `welkin launch` and torchrun; the tutorials' WORLD_SIZE, RANK (or WORLD_RANK), LOCAL_RANK,
// MASTER_ADDR (or MASTER_ADDRESS), MASTER_PORT; Flux; LSF's jsrun; Open MPI; MPICH, hydra and MVAPICH; PMIx; Slurm's srun. A
// job step of another launcher within a Slurm or LSF allocation is that launcher's. Throws ConfigError naming the variables
// when they are incomplete, are no numbers, or contradict each other.
RankInfo find_ranks(const ReadVariable& read);

// One line for the log: "rank 3 of 8, local rank 1 of 4, node 1 of 2, from Slurm".
std::string describe(const RankInfo& place);

}  // namespace welkin::launch
