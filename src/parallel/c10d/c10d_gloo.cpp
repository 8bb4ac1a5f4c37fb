// SPDX-License-Identifier: Apache-2.0
#include "parallel/c10d/c10d_gloo.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "parallel/shared_memory/ordered_sum.h"

namespace welkin::parallel {
namespace {

// Below it Gloo's own calls, which need no second thread, are as fast.
constexpr size_t kShortBytes = size_t{1} << 18;
// Messages of the two calls do not meet each other, nor those of send() and recv(), which have tag 0.
constexpr int kReduceScatterTag = 1, kAllGatherTag = 2;

bool is_long(const at::Tensor& whole) { return whole.is_cpu() && whole.nbytes() >= kShortBytes; }

// In the order of the members.
void add_up(const at::Tensor& sum, const std::vector<at::Tensor>& parts) {
  std::vector<const std::byte*> values;
  for (const at::Tensor& part : parts) values.push_back(static_cast<const std::byte*>(part.const_data_ptr()));
  reduce_in_order(sum.scalar_type(), OrderedReduction::Sum, static_cast<std::byte*>(sum.mutable_data_ptr()), values, sum.numel());
}

}  // namespace

// Each sends to the next one first, so that not all begin with the same member.
DirectGloo::Messages DirectGloo::exchange(int tag, const std::function<at::Tensor(int)>& leaving,
                                          const std::function<at::Tensor(int)>& arriving) {
  Messages messages;
  for (int distance = 1; distance < getSize(); ++distance) {
    const int to = (getRank() + distance) % getSize(), from = (getRank() + getSize() - distance) % getSize();
    std::vector<at::Tensor> received{arriving(from)}, sent{leaving(to)};
    messages.push_back(recv(received, from, tag));
    messages.push_back(send(sent, to, tag));
  }
  return messages;
}

DirectGloo::WorkPtr DirectGloo::after(Messages messages, std::function<void()> finish, const at::Tensor& result) {
  return calls_.add(
      [messages = std::move(messages), finish = std::move(finish)] {
        for (const WorkPtr& message : messages) message->wait();
        finish();
      },
      {result});
}

DirectGloo::WorkPtr DirectGloo::_reduce_scatter_base(at::Tensor& out, at::Tensor& in, const c10d::ReduceScatterOptions& options) {
  const bool is_sum =
      options.reduceOp == c10d::ReduceOp::SUM && has_ordered_reduction(in.scalar_type()) && in.scalar_type() == out.scalar_type();
  if (!is_sum || !is_long(in)) return ProcessGroupGloo::_reduce_scatter_base(out, in, options);
  const at::NoGradGuard no_grad;
  const at::Tensor whole = in.detach().view({getSize(), -1});
  const at::Tensor room = at::empty({getSize() - 1, whole.size(1)}, whole.options());
  std::vector<at::Tensor> parts(static_cast<size_t>(getSize()));
  for (int member = 0, free = 0; member < getSize(); ++member) {
    parts[static_cast<size_t>(member)] = member == getRank() ? whole[member] : room[free++];
  }
  auto messages = exchange(
      kReduceScatterTag, [&](int to) { return whole[to]; }, [&](int from) { return parts[static_cast<size_t>(from)]; });
  const at::Tensor sum = out.detach();
  return after(
      std::move(messages), [sum, parts = std::move(parts)] { add_up(sum, parts); }, out);
}

DirectGloo::WorkPtr DirectGloo::_allgather_base(at::Tensor& out, at::Tensor& in, const c10d::AllgatherOptions& options) {
  if (!is_long(out)) return ProcessGroupGloo::_allgather_base(out, in, options);
  const at::NoGradGuard no_grad;
  const at::Tensor whole = out.detach().view({getSize(), -1});
  at::Tensor part = in.detach().view({-1});
  auto messages = exchange(
      kAllGatherTag, [&](int) { return part; }, [&](int from) { return whole[from]; });
  const at::Tensor own = whole[getRank()];
  if (own.data_ptr() != part.data_ptr()) own.copy_(part);  // else it is gathered in its place
  return after(
      std::move(messages), [] {}, out);
}

}  // namespace welkin::parallel
