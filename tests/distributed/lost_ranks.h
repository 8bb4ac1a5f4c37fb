// SPDX-License-Identifier: Apache-2.0
// What tests about ranks that are lost share: the error of a call, and the way out for those who are left.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "core/error.h"
#include "parallel/comm/connection.h"
#include "parallel/mesh/mesh.h"

namespace welkin::parallel {

inline Group world_of(Connection& connection) {
  return connection.make_group("world", Mesh("dp", {.dp_replicate = connection.world_size()}).group_of(connection.rank(), kDp));
}

// The text of the CommError of `call`.
template <typename Call>
std::string comm_error_of(Call call) {
  try {
    call();
  } catch (const CommError& error) {
    return error.what();
  }
  return "no CommError";
}

// The orderly end would wait for ranks that are gone.
[[noreturn]] inline void leave() { _exit(testing::Test::HasFailure() ? 1 : 0); }

}  // namespace welkin::parallel
