// SPDX-License-Identifier: Apache-2.0
// DirectGloo whose calls go through shared memory where all members are on one host. Gloo is the way for the rest: other types
// and layouts, messages where processes may not read each other's memory, groups over several hosts. Heavy: only c10d's adapter
// includes it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "parallel/c10d/c10d_gloo.h"
#include "parallel/comm/connection.h"
#include "parallel/shared_memory/rounds.h"

namespace welkin::parallel {

// A message through shared memory, which stays where it is until its receiver has it. So its sender needs to wait only before
// it changes the values.
class LeftMessage : public c10d::Work {};

class SharedGloo : public DirectGloo {
 public:
  // As ProcessGroupGloo.
  SharedGloo(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size, c10::intrusive_ptr<Options> options);
  // Calls under way end with an error.
  ~SharedGloo() override;

  // Every member calls it, once and before all other calls. They agree over Gloo: all of them share memory from then on, or none
  // does. `wanted`: what this member would. Empty: they do; else why not.
  std::string share_memory(SharedMemory wanted, const WaitLimits& limits);

  WorkPtr allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions& options) override;
  WorkPtr _allgather_base(at::Tensor& out, at::Tensor& in, const c10d::AllgatherOptions& options) override;
  WorkPtr _reduce_scatter_base(at::Tensor& out, at::Tensor& in, const c10d::ReduceScatterOptions& options) override;
  WorkPtr alltoall_base(at::Tensor& out, at::Tensor& in, std::vector<int64_t>& out_sizes, std::vector<int64_t>& in_sizes,
                        const c10d::AllToAllOptions& options) override;
  WorkPtr send(std::vector<at::Tensor>& tensors, int to, int tag) override;
  WorkPtr recv(std::vector<at::Tensor>& tensors, int from, int tag) override;

 private:
  struct Shared;

  std::vector<std::vector<int64_t>> gathered(const std::vector<int64_t>& own);
  bool all_say(bool own);
  bool carries(const std::vector<at::Tensor>& tensors, int tag) const;
  std::vector<int64_t> readable_processes(bool wants);

  std::unique_ptr<Shared> shared_;  // null: everything goes over Gloo
};

}  // namespace welkin::parallel
