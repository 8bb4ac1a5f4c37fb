// SPDX-License-Identifier: Apache-2.0
// A c10d back end that carries a GPU's tensors through host memory over another one: for ranks that share a GPU, which NCCL
// refuses. Heavy: only c10d's adapter includes it.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <vector>

namespace welkin::parallel {

// `inner` takes tensors of the CPU. Calls of all members end before they return, and a message between two members in wait().
// Tensors are contiguous. What reads or writes them must be on the current stream.
class HostBackend : public c10d::Backend {
 public:
  using Inner = c10::intrusive_ptr<c10d::Backend>;
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;

  explicit HostBackend(Inner inner);

  const std::string getBackendName() const override { return "host memory"; }
  WorkPtr allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions& options) override;
  WorkPtr allgather(std::vector<std::vector<at::Tensor>>& outs, std::vector<at::Tensor>& ins,
                    const c10d::AllgatherOptions& options) override;
  WorkPtr _allgather_base(at::Tensor& out, at::Tensor& in, const c10d::AllgatherOptions& options) override;
  WorkPtr _reduce_scatter_base(at::Tensor& out, at::Tensor& in, const c10d::ReduceScatterOptions& options) override;
  WorkPtr alltoall_base(at::Tensor& out, at::Tensor& in, std::vector<int64_t>& out_sizes, std::vector<int64_t>& in_sizes,
                        const c10d::AllToAllOptions& options) override;
  WorkPtr send(std::vector<at::Tensor>& tensors, int to, int tag) override;
  WorkPtr recv(std::vector<at::Tensor>& tensors, int from, int tag) override;
  WorkPtr barrier(const c10d::BarrierOptions& options) override;

 private:
  Inner inner_;
};

}  // namespace welkin::parallel
