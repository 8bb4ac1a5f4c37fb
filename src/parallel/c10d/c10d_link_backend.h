// SPDX-License-Identifier: Apache-2.0
// A c10d back end over another one, which ends transfers when an emulated link would. Heavy: only c10d's adapter includes it.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <vector>

#include "parallel/c10d/finishing_thread.h"
#include "parallel/comm/link.h"

namespace welkin::parallel {

class LinkBackend : public c10d::Backend {
 public:
  using Inner = c10::intrusive_ptr<c10d::Backend>;
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;

  LinkBackend(Inner inner, std::shared_ptr<EmulatedLink> link);

  const std::string getBackendName() const override { return "emulated link"; }
  WorkPtr allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions& options) override;
  WorkPtr _allgather_base(at::Tensor& out, at::Tensor& in, const c10d::AllgatherOptions& options) override;
  WorkPtr _reduce_scatter_base(at::Tensor& out, at::Tensor& in, const c10d::ReduceScatterOptions& options) override;
  WorkPtr alltoall_base(at::Tensor& out, at::Tensor& in, std::vector<int64_t>& out_sizes, std::vector<int64_t>& in_sizes,
                        const c10d::AllToAllOptions& options) override;
  WorkPtr send(std::vector<at::Tensor>& tensors, int to, int tag) override;
  WorkPtr recv(std::vector<at::Tensor>& tensors, int from, int tag) override;
  WorkPtr barrier(const c10d::BarrierOptions& options) override;

 private:
  using Clock = std::chrono::steady_clock;
  WorkPtr carried(WorkPtr inner, int64_t bytes, std::vector<at::Tensor> results);

  Inner inner_;
  std::shared_ptr<EmulatedLink> link_;
  std::mutex mutex_;
  Clock::time_point free_at_{};  // when the link has carried what it was given
  FinishingThread transfers_;
};

}  // namespace welkin::parallel
