// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "parallel/comm/connection.h"
#include "verify/layouts/layout_check.h"

namespace welkin::tests {

// For layouts over all ranks of a connection.
inline verify::LayoutRanks layout_ranks(parallel::Connection& connection) {
  std::vector<int64_t> all(static_cast<size_t>(connection.world_size()));
  std::iota(all.begin(), all.end(), 0);
  return {.rank = connection.rank(),
          .make_group = [&connection](const std::string& name,
                                      parallel::GroupMembers members) { return connection.make_group(name, std::move(members)); },
          .world = connection.make_group("all", {all, connection.rank()})};
}

}  // namespace welkin::tests
