// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/fake_group.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/text.h"
#include "parallel/comm/collective_monitor.h"
#include "parallel/comm/communicator.h"
#include "parallel/comm/flight_recorder.h"

namespace welkin::parallel {
namespace {

class FakeWork : public BackendWork {
 public:
  void wait() override {}
};

class FakeKeyValueStore : public KeyValueStore {
 public:
  void set(const std::string& /*key*/, const std::string& /*text*/) override {}
  void set_if_absent(const std::string& /*key*/, const std::string& /*text*/) override {}
  std::optional<std::string> read(const std::string& /*key*/) override { return {}; }
};

BackendWorkPtr nothing_to_wait_for() { return std::make_unique<FakeWork>(); }

// `from`, over and over. Memory that was never written may hold anything, which kernels can be slow on.
void fill_with(const at::Tensor& out, const at::Tensor& from) {
  if (from.numel() == 0) {
    out.zero_();
    return;
  }
  for (int64_t done = 0; done < out.numel();) {
    const int64_t count = std::min(from.numel(), out.numel() - done);
    out.narrow(0, done, count).copy_(from.narrow(0, 0, count));
    done += count;
  }
}

class FakeCommunicator : public Communicator {
 public:
  BackendWorkPtr all_reduce(const at::Tensor& /*in_place*/, Reduction /*reduction*/) override { return nothing_to_wait_for(); }
  BackendWorkPtr all_gather(const at::Tensor& out, const at::Tensor& part) override {
    fill_with(out, part);
    return nothing_to_wait_for();
  }
  BackendWorkPtr reduce_scatter(const at::Tensor& part, const at::Tensor& whole) override {
    fill_with(part, whole);
    return nothing_to_wait_for();
  }
  BackendWorkPtr all_to_all(const at::Tensor& out, const at::Tensor& in, const std::vector<int64_t>& /*out_counts*/,
                            const std::vector<int64_t>& /*in_counts*/) override {
    fill_with(out, in);
    return nothing_to_wait_for();
  }
  BackendWorkPtr broadcast(const at::Tensor& /*in_place*/, int64_t /*root*/) override { return nothing_to_wait_for(); }
  BackendWorkPtr send(const at::Tensor& /*values*/, int64_t /*to*/) override { return nothing_to_wait_for(); }
  BackendWorkPtr receive(const at::Tensor& values, int64_t /*from*/) override {
    values.zero_();
    return nothing_to_wait_for();
  }
  BackendWorkPtr exchange(const std::vector<Message>& /*leaving*/, const std::vector<Message>& arriving) override {
    for (const Message& message : arriving) message.values.zero_();
    return nothing_to_wait_for();
  }
  BackendWorkPtr barrier() override { return nothing_to_wait_for(); }
};

}  // namespace

Group fake_group(const std::string& name, GroupMembers members) {
  if (members.size() == 1) return Group(name, std::move(members), nullptr, nullptr);
  auto services = std::make_shared<CallServices>();
  services->rank = members.ranks[static_cast<size_t>(members.place)];
  services->kv_store = std::make_shared<FakeKeyValueStore>();
  services->recorder = std::make_shared<FlightRecorder>();
  const std::string text = cat(name, " [", join(members.ranks, ", "), "]");
  auto monitor = std::make_shared<CollectiveMonitor>(std::move(services), text, members.ranks);
  return Group(name, std::move(members), std::make_shared<FakeCommunicator>(), std::move(monitor));
}

}  // namespace welkin::parallel
