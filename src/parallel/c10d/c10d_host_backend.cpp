// SPDX-License-Identifier: Apache-2.0
#include "parallel/c10d/c10d_host_backend.h"

#include <ATen/ops/empty_like.h>

#include <utility>

namespace welkin::parallel {
namespace {

using c10::ivalue::Future;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;

at::Tensor host_space(const at::Tensor& values) { return at::empty_like(values, values.options().device(c10::kCPU)); }

// A copy in host memory, also of a tensor that lies there.
at::Tensor host_copy(const at::Tensor& values) { return host_space(values).copy_(values); }

// A call that has ended. `results` are what the Reducer takes from the future.
class EndedWork : public c10d::Work {
 public:
  explicit EndedWork(const std::vector<at::Tensor>& results) : future_(future_for(results)) { future_->markCompleted(results); }
  bool isCompleted() override { return true; }
  bool wait(std::chrono::milliseconds /*timeout*/) override { return true; }
  c10::intrusive_ptr<Future> getFuture() override { return future_; }

 private:
  static c10::intrusive_ptr<Future> future_for(const std::vector<at::Tensor>& results) {
    std::vector<c10::Device> devices;
    if (!results.empty() && !results.front().is_cpu()) devices.push_back(results.front().device());
    return c10::make_intrusive<Future>(c10::ListType::create(c10::TensorType::get()), devices);
  }

  c10::intrusive_ptr<Future> future_;
};

// A message under way. It has no future, as Gloo's has none.
class MessageWork : public c10d::Work {
 public:
  // `arriving` is undefined for a message that is sent.
  MessageWork(WorkPtr inner, at::Tensor host, at::Tensor arriving)
      : inner_(std::move(inner)), host_(std::move(host)), arriving_(std::move(arriving)) {}
  bool wait(std::chrono::milliseconds timeout) override {
    if (inner_ == nullptr) return true;
    inner_->wait(timeout);
    inner_ = nullptr;
    if (arriving_.defined()) arriving_.copy_(host_);
    return true;
  }

 private:
  WorkPtr inner_;  // null once it has ended
  at::Tensor host_, arriving_;
};

WorkPtr ended(const std::vector<at::Tensor>& results) { return c10::make_intrusive<EndedWork>(results); }

}  // namespace

HostBackend::HostBackend(Inner inner) : c10d::Backend(inner->getRank(), inner->getSize()), inner_(std::move(inner)) {}

WorkPtr HostBackend::allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions& options) {
  for (const at::Tensor& tensor : tensors) {
    std::vector<at::Tensor> host{host_copy(tensor)};
    inner_->allreduce(host, options)->wait();
    tensor.copy_(host[0]);
  }
  return ended(tensors);
}

WorkPtr HostBackend::broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions& options) {
  for (const at::Tensor& tensor : tensors) {
    std::vector<at::Tensor> host{host_copy(tensor)};
    inner_->broadcast(host, options)->wait();
    tensor.copy_(host[0]);
  }
  return ended(tensors);
}

WorkPtr HostBackend::allgather(std::vector<std::vector<at::Tensor>>& outs, std::vector<at::Tensor>& ins,
                               const c10d::AllgatherOptions& options) {
  std::vector<at::Tensor> host_in{host_copy(ins.at(0))};
  std::vector<std::vector<at::Tensor>> host_outs(1);
  for (const at::Tensor& out : outs.at(0)) host_outs[0].push_back(host_space(out));
  inner_->allgather(host_outs, host_in, options)->wait();
  for (size_t i = 0; i < outs[0].size(); ++i) outs[0][i].copy_(host_outs[0][i]);
  return ended(outs[0]);
}

WorkPtr HostBackend::_allgather_base(at::Tensor& out, at::Tensor& in, const c10d::AllgatherOptions& options) {
  at::Tensor host_out = host_space(out), host_in = host_copy(in);
  inner_->_allgather_base(host_out, host_in, options)->wait();
  out.copy_(host_out);
  return ended({out});
}

WorkPtr HostBackend::_reduce_scatter_base(at::Tensor& out, at::Tensor& in, const c10d::ReduceScatterOptions& options) {
  at::Tensor host_out = host_space(out), host_in = host_copy(in);
  inner_->_reduce_scatter_base(host_out, host_in, options)->wait();
  out.copy_(host_out);
  return ended({out});
}

WorkPtr HostBackend::alltoall_base(at::Tensor& out, at::Tensor& in, std::vector<int64_t>& out_sizes,
                                   std::vector<int64_t>& in_sizes, const c10d::AllToAllOptions& options) {
  at::Tensor host_out = host_space(out), host_in = host_copy(in);
  inner_->alltoall_base(host_out, host_in, out_sizes, in_sizes, options)->wait();
  out.copy_(host_out);
  return ended({out});
}

WorkPtr HostBackend::send(std::vector<at::Tensor>& tensors, int to, int tag) {
  std::vector<at::Tensor> host{host_copy(tensors.at(0))};
  WorkPtr sending = inner_->send(host, to, tag);
  return c10::make_intrusive<MessageWork>(std::move(sending), host[0], at::Tensor());
}

WorkPtr HostBackend::recv(std::vector<at::Tensor>& tensors, int from, int tag) {
  std::vector<at::Tensor> host{host_space(tensors.at(0))};
  WorkPtr receiving = inner_->recv(host, from, tag);
  return c10::make_intrusive<MessageWork>(std::move(receiving), host[0], tensors[0]);
}

WorkPtr HostBackend::barrier(const c10d::BarrierOptions& options) { return inner_->barrier(options); }

}  // namespace welkin::parallel
