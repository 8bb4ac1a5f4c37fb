// SPDX-License-Identifier: Apache-2.0
// One function per collective, the only way to a communicator: check, span, flight-recorder entry, dispatch, deadline. Every
// member of the group calls the same functions in the same order with the same shapes; in a group of one each is the identity.
// Tensors may have any strides: what the back end needs contiguous is copied. None of these is differentiable
// (differentiable.h). All throw CommError, which names the call and the missing ranks, and after which the group is of no use.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "parallel/comm/background_span.h"
#include "parallel/comm/communicator.h"
#include "parallel/comm/group.h"

namespace welkin::parallel {

using Lengths = std::vector<int64_t>;

// A call under way. wait() must be called before the buffers are used again.
class Transfer {
 public:
  Transfer() = default;  // nothing to wait for
  Transfer(BackendWorkPtr work, std::shared_ptr<CollectiveMonitor> monitor, int64_t ticket);
  void wait();

  // As a span of the thread that waits, and where it runs `beside` the threads as one of its group's lane.
  void show(const char* name, const Group& group, bool beside);

 private:
  BackendWorkPtr work_;
  std::shared_ptr<CollectiveMonitor> monitor_;
  int64_t ticket_ = 0;
  std::unique_ptr<BackgroundSpan> span_;  // null where nobody listens
  bool is_beside_ = false;
};

// The result of a call under way, which is to be fetched once; what went in must not be written to before.
class PendingTensor {
 public:
  PendingTensor() = default;  // none
  PendingTensor(Transfer transfer, std::function<at::Tensor()> result);
  explicit PendingTensor(at::Tensor ready);
  bool pending() const { return result_ != nullptr; }
  at::Tensor wait();

 private:
  Transfer transfer_;
  std::function<at::Tensor()> result_;
};

// The sum (or maximum) over the members, bit for bit the same on each: a new tensor. Float32, float64, bfloat16, int64.
at::Tensor all_reduce(const Group& group, const at::Tensor& values, Reduction reduction = Reduction::Sum);
PendingTensor start_all_reduce(const Group& group, const at::Tensor& values, Reduction reduction = Reduction::Sum);
// The same in the caller's memory, which must be contiguous.
void all_reduce_in_place(const Group& group, const at::Tensor& values, Reduction reduction = Reduction::Sum);
Transfer start_all_reduce_in_place(const Group& group, const at::Tensor& values, Reduction reduction = Reduction::Sum);

// The members' parts, put together along `dim` in their order; `lengths` are the parts' extents there.
at::Tensor all_gather(const Group& group, const at::Tensor& part, int64_t dim, const Lengths& lengths);
PendingTensor start_all_gather(const Group& group, const at::Tensor& part, int64_t dim, const Lengths& lengths);

// This member's part of the sum: extent lengths[place] along `dim`.
at::Tensor reduce_scatter(const Group& group, const at::Tensor& whole, int64_t dim, const Lengths& lengths);
PendingTensor start_reduce_scatter(const Group& group, const at::Tensor& whole, int64_t dim, const Lengths& lengths);

// The same for equal parts in the caller's contiguous memory, without copies: `whole` has as many elements as all parts, which
// stand there in the order of the members.
Transfer start_all_gather_into(const Group& group, const at::Tensor& whole, const at::Tensor& part);
Transfer start_reduce_scatter_into(const Group& group, const at::Tensor& part, const at::Tensor& whole);

// Cuts `values` along `split_dim` into split_lengths, sends piece j to member j, and puts what arrives together along `join_dim`,
// where the piece of member j has the extent join_lengths[j].
struct AllToAll {
  int64_t split_dim = 0;
  Lengths split_lengths;
  int64_t join_dim = 0;
  Lengths join_lengths;
};
at::Tensor all_to_all(const Group& group, const at::Tensor& values, const AllToAll& layout);

// (elements), runs of to[j] of them for each member j -> runs of from[j] elements of each: of any lengths, which the members
// know.
at::Tensor exchange_runs(const Group& group, const at::Tensor& values, const Lengths& to, const Lengths& from);

// From the member at place `root` into the others' `values`, contiguous.
void broadcast(const Group& group, const at::Tensor& values, int64_t root);

// Point to point between places; contiguous. A pair's messages arrive in the order of their sending.
Transfer start_send(const Group& group, const at::Tensor& values, int64_t to);
Transfer start_receive(const Group& group, const at::Tensor& values, int64_t from);

// Messages both ways as one call, as members of a ring or neighbours in a box do: on a GPU a call waits for those before it, so
// two members that first receive and then send would wait for each other. At least one message; the first such call of a group
// is one of all its members. Nobody may change what leaves, not even when the call has been waited for: it may still be there.
Transfer start_exchange(const Group& group, const std::vector<Message>& leaving, const std::vector<Message>& arriving);

void barrier(const Group& group);

// Collectives in a replayed CUDA graph bypass everything above, since the host does not call them. `wait` waits for the device.
// The flight recorder and the watchdog treat it as a call of this group, so that a member that hangs in it is named.
void wait_for_recorded(const Group& group, const std::function<void()>& wait);

}  // namespace welkin::parallel
