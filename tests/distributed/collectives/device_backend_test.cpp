// SPDX-License-Identifier: Apache-2.0
// The back end for tensors of a GPU in a connection: made with each group, ended in order with it or with the connection, given
// up with a group that an error drops. Here it counts and carries nothing.
#include <gtest/gtest.h>

#include <stdexcept>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "core/text.h"
#include "ops/device/device_ops.h"
#include "rank_processes.h"

namespace welkin::parallel {
namespace {

struct Ends {
  int made = 0, ended = 0, given_up = 0;
};
Ends& ends() {
  static Ends counts;
  return counts;
}

class CountingBackend : public c10d::Backend {
 public:
  using c10d::Backend::Backend;
  const std::string getBackendName() const override { return "counting"; }
  void shutdown() override { ++ends().ended; }
  void abort() override { ++ends().given_up; }
};

c10::intrusive_ptr<c10d::Backend> make_counting(const c10::intrusive_ptr<c10d::Store>& /*store*/, int place, int size,
                                                std::chrono::milliseconds /*deadline*/) {
  ++ends().made;
  return c10::make_intrusive<CountingBackend>(place, size);
}

const RankTest kEnds("device_backend_ends", [](Connection& outer) {
  ops::device_ops().make_backend = &make_counting;
  const auto connection = Connection::open({.rank = outer.rank(),
                                            .world_size = outer.world_size(),
                                            .file = cat(rank_scratch_folder(), "/device_backend_store"),
                                            .with_gpu = true});
  const GroupMembers both{.ranks = {0, 1}, .place = outer.rank()};
  {
    const Group kept = connection->make_group("kept", both);
    EXPECT_EQ(ends().made, 1);
    connection->make_group("dropped", both);
    EXPECT_EQ(ends().ended, 1) << "nobody has it any more";
    try {
      const Group failing = connection->make_group("failing", both);
      throw std::runtime_error("one rank alone");
    } catch (const std::runtime_error&) {
      EXPECT_EQ(ends().given_up, 1) << "the others may not come";
    }
    connection->close();
    EXPECT_EQ(ends().ended, 2) << "the one that is left";
  }
  EXPECT_EQ(ends().ended, 2) << "once";
  EXPECT_EQ(ends().given_up, 1);
  EXPECT_EQ(ends().made, 3);
});

TEST(DeviceBackend, EndsWithTheConnection) { run_on_ranks("device_backend_ends", 2); }

}  // namespace
}  // namespace welkin::parallel
