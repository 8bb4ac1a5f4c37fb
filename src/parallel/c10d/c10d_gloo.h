// SPDX-License-Identifier: Apache-2.0
// Gloo with a reduce-scatter and an all-gather of its own: each member sends every other one what that one needs, and no more.
// ProcessGroupGloo makes a reduce-scatter of a copy and an all-reduce, which send twice the bytes, and copies what it gathers
// (docs/results/memory.md has the times). Heavy: only c10d's adapter includes it.
#pragma once

#ifndef USE_C10D_GLOO
#define USE_C10D_GLOO
#endif
#include <functional>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <vector>

#include "parallel/c10d/finishing_thread.h"

namespace welkin::parallel {

// Every member makes the same calls in the same order. Short messages, and types without a sum here, go Gloo's way.
class DirectGloo : public c10d::ProcessGroupGloo {
 public:
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;

  using ProcessGroupGloo::ProcessGroupGloo;

  // Sums in the order of the members, whoever has the result: it does not depend on the number of threads or on who is faster.
  WorkPtr _reduce_scatter_base(at::Tensor& out, at::Tensor& in, const c10d::ReduceScatterOptions& options) override;
  WorkPtr _allgather_base(at::Tensor& out, at::Tensor& in, const c10d::AllgatherOptions& options) override;

 private:
  using Messages = std::vector<WorkPtr>;

  // What leaves for the member at a place, and where what comes from there goes.
  Messages exchange(int tag, const std::function<at::Tensor(int)>& leaving, const std::function<at::Tensor(int)>& arriving);
  // A call that makes `result` by `finish` when all messages are there.
  WorkPtr after(Messages messages, std::function<void()> finish, const at::Tensor& result);

  FinishingThread calls_;  // gone before the connections, which are the base's
};

}  // namespace welkin::parallel
