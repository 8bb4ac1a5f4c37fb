// SPDX-License-Identifier: Apache-2.0
// A group's communicator over a c10d process group, and the way from a group to it, for adapters to other parts of c10d (the
// Reducer). Heavy: only their sources include it.
#pragma once

#include <functional>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <utility>
#include <vector>

#include "parallel/comm/collectives.h"

namespace welkin::parallel {

class C10dCommunicator : public Communicator {
 public:
  using BackendPtr = c10::intrusive_ptr<c10d::Backend>;

  // `on_gpu`: the group's back end for tensors of a GPU, null where it has none, or where they go through host memory.
  // `make_another`: one more of them, under this name; its connections are made by its first call.
  C10dCommunicator(c10::intrusive_ptr<c10d::ProcessGroup> group, BackendPtr on_gpu,
                   std::function<BackendPtr(const char* name)> make_another, bool is_through_host)
      : group_(std::move(group)),
        on_gpu_(std::move(on_gpu)),
        make_another_(std::move(make_another)),
        is_through_host_(is_through_host) {}
  ~C10dCommunicator() override;
  C10dCommunicator(const C10dCommunicator&) = delete;
  C10dCommunicator& operator=(const C10dCommunicator&) = delete;

  const c10::intrusive_ptr<c10d::ProcessGroup>& process_group() const { return group_; }

  BackendWorkPtr all_reduce(const at::Tensor& in_place, Reduction reduction) override;
  BackendWorkPtr all_gather(const at::Tensor& out, const at::Tensor& part) override;
  BackendWorkPtr reduce_scatter(const at::Tensor& part, const at::Tensor& whole) override;
  BackendWorkPtr all_to_all(const at::Tensor& out, const at::Tensor& in, const std::vector<int64_t>& out_counts,
                            const std::vector<int64_t>& in_counts) override;
  BackendWorkPtr broadcast(const at::Tensor& in_place, int64_t root) override;
  BackendWorkPtr send(const at::Tensor& values, int64_t to) override;
  BackendWorkPtr receive(const at::Tensor& values, int64_t from) override;
  BackendWorkPtr exchange(const std::vector<Message>& leaving, const std::vector<Message>& arriving) override;
  BackendWorkPtr barrier() override;
  bool can_record() const override { return !is_through_host_; }

  // The orderly end of what carries tensors of a GPU, once its calls are done. Every member calls it; no call follows.
  void end_on_gpu();

 private:
  bool is_on_gpu(const at::Tensor& values) const { return on_gpu_ != nullptr && !values.is_cpu(); }
  c10d::Backend& carrier_of(int64_t from, int64_t to);

  c10::intrusive_ptr<c10d::ProcessGroup> group_;
  BackendPtr on_gpu_;    // null once it has ended
  BackendPtr downward_;  // of messages to lower places, from the first of them on
  std::function<BackendPtr(const char* name)> make_another_;
  bool is_through_host_;
};

// Of a group of more than one.
c10::intrusive_ptr<c10d::ProcessGroup> process_group_of(const Group& group);

}  // namespace welkin::parallel
