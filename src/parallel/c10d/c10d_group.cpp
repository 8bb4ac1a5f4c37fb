// SPDX-License-Identifier: Apache-2.0
// The calls of a group, as c10d has them.
#include "parallel/c10d/c10d_group.h"

#include <exception>
#include <functional>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <utility>
#include <vector>

#include "ops/base/quiet_warnings.h"
#include "parallel/c10d/c10d_shared_gloo.h"
#include "parallel/c10d/raw_c10d.h"

namespace welkin::parallel {
namespace {

class C10dWork : public BackendWork {
 public:
  C10dWork(c10::intrusive_ptr<c10d::Work> work, std::vector<at::Tensor> buffers)
      : work_(std::move(work)), buffers_(std::move(buffers)) {}
  void wait() override { work_->wait(); }
  bool when_done(std::function<void()> callback) override {
    try {  // Gloo's messages from one rank to another, and its short reduce-scatter, have no future
      work_->getFuture()->addCallback([callback = std::move(callback)](c10::ivalue::Future&) { callback(); });
      return true;
    } catch (const c10::Error&) {
      return false;
    }
  }

 private:
  c10::intrusive_ptr<c10d::Work> work_;
  std::vector<at::Tensor> buffers_;
};

BackendWorkPtr keep(c10::intrusive_ptr<c10d::Work> work, std::vector<at::Tensor> buffers) {
  return std::make_unique<C10dWork>(std::move(work), std::move(buffers));
}

class C10dWorks : public BackendWork {
 public:
  explicit C10dWorks(std::vector<BackendWorkPtr> works) : works_(std::move(works)) {}
  void wait() override {
    for (const BackendWorkPtr& work : works_) work->wait();
  }

 private:
  std::vector<BackendWorkPtr> works_;
};

}  // namespace

// Of a group that is dropped before the connection's end. NCCL's end waits for the other members, who drop theirs at the same
// place; on the way out of an error they may never come there.
C10dCommunicator::~C10dCommunicator() {
  try {
    if (std::uncaught_exceptions() == 0) {
      end_on_gpu();
      return;
    }
    for (const BackendPtr& backend : {downward_, on_gpu_}) {
      if (backend) backend->abort();
    }
  } catch (const std::exception&) {  // the process goes on without the group
  }
}

void C10dCommunicator::end_on_gpu() {
  for (BackendPtr* backend : {&downward_, &on_gpu_}) {
    if (const auto ending = std::exchange(*backend, nullptr)) ending->shutdown();
  }
}

BackendWorkPtr C10dCommunicator::all_reduce(const at::Tensor& in_place, Reduction reduction) {
  std::vector<at::Tensor> buffers{in_place.detach()};
  c10d::AllreduceOptions options;
  options.reduceOp = reduction == Reduction::Sum ? c10d::ReduceOp::SUM : c10d::ReduceOp::MAX;
  return keep(group_->allreduce(buffers, options), buffers);
}

BackendWorkPtr C10dCommunicator::all_gather(const at::Tensor& out, const at::Tensor& part) {
  at::Tensor gathered = out;
  at::Tensor own = part;
  return keep(group_->_allgather_base(gathered, own), {gathered, own});
}

BackendWorkPtr C10dCommunicator::reduce_scatter(const at::Tensor& part, const at::Tensor& whole) {
  at::Tensor own = part;
  at::Tensor all = whole;
  c10d::ReduceScatterOptions options;
  options.reduceOp = c10d::ReduceOp::SUM;
  return keep(group_->_reduce_scatter_base(own, all, options), {own, all});
}

BackendWorkPtr C10dCommunicator::all_to_all(const at::Tensor& out, const at::Tensor& in, const std::vector<int64_t>& out_counts,
                                            const std::vector<int64_t>& in_counts) {
  at::Tensor arriving = out;
  at::Tensor leaving = in;
  std::vector<int64_t> arriving_counts = out_counts;
  std::vector<int64_t> leaving_counts = in_counts;
  return keep(group_->alltoall_base(arriving, leaving, arriving_counts, leaving_counts), {arriving, leaving});
}

BackendWorkPtr C10dCommunicator::broadcast(const at::Tensor& in_place, int64_t root) {
  std::vector<at::Tensor> buffers{in_place};
  c10d::BroadcastOptions options;
  options.rootRank = root;
  return keep(group_->broadcast(buffers, options), buffers);
}

// ProcessGroupNCCL has one stream for each pair of members, whichever way a message goes, and works off its calls one after the
// other. A pipeline posts receives ahead: a send behind one that waits for what the peer makes of it would wait for ever. So each
// direction has a back end, and with it streams and communicators, of its own.
c10d::Backend& C10dCommunicator::carrier_of(int64_t from, int64_t to) {
  if (from < to) return *on_gpu_;
  if (!downward_) downward_ = make_another_("downward");
  return *downward_;
}

// c10d warns of the communicator that NCCL makes for each pair, which is what is wanted here.
BackendWorkPtr C10dCommunicator::send(const at::Tensor& values, int64_t to) {
  std::vector<at::Tensor> buffers{values.detach()};
  const int peer = static_cast<int>(to);
  if (!is_on_gpu(values)) return keep(group_->send(buffers, peer, 0), buffers);
  const ops::QuietWarnings quiet;
  return keep(carrier_of(group_->getRank(), to).send(buffers, peer, 0), buffers);
}

BackendWorkPtr C10dCommunicator::receive(const at::Tensor& values, int64_t from) {
  std::vector<at::Tensor> buffers{values.detach()};
  const int peer = static_cast<int>(from);
  if (!is_on_gpu(values)) return keep(group_->recv(buffers, peer, 0), buffers);
  const ops::QuietWarnings quiet;
  return keep(carrier_of(from, group_->getRank()).recv(buffers, peer, 0), buffers);
}

// On a GPU one call of NCCL, on the communicator of the whole group. What stays where it is until its receiver has it is not
// waited for: a member goes on as soon as it has what it needs.
BackendWorkPtr C10dCommunicator::exchange(const std::vector<Message>& leaving, const std::vector<Message>& arriving) {
  const bool is_one_call = is_on_gpu((leaving.empty() ? arriving : leaving).front().values);
  std::vector<BackendWorkPtr> works;
  std::vector<at::Tensor> all;
  if (is_one_call) on_gpu_->startCoalescing();
  for (const bool is_arriving : {true, false}) {
    for (const auto& [values, peer] : is_arriving ? arriving : leaving) {
      std::vector<at::Tensor> buffers{values.detach()};
      const int place = static_cast<int>(peer);
      all.push_back(buffers.front());
      if (is_one_call) {
        is_arriving ? on_gpu_->recv(buffers, place, 0) : on_gpu_->send(buffers, place, 0);
        continue;
      }
      auto work = is_arriving ? group_->recv(buffers, place, 0) : group_->send(buffers, place, 0);
      if (dynamic_cast<const LeftMessage*>(work.get()) == nullptr) works.push_back(keep(std::move(work), buffers));
    }
  }
  if (is_one_call) return keep(on_gpu_->endCoalescing(), std::move(all));
  return std::make_unique<C10dWorks>(std::move(works));
}

BackendWorkPtr C10dCommunicator::barrier() { return keep(group_->barrier(), {}); }

void raw_all_reduce(const Group& group, const at::Tensor& values) {
  std::vector<at::Tensor> buffers{values};
  process_group_of(group)->allreduce(buffers, c10d::AllreduceOptions())->wait();
}

c10::intrusive_ptr<c10d::ProcessGroup> process_group_of(const Group& group) {
  return static_cast<C10dCommunicator&>(group.communicator()).process_group();  // NOLINT: the only back end
}

}  // namespace welkin::parallel
