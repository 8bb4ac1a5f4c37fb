// SPDX-License-Identifier: Apache-2.0
#include "parallel/c10d/c10d_link_backend.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace welkin::parallel {
namespace {

int64_t bytes_of_tensors(const std::vector<at::Tensor>& tensors) {
  int64_t bytes = 0;
  for (const at::Tensor& tensor : tensors) bytes += static_cast<int64_t>(tensor.nbytes());
  return bytes;
}

}  // namespace

LinkBackend::LinkBackend(Inner inner, std::shared_ptr<EmulatedLink> link)
    : c10d::Backend(inner->getRank(), inner->getSize()), inner_(std::move(inner)), link_(std::move(link)) {}

LinkBackend::WorkPtr LinkBackend::carried(WorkPtr inner, int64_t bytes, std::vector<at::Tensor> results) {
  const std::chrono::duration<double> cost(link_->latency_s + static_cast<double>(bytes) / link_->bytes_per_second);
  const auto span = std::chrono::duration_cast<Clock::duration>(cost);
  link_->bytes += bytes;
  link_->busy_ns += std::chrono::duration_cast<std::chrono::nanoseconds>(span).count();
  const std::lock_guard lock(mutex_);
  free_at_ = std::max(free_at_, Clock::now()) + span;
  const auto finish = [inner = std::move(inner), end = free_at_] {
    inner->wait();
    std::this_thread::sleep_until(end);
  };
  return transfers_.add(finish, std::move(results));
}

LinkBackend::WorkPtr LinkBackend::allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions& options) {
  return carried(inner_->allreduce(tensors, options), bytes_of_tensors(tensors), tensors);
}

LinkBackend::WorkPtr LinkBackend::broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions& options) {
  return carried(inner_->broadcast(tensors, options), bytes_of_tensors(tensors), tensors);
}

LinkBackend::WorkPtr LinkBackend::_allgather_base(at::Tensor& out, at::Tensor& in, const c10d::AllgatherOptions& options) {
  return carried(inner_->_allgather_base(out, in, options), bytes_of_tensors({out}), {out});
}

LinkBackend::WorkPtr LinkBackend::_reduce_scatter_base(at::Tensor& out, at::Tensor& in,
                                                       const c10d::ReduceScatterOptions& options) {
  return carried(inner_->_reduce_scatter_base(out, in, options), bytes_of_tensors({in}), {out});
}

LinkBackend::WorkPtr LinkBackend::alltoall_base(at::Tensor& out, at::Tensor& in, std::vector<int64_t>& out_sizes,
                                                std::vector<int64_t>& in_sizes, const c10d::AllToAllOptions& options) {
  return carried(inner_->alltoall_base(out, in, out_sizes, in_sizes, options), bytes_of_tensors({in}), {out});
}

LinkBackend::WorkPtr LinkBackend::send(std::vector<at::Tensor>& tensors, int to, int tag) {
  return carried(inner_->send(tensors, to, tag), bytes_of_tensors(tensors), {});
}

LinkBackend::WorkPtr LinkBackend::recv(std::vector<at::Tensor>& tensors, int from, int tag) {
  return carried(inner_->recv(tensors, from, tag), 0, tensors);
}

LinkBackend::WorkPtr LinkBackend::barrier(const c10d::BarrierOptions& options) {
  return carried(inner_->barrier(options), 0, {});
}

}  // namespace welkin::parallel
