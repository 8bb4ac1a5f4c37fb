// SPDX-License-Identifier: Apache-2.0
#include "parallel/c10d/c10d_shared_gloo.h"

#include <ATen/ops/empty.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <optional>
#include <random>
#include <utility>

#include "parallel/shared_memory/member_memory.h"
#include "parallel/shared_memory/segment.h"
#include "parallel/shared_memory/shared_calls.h"
#include "parallel/shared_memory/shared_messages.h"

namespace welkin::parallel {
namespace {

// Of longer gathers two ranks on busy cores took 1.3 to 1.6 times as long through the buffers as over TCP, though three quarters
// of its processor time; sums of the same size took half (docs/results/scaling.md).
constexpr size_t kLongestGather = size_t{4} << 20;

std::byte* bytes_in(const at::Tensor& values) { return static_cast<std::byte*>(values.data_ptr()); }

const std::byte* bytes_read(const at::Tensor& values) { return static_cast<const std::byte*>(values.const_data_ptr()); }

// As Gloo takes them: the values in the order in which they lie in memory.
bool is_plain(const at::Tensor& values) {
  return values.is_cpu() && values.layout() == at::kStrided && values.is_non_overlapping_and_dense();
}

std::optional<OrderedReduction> reduction_of(const c10d::ReduceOp& op, at::ScalarType type) {
  if (!has_ordered_reduction(type)) return {};
  if (op == c10d::ReduceOp::SUM) return OrderedReduction::Sum;
  if (op == c10d::ReduceOp::MAX) return OrderedReduction::Max;
  if (op == c10d::ReduceOp::MIN) return OrderedReduction::Min;
  return {};
}

// c10d counts in rows; no sizes are equal parts.
std::vector<int64_t> bytes_of_parts(const at::Tensor& values, const std::vector<int64_t>& rows, int members) {
  const auto all = static_cast<int64_t>(values.nbytes());
  if (rows.empty()) return std::vector<int64_t>(static_cast<size_t>(members), all / members);
  std::vector<int64_t> bytes;
  const int64_t row = values.numel() > 0 ? all / values.size(0) : 0;
  for (const int64_t count : rows) bytes.push_back(count * row);
  return bytes;
}

using Messages = std::shared_ptr<SharedMessages>;

class LeavingMessage : public LeftMessage {
 public:
  LeavingMessage(Messages messages, int64_t to, uint32_t number) : messages_(std::move(messages)), to_(to), number_(number) {}
  bool isCompleted() override { return messages_->is_taken(to_, number_); }
  bool wait(std::chrono::milliseconds /*timeout*/) override {
    messages_->await_taken(to_, number_);
    return true;
  }

 private:
  Messages messages_;
  int64_t to_;
  uint32_t number_;
};

class ArrivingMessage : public c10d::Work {
 public:
  ArrivingMessage(Messages messages, int64_t from, uint32_t number)
      : messages_(std::move(messages)), from_(from), number_(number) {}
  bool isCompleted() override { return is_here_; }
  bool wait(std::chrono::milliseconds /*timeout*/) override {
    if (!is_here_) messages_->await_received(from_, number_);
    is_here_ = true;
    return true;
  }

 private:
  Messages messages_;
  int64_t from_;
  uint32_t number_;
  bool is_here_ = false;
};

}  // namespace

struct SharedGloo::Shared {
  Shared(std::shared_ptr<Segment> memory, const WaitLimits& limits, const std::vector<int64_t>& processes)
      : segment(std::move(memory)),
        rounds(*segment, limits),
        longest_gather(processes.empty() ? kLongestGather : std::numeric_limits<size_t>::max()),
        calls(rounds, processes),
        messages(processes.empty() ? nullptr : std::make_shared<SharedMessages>(segment, limits, processes)) {}

  std::shared_ptr<Segment> segment;
  Rounds rounds;
  size_t longest_gather;
  SharedCalls calls;
  std::shared_ptr<SharedMessages> messages;  // null: Gloo carries them
  FinishingThread thread;                    // first to end: it uses the others
};

SharedGloo::SharedGloo(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size, c10::intrusive_ptr<Options> options)
    : DirectGloo(store, rank, size, std::move(options)) {}

SharedGloo::~SharedGloo() {
  if (shared_) shared_->rounds.stop();
}

// Directly between each two: one that drops the group afterwards passes nothing on that others still need.
std::vector<std::vector<int64_t>> SharedGloo::gathered(const std::vector<int64_t>& own) {
  const auto length = static_cast<int64_t>(own.size());
  at::Tensor in = at::empty({getSize(), length}, at::kLong), out = at::empty({getSize(), length}, at::kLong);
  for (int member = 0; member < getSize(); ++member) std::ranges::copy(own, in.data_ptr<int64_t>() + member * length);
  std::vector<int64_t> equal_parts;
  DirectGloo::alltoall_base(out, in, equal_parts, equal_parts, {})->wait();
  std::vector<std::vector<int64_t>> all;
  for (int member = 0; member < getSize(); ++member) {
    const int64_t* begin = out.const_data_ptr<int64_t>() + member * length;
    all.emplace_back(begin, begin + length);
  }
  return all;
}

bool SharedGloo::all_say(bool own) {
  return std::ranges::all_of(gathered({own ? 1 : 0}), [](const auto& said) { return said[0] == 1; });
}

// The first member makes the memory, the others open it, each leaves a number there, and all look for everybody's. A process on
// another host, or in another container, does not find it; one that finds other memory does not find the numbers.
std::string SharedGloo::share_memory(SharedMemory wanted, const WaitLimits& limits) {
  const bool wants = wanted != SharedMemory::Off;
  const SegmentShape shape = SegmentShape::of_members(getSize());
  std::unique_ptr<Segment> segment;
  std::string why;
  SegmentPlace place;
  if (wants && getRank() == 0) {
    try {
      segment = std::make_unique<Segment>(shape);
      place = segment->place();
    } catch (const std::exception& error) {
      why = error.what();
    }
  }
  const auto said = gathered({wants ? 1 : 0, place.process, place.descriptor, static_cast<int64_t>(place.nonce[0]),
                              static_cast<int64_t>(place.nonce[1])});
  if (std::ranges::any_of(said, [](const auto& member) { return member[0] == 0; })) return "shared memory is off";
  const auto& first = said.front();
  if (first[2] < 0) return why.empty() ? "the first member has no memory to share" : why;
  if (getRank() != 0) {
    try {
      place = {.process = first[1],
               .descriptor = first[2],
               .nonce = {static_cast<uint64_t>(first[3]), static_cast<uint64_t>(first[4])}};
      segment = std::make_unique<Segment>(place, shape, getRank());
    } catch (const std::exception& error) {
      why = error.what();
    }
  }
  const auto number = static_cast<int64_t>(std::random_device()());
  if (segment) segment->greet(static_cast<uint64_t>(number));
  const auto greetings = gathered({segment ? 1 : 0, number});
  bool is_shared = segment != nullptr;
  for (int member = 0; member < getSize(); ++member) {
    const auto& greeting = greetings[static_cast<size_t>(member)];
    is_shared = is_shared && greeting[0] == 1 && segment->greeting_of(member) == static_cast<uint64_t>(greeting[1]);
  }
  if (!all_say(is_shared)) return why.empty() ? "another member cannot open the first one's memory" : why;
  shared_ = std::make_unique<Shared>(std::move(segment), limits, readable_processes(wanted == SharedMemory::Auto));
  return {};
}

// Each leaves a number in its own memory, and all try to read everybody's. Empty if anyone cannot.
std::vector<int64_t> SharedGloo::readable_processes(bool wants) {
  const auto number = static_cast<int64_t>(std::random_device()());
  const auto said = gathered({::getpid(), reinterpret_cast<int64_t>(&number), number});  // NOLINT: for other processes
  std::vector<int64_t> processes;
  bool is_readable = wants;
  for (const auto& member : said) {
    int64_t found = 0;
    const MemberBytes there{.process = member[0], .address = static_cast<uint64_t>(member[1])};
    is_readable =
        is_readable && read_memory(there, reinterpret_cast<std::byte*>(&found), sizeof found) == 0 && found == member[2];
    processes.push_back(member[0]);
  }
  return all_say(is_readable) ? processes : std::vector<int64_t>{};
}

SharedGloo::WorkPtr SharedGloo::allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions& options) {
  if (!shared_ || tensors.size() != 1 || !is_plain(tensors[0])) return DirectGloo::allreduce(tensors, options);
  const auto reduction = reduction_of(options.reduceOp, tensors[0].scalar_type());
  if (!reduction) return DirectGloo::allreduce(tensors, options);
  const auto sum = [this, values = tensors[0], how = *reduction] {
    shared_->calls.all_reduce(bytes_in(values), values.numel(), values.scalar_type(), how);
  };
  return shared_->thread.add(sum, tensors);
}

SharedGloo::WorkPtr SharedGloo::broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions& options) {
  if (!shared_ || tensors.size() != 1 || !is_plain(tensors[0])) return DirectGloo::broadcast(tensors, options);
  const auto tell = [this, values = tensors[0], root = options.rootRank] {
    shared_->calls.broadcast(bytes_in(values), static_cast<int64_t>(values.nbytes()), root);
  };
  return shared_->thread.add(tell, tensors);
}

SharedGloo::WorkPtr SharedGloo::_allgather_base(at::Tensor& out, at::Tensor& in, const c10d::AllgatherOptions& options) {
  const bool fits = out.nbytes() == static_cast<size_t>(getSize()) * in.nbytes() && out.scalar_type() == in.scalar_type();
  if (!shared_ || !fits || out.nbytes() > shared_->longest_gather || !is_plain(out) || !is_plain(in)) {
    return DirectGloo::_allgather_base(out, in, options);
  }
  const auto gather = [this, whole = out, part = in] {
    shared_->calls.all_gather(bytes_in(whole), bytes_read(part), static_cast<int64_t>(part.nbytes()));
  };
  return shared_->thread.add(gather, {out});
}

SharedGloo::WorkPtr SharedGloo::_reduce_scatter_base(at::Tensor& out, at::Tensor& in, const c10d::ReduceScatterOptions& options) {
  const bool fits = in.nbytes() == static_cast<size_t>(getSize()) * out.nbytes() && out.scalar_type() == in.scalar_type();
  const auto reduction = reduction_of(options.reduceOp, in.scalar_type());
  if (!shared_ || !fits || !reduction || !is_plain(out) || !is_plain(in)) {
    return DirectGloo::_reduce_scatter_base(out, in, options);
  }
  const auto sum = [this, part = out, whole = in, how = *reduction] {
    shared_->calls.reduce_scatter(bytes_in(part), bytes_read(whole), part.numel(), part.scalar_type(), how);
  };
  return shared_->thread.add(sum, {out});
}

SharedGloo::WorkPtr SharedGloo::alltoall_base(at::Tensor& out, at::Tensor& in, std::vector<int64_t>& out_sizes,
                                              std::vector<int64_t>& in_sizes, const c10d::AllToAllOptions& options) {
  if (!shared_ || !is_plain(out) || !is_plain(in)) return DirectGloo::alltoall_base(out, in, out_sizes, in_sizes, options);
  c10d::checkSplitSizes(in_sizes, in, getSize());
  c10d::checkSplitSizes(out_sizes, out, getSize());
  const auto exchange = [this, to = out, from = in, out_bytes = bytes_of_parts(out, out_sizes, getSize()),
                         in_bytes = bytes_of_parts(in, in_sizes, getSize())] {
    shared_->calls.all_to_all(bytes_in(to), bytes_read(from), out_bytes, in_bytes);
  };
  return shared_->thread.add(exchange, {out});
}

// Messages of one tag have one order. DirectGloo's own have other tags.
bool SharedGloo::carries(const std::vector<at::Tensor>& tensors, int tag) const {
  return shared_ && shared_->messages && tag == 0 && tensors.size() == 1 && is_plain(tensors[0]);
}

SharedGloo::WorkPtr SharedGloo::send(std::vector<at::Tensor>& tensors, int to, int tag) {
  if (!carries(tensors, tag)) return DirectGloo::send(tensors, to, tag);
  const at::Tensor& values = tensors[0];
  const uint32_t number = shared_->messages->send(to, bytes_read(values), static_cast<int64_t>(values.nbytes()),
                                                  std::make_shared<const at::Tensor>(values));
  return c10::make_intrusive<LeavingMessage>(shared_->messages, to, number);
}

SharedGloo::WorkPtr SharedGloo::recv(std::vector<at::Tensor>& tensors, int from, int tag) {
  if (!carries(tensors, tag)) return DirectGloo::recv(tensors, from, tag);
  const at::Tensor& values = tensors[0];
  const uint32_t number = shared_->messages->receive(from, bytes_in(values), static_cast<int64_t>(values.nbytes()),
                                                     std::make_shared<const at::Tensor>(values));
  return c10::make_intrusive<ArrivingMessage>(shared_->messages, from, number);
}

}  // namespace welkin::parallel
