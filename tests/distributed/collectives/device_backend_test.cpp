// SPDX-License-Identifier: Apache-2.0
// The back end for tensors of a GPU in a connection: made with each group, ended in order with it or with the connection, given
// up with a group that an error drops. Here it notes its calls and carries nothing; meta tensors stand for those of a GPU.
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>

#include "core/text.h"
#include "ops/device/device_ops.h"
#include "parallel/c10d/c10d_group.h"
#include "parallel/c10d/c10d_host_backend.h"
#include "parallel/comm/collectives.h"
#include "rank_processes.h"

namespace welkin::parallel {
namespace {

struct Ends {
  int made = 0, ended = 0, given_up = 0;
  std::vector<std::string> calls;  // "1: send 0", by the number of the back end
};
Ends& ends() {
  static Ends counts;
  return counts;
}

class EndedWork : public c10d::Work {
 public:
  bool wait(std::chrono::milliseconds /*timeout*/) override { return true; }
};

class CountingBackend : public c10d::Backend {
 public:
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;
  CountingBackend(int place, int size, int number) : c10d::Backend(place, size), number_(number) {}
  const std::string getBackendName() const override { return "counting"; }
  WorkPtr send(std::vector<at::Tensor>& /*tensors*/, int to, int /*tag*/) override { return note(cat("send ", to)); }
  WorkPtr recv(std::vector<at::Tensor>& /*tensors*/, int from, int /*tag*/) override { return note(cat("receive ", from)); }
  void startCoalescing() override { note("start"); }
  WorkPtr endCoalescing() override { return note("end"); }
  void shutdown() override { ++ends().ended; }
  void abort() override { ++ends().given_up; }

 private:
  WorkPtr note(const std::string& call) const {
    ends().calls.push_back(cat(number_, ": ", call));
    return c10::make_intrusive<EndedWork>();
  }
  int number_;
};

c10::intrusive_ptr<c10d::Backend> make_counting(const c10::intrusive_ptr<c10d::Store>& /*store*/, int place, int size,
                                                std::chrono::milliseconds /*deadline*/) {
  return c10::make_intrusive<CountingBackend>(place, size, ends().made++);
}

// Of the GPU that each rank has to itself, or that all share.
int64_t& own_gpu() {
  static int64_t number = 0;
  return number;
}
std::string name_of_own_gpu() { return cat("gpu ", own_gpu()); }

std::unique_ptr<Connection> connection_with_gpu(Connection& outer, const char* store) {
  ends() = {};  // a rank's process has run other tests
  ops::device_ops().make_backend = &make_counting;
  ops::device_ops().gpu_name = &name_of_own_gpu;
  return Connection::open(
      {.rank = outer.rank(), .world_size = outer.world_size(), .file = cat(rank_scratch_folder(), "/", store), .with_gpu = true});
}

const RankTest kEnds("device_backend_ends", [](Connection& outer) {
  own_gpu() = outer.rank();
  const auto connection = connection_with_gpu(outer, "device_backend_store");
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

std::vector<std::string> take_calls() { return std::exchange(ends().calls, {}); }

// NCCL works off the messages of a pair one after the other, whichever way they go.
const RankTest kDirections("device_backend_directions", [](Connection& outer) {
  own_gpu() = outer.rank();
  const auto connection = connection_with_gpu(outer, "directions_store");
  const at::Tensor values = at::empty({2}, at::kMeta);
  const int64_t me = outer.rank(), other = 1 - me;
  {
    const Group pair = connection->make_group("pair", {.ranks = {0, 1}, .place = me});
    EXPECT_EQ(ends().made, 1);
    start_exchange(pair, {{values, other}}, {{values, other}}).wait();
    EXPECT_EQ(take_calls(), (std::vector<std::string>{"0: start", cat("0: receive ", other), cat("0: send ", other), "0: end"}));
    EXPECT_EQ(ends().made, 1);
    start_receive(pair, values, other).wait();
    start_send(pair, values, other).wait();
    start_receive(pair, values, other).wait();
    const auto expected = me == 0 ? std::vector<std::string>{"1: receive 1", "0: send 1", "1: receive 1"}
                                  : std::vector<std::string>{"0: receive 0", "1: send 0", "0: receive 0"};
    EXPECT_EQ(take_calls(), expected);
    EXPECT_EQ(ends().made, 2);
  }
  EXPECT_EQ(ends().ended, 2);
  connection->close();
});

bool ranks_apart(const std::vector<int64_t>& ranks) { return ranks.size() == 2 && ranks[1] - ranks[0] == 2; }

// NCCL refuses two ranks on one GPU.
const RankTest kShared("device_backend_shared", [](Connection& outer) {
  const int64_t me = outer.rank();
  own_gpu() = me / 2;
  const auto connection = connection_with_gpu(outer, "shared_gpu_store");
  const auto name_in = [&](const char* name, std::vector<int64_t> ranks) {
    const auto place = std::ranges::find(ranks, me) - ranks.begin();
    const bool is_apart = ranks_apart(ranks);
    const Group group = connection->make_group(name, {.ranks = std::move(ranks), .place = place});
    EXPECT_EQ(group.communicator().can_record(), is_apart);
    return process_group_of(group)->getBackend(c10::DeviceType::CUDA)->getBackendName();
  };
  EXPECT_EQ(me < 2 ? name_in("low", {0, 1}) : name_in("high", {2, 3}), "host memory") << "one GPU of two ranks";
  EXPECT_EQ(me % 2 == 0 ? name_in("even", {0, 2}) : name_in("odd", {1, 3}), "counting") << "a GPU each";
  EXPECT_EQ(name_in("all", {0, 1, 2, 3}), "host memory");
  connection->close();
});

// Every call, of tensors that a copy in host memory stands for.
const RankTest kHost("host_backend", [](Connection& connection) {
  const Group group = connection.make_group("world", {.ranks = {0, 1}, .place = connection.rank()});
  HostBackend backend(process_group_of(group)->getBackend(c10::DeviceType::CPU));
  const auto me = static_cast<double>(connection.rank());
  const auto other = static_cast<int>(1 - connection.rank());
  std::vector<at::Tensor> own{at::full({2}, 1 + me)};
  const auto summing = backend.allreduce(own, {});
  EXPECT_TRUE(at::equal(own[0], at::full({2}, 3.0)));
  EXPECT_TRUE(summing->isCompleted());
  EXPECT_TRUE(at::equal(summing->getFuture()->value().toTensorVector().at(0), own[0])) << "what the Reducer takes";
  std::vector<at::Tensor> told{at::full({2}, me)};
  backend.broadcast(told, {.rootRank = 1})->wait();
  EXPECT_TRUE(at::equal(told[0], at::ones({2})));
  at::Tensor part = at::full({2}, me), whole = at::zeros({4});
  backend._allgather_base(whole, part, {})->wait();
  EXPECT_TRUE(at::equal(whole, at::tensor({0.0F, 0.0F, 1.0F, 1.0F})));
  std::vector<at::Tensor> parts{part};
  std::vector<std::vector<at::Tensor>> gathered{{at::zeros({2}), at::zeros({2})}};
  backend.allgather(gathered, parts, {})->wait();
  EXPECT_TRUE(at::equal(gathered[0][1], at::ones({2})));
  backend._reduce_scatter_base(part, whole, {})->wait();
  EXPECT_TRUE(at::equal(part, at::full({2}, 2 * me)));
  at::Tensor sent = at::tensor({10 * me, 10 * me + 1}, at::kFloat), arrived = at::zeros({2});
  std::vector<int64_t> equal_parts;
  backend.alltoall_base(arrived, sent, equal_parts, equal_parts, {})->wait();
  EXPECT_TRUE(at::equal(arrived, at::tensor({me, 10 + me}, at::kFloat)));
  std::vector<at::Tensor> out{at::full({3}, me)}, in{at::zeros({3})};
  const auto receiving = backend.recv(in, other, 0);  // queued by both before their sends
  const auto sending = backend.send(out, other, 0);
  receiving->wait();
  sending->wait();
  EXPECT_TRUE(at::equal(in[0], at::full({3}, 1 - me)));
  EXPECT_TRUE(backend.barrier({})->wait());
});

TEST(DeviceBackend, OfRanksThatShareAGpuIsHostMemory) { run_on_ranks("device_backend_shared", 4); }
TEST(HostBackend, CarriesEveryCall) { run_on_ranks("host_backend", 2); }
TEST(DeviceBackend, HasAStreamForEachDirectionOfMessages) { run_on_ranks("device_backend_directions", 2); }
TEST(DeviceBackend, EndsWithTheConnection) { run_on_ranks("device_backend_ends", 2); }

}  // namespace
}  // namespace welkin::parallel
