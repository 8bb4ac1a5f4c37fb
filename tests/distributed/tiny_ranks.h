// SPDX-License-Identifier: Apache-2.0
// The ranks of a distributed test as those who step together in a tiny run.
#pragma once

#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "rank_processes.h"
#include "tiny_steps.h"

namespace welkin::train {

// Every rank calls it. `connection` outlives what comes back.
inline TinyRanks ranks_of(parallel::Connection& connection) {
  const auto make = [&connection](const std::string& name, parallel::GroupMembers members) {
    return connection.make_group(name, std::move(members));
  };
  std::vector<int64_t> all(static_cast<size_t>(connection.world_size()));
  std::iota(all.begin(), all.end(), 0);
  return {make, connection.rank(), connection.world_size(), make("world_group", {.ranks = all, .place = connection.rank()})};
}

// Ranks 0 ... size - 1, size ... 2 size - 1, and so on, each as a world of its own.
inline TinyRanks neighbours(parallel::Connection& connection, int64_t size) {
  const int64_t first = connection.rank() / size * size;
  const auto make = [&connection, first](const std::string& name, parallel::GroupMembers members) {
    for (int64_t& rank : members.ranks) rank += first;
    return connection.make_group(name, std::move(members));
  };
  std::vector<int64_t> all(static_cast<size_t>(size));
  std::iota(all.begin(), all.end(), 0);
  const int64_t rank = connection.rank() - first;
  return {make, rank, size, make("world_group", {.ranks = all, .place = rank})};
}

}  // namespace welkin::train
