// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/collectives.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <numeric>
#include <sstream>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "parallel/comm/collective_monitor.h"

namespace welkin::parallel {
namespace {

// What a call moves.
struct Payload {
  std::string shape;
  int64_t bytes = 0;
  bool on_gpu = false;
};

Payload payload_of(const at::Tensor& values) {
  std::ostringstream out;
  out << values.scalar_type() << " (" << join(values.sizes(), ", ") << ")";
  return {out.str(), static_cast<int64_t>(values.nbytes()), values.is_cuda()};
}

// A gather is known by its part and moves the whole.
Payload gathered_payload(const at::Tensor& part, const at::Tensor& all) {
  Payload payload = payload_of(part);
  payload.bytes = static_cast<int64_t>(all.nbytes());
  return payload;
}

// One call: `dispatch` hands the buffers to the back end.
template <typename Dispatch>
Transfer send_call(const Group& group, const char* name, const Payload& payload, Dispatch dispatch) {
  CollectiveMonitor& monitor = group.monitor();
  const int64_t ticket = monitor.begin(name, payload.shape, payload.bytes, payload.on_gpu);
  try {
    return Transfer(dispatch(group.communicator()), group.shared_monitor(), ticket);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    monitor.fail(ticket, error.what());
  }
}

enum class Caller { Waits, GoesOn };  // until the call is done

// The host does not see when a GPU's transfer ends.
template <typename Dispatch>
Transfer start_call(const Group& group, const char* name, const Payload& payload, Dispatch dispatch,
                    Caller caller = Caller::GoesOn) {
  Transfer transfer = send_call(group, name, payload, dispatch);
  transfer.show(name, group, caller == Caller::GoesOn && !payload.on_gpu);
  return transfer;
}

template <typename Dispatch>
void run_call(const Group& group, const char* name, const Payload& payload, Dispatch dispatch) {
  const observe::Span span(group.monitor().services().tracer, name, group.name());
  send_call(group, name, payload, dispatch).wait();
}

void check_lengths(const Group& group, const char* name, const Lengths& lengths, int64_t extent, int64_t least = 1) {
  const int64_t total = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  WELKIN_CHECK(static_cast<int64_t>(lengths.size()) == group.size() && total == extent &&
                   *std::min_element(lengths.begin(), lengths.end()) >= least,
               cat("the parts of a collective make up the whole: call=", name, ", group=", group.text(), ", lengths=[",
                   join(lengths, ", "), "], extent=", extent));
}

void check_contiguous(const char* name, const at::Tensor& values) {
  WELKIN_CHECK(values.is_contiguous(), cat("a collective in place needs contiguous memory: call=", name));
}

void check_parts(const char* name, const Group& group, const at::Tensor& whole, const at::Tensor& part) {
  check_contiguous(name, whole);
  check_contiguous(name, part);
  WELKIN_CHECK(whole.numel() == group.size() * part.numel() && whole.scalar_type() == part.scalar_type(),
               cat("equal parts make up the whole: call=", name, ", whole=", whole.numel(), ", part=", part.numel()));
}

int64_t mine(const Group& group, const Lengths& lengths) { return lengths[static_cast<size_t>(group.group_rank())]; }

int64_t longest(const Lengths& lengths) { return *std::max_element(lengths.begin(), lengths.end()); }

std::vector<int64_t> with_extent(const at::Tensor& like, int64_t dim, int64_t extent) {
  std::vector<int64_t> sizes = like.sizes().vec();
  sizes[static_cast<size_t>(dim)] = extent;
  return sizes;
}

// The back end takes equal parts: shorter ones are padded.
at::Tensor padded(const at::Tensor& part, int64_t dim, int64_t extent) {
  if (part.size(dim) == extent) return part.contiguous();
  at::Tensor whole = at::zeros(with_extent(part, dim, extent), part.options());
  whole.narrow(dim, 0, part.size(dim)).copy_(part);
  return whole;
}

class RecordedWork : public BackendWork {
 public:
  explicit RecordedWork(const std::function<void()>& wait) : wait_(wait) {}
  void wait() override { wait_(); }

 private:
  const std::function<void()>& wait_;
};

int64_t wrapped(int64_t dim, const at::Tensor& values) { return dim < 0 ? dim + values.dim() : dim; }

PendingTensor sum_members(const Group& group, const at::Tensor& values, Reduction reduction, Caller caller) {
  if (group.size() == 1) return PendingTensor(values);
  at::Tensor copy = values.detach().clone(at::MemoryFormat::Contiguous);
  Transfer transfer = start_call(
      group, "all_reduce", payload_of(copy), [&](Communicator& c) { return c.all_reduce(copy, reduction); }, caller);
  return {std::move(transfer), [copy = std::move(copy)] { return copy; }};
}

PendingTensor gather_members(const Group& group, const at::Tensor& part, int64_t dim, const Lengths& lengths, Caller caller) {
  dim = wrapped(dim, part);
  if (group.size() == 1) return PendingTensor(part);
  WELKIN_CHECK(part.size(dim) == mine(group, lengths), "a part of an all-gather has the length that is announced for it");
  check_lengths(group, "all_gather", lengths, std::accumulate(lengths.begin(), lengths.end(), int64_t{0}));
  const at::Tensor padded_part = padded(part.detach(), dim, longest(lengths));
  std::vector<int64_t> stacked = padded_part.sizes().vec();
  stacked.insert(stacked.begin(), group.size());
  const at::Tensor all = at::empty(stacked, padded_part.options());
  Transfer transfer = start_call(
      group, "all_gather", gathered_payload(padded_part, all),
      [&](Communicator& c) { return c.all_gather(all.view({-1}), padded_part.view({-1})); }, caller);
  return {std::move(transfer), [all, dim, lengths] {
            std::vector<at::Tensor> parts;
            for (size_t i = 0; i < lengths.size(); ++i) {
              parts.push_back(all[static_cast<int64_t>(i)].narrow(dim, 0, lengths[i]));
            }
            return at::cat(parts, dim);
          }};
}

PendingTensor reduce_scatter_autograd(const Group& group, const at::Tensor& whole, int64_t dim, const Lengths& lengths,
                                      Caller caller) {
  dim = wrapped(dim, whole);
  if (group.size() == 1) return PendingTensor(whole);
  check_lengths(group, "reduce_scatter", lengths, whole.size(dim));
  std::vector<int64_t> stacked = with_extent(whole, dim, longest(lengths));
  const at::Tensor part = at::empty(stacked, whole.options().requires_grad(false));
  stacked.insert(stacked.begin(), group.size());
  const at::Tensor parts = at::zeros(stacked, part.options());
  int64_t offset = 0;
  for (int64_t i = 0; i < group.size(); ++i) {
    const int64_t length = lengths[static_cast<size_t>(i)];
    parts[i].narrow(dim, 0, length).copy_(whole.detach().narrow(dim, offset, length));
    offset += length;
  }
  Transfer transfer = start_call(
      group, "reduce_scatter", payload_of(parts),
      [&](Communicator& c) { return c.reduce_scatter(part.view({-1}), parts.view({-1})); }, caller);
  return {std::move(transfer), [part, dim, own = mine(group, lengths)] { return part.narrow(dim, 0, own).contiguous(); }};
}

}  // namespace

Transfer::Transfer(BackendWorkPtr work, std::shared_ptr<CollectiveMonitor> monitor, int64_t ticket)
    : work_(std::move(work)), monitor_(std::move(monitor)), ticket_(ticket) {}

void Transfer::wait() {
  if (!work_) return;
  const BackendWorkPtr work = std::move(work_);
  const observe::Tracer* tracer = span_ ? monitor_->services().tracer : nullptr;
  try {
    const observe::Span waiting(tracer, span_ ? std::string_view(span_->name()) : "");
    work->wait();
  } catch (const std::exception& error) {
    monitor_->fail(ticket_, error.what());
  }
  monitor_->end(ticket_);
  if (tracer != nullptr && is_beside_) span_->show(*tracer);
}

void Transfer::show(const char* name, const Group& group, bool beside) {
  const observe::Tracer* tracer = monitor_->services().tracer;
  if (tracer == nullptr || !tracer->active()) return;
  is_beside_ = beside;
  span_ = std::make_unique<BackgroundSpan>(group.name(), cat(name, " ", group.name()));
  if (is_beside_) work_->when_done([end = span_->end()] { end->finish(); });
}

PendingTensor::PendingTensor(Transfer transfer, std::function<at::Tensor()> result)
    : transfer_(std::move(transfer)), result_(std::move(result)) {}

PendingTensor::PendingTensor(at::Tensor ready) : result_([ready = std::move(ready)] { return ready; }) {}

at::Tensor PendingTensor::wait() {
  WELKIN_CHECK(pending(), "the result of a call is fetched once");
  const std::function<at::Tensor()> result = std::exchange(result_, nullptr);
  transfer_.wait();
  return result();
}

Transfer start_all_reduce_in_place(const Group& group, const at::Tensor& values, Reduction reduction) {
  check_contiguous("all_reduce", values);
  if (group.size() == 1) return {};
  return start_call(group, "all_reduce", payload_of(values), [&](Communicator& c) { return c.all_reduce(values, reduction); });
}

void all_reduce_in_place(const Group& group, const at::Tensor& values, Reduction reduction) {
  check_contiguous("all_reduce", values);
  if (group.size() == 1) return;
  run_call(group, "all_reduce", payload_of(values), [&](Communicator& c) { return c.all_reduce(values, reduction); });
}

at::Tensor all_reduce(const Group& group, const at::Tensor& values, Reduction reduction) {
  return sum_members(group, values, reduction, Caller::Waits).wait();
}

PendingTensor start_all_reduce(const Group& group, const at::Tensor& values, Reduction reduction) {
  return sum_members(group, values, reduction, Caller::GoesOn);
}

at::Tensor all_gather(const Group& group, const at::Tensor& part, int64_t dim, const Lengths& lengths) {
  return gather_members(group, part, dim, lengths, Caller::Waits).wait();
}

PendingTensor start_all_gather(const Group& group, const at::Tensor& part, int64_t dim, const Lengths& lengths) {
  return gather_members(group, part, dim, lengths, Caller::GoesOn);
}

at::Tensor reduce_scatter(const Group& group, const at::Tensor& whole, int64_t dim, const Lengths& lengths) {
  return reduce_scatter_autograd(group, whole, dim, lengths, Caller::Waits).wait();
}

PendingTensor start_reduce_scatter(const Group& group, const at::Tensor& whole, int64_t dim, const Lengths& lengths) {
  return reduce_scatter_autograd(group, whole, dim, lengths, Caller::GoesOn);
}

Transfer start_all_gather_into(const Group& group, const at::Tensor& whole, const at::Tensor& part) {
  check_parts("all_gather", group, whole, part);
  if (group.size() == 1) {
    whole.view({-1}).copy_(part.view({-1}));
    return {};
  }
  return start_call(group, "all_gather", gathered_payload(part, whole),
                    [&](Communicator& c) { return c.all_gather(whole.view({-1}), part.view({-1})); });
}

Transfer start_reduce_scatter_into(const Group& group, const at::Tensor& part, const at::Tensor& whole) {
  check_parts("reduce_scatter", group, whole, part);
  if (group.size() == 1) {
    part.view({-1}).copy_(whole.view({-1}));
    return {};
  }
  return start_call(group, "reduce_scatter", payload_of(whole),
                    [&](Communicator& c) { return c.reduce_scatter(part.view({-1}), whole.view({-1})); });
}

at::Tensor all_to_all(const Group& group, const at::Tensor& values, const AllToAll& layout) {
  if (group.size() == 1) return values;
  const int64_t split_dim = wrapped(layout.split_dim, values);
  const int64_t join_dim = wrapped(layout.join_dim, values);
  check_lengths(group, "all_to_all", layout.split_lengths, values.size(split_dim));
  WELKIN_CHECK(values.size(join_dim) == mine(group, layout.join_lengths), "a piece of an all-to-all has the length announced");
  const int64_t per_cell = values.numel() / (values.size(split_dim) * values.size(join_dim));
  std::vector<int64_t> in_counts, out_counts;
  for (const int64_t length : layout.split_lengths) in_counts.push_back(per_cell * length * values.size(join_dim));
  for (const int64_t length : layout.join_lengths) out_counts.push_back(per_cell * length * mine(group, layout.split_lengths));
  std::vector<at::Tensor> pieces;
  for (const at::Tensor& piece : values.detach().split_with_sizes(layout.split_lengths, split_dim)) {
    pieces.push_back(piece.reshape({-1}));
  }
  const at::Tensor in = at::cat(pieces);
  const at::Tensor out = at::empty({std::accumulate(out_counts.begin(), out_counts.end(), int64_t{0})}, in.options());
  run_call(group, "all_to_all", payload_of(values),
           [&](Communicator& c) { return c.all_to_all(out, in, out_counts, in_counts); });
  std::vector<int64_t> sizes = with_extent(values, split_dim, mine(group, layout.split_lengths));
  std::vector<at::Tensor> arrived = out.split_with_sizes(out_counts);
  for (size_t i = 0; i < arrived.size(); ++i) {
    sizes[static_cast<size_t>(join_dim)] = layout.join_lengths[i];
    arrived[i] = arrived[i].view(sizes);
  }
  return at::cat(arrived, join_dim);
}

at::Tensor exchange_runs(const Group& group, const at::Tensor& values, const Lengths& to, const Lengths& from) {
  if (group.size() == 1) return values;
  check_lengths(group, "exchange_runs", to, values.numel(), /*least=*/0);
  const at::Tensor in = values.detach().contiguous();
  at::Tensor out = at::empty({std::accumulate(from.begin(), from.end(), int64_t{0})}, in.options());
  check_lengths(group, "exchange_runs", from, out.numel(), /*least=*/0);
  run_call(group, "exchange_runs", Payload{"runs", static_cast<int64_t>(in.nbytes()), in.is_cuda()},
           [&](Communicator& c) { return c.all_to_all(out, in, from, to); });
  return out;
}

void broadcast(const Group& group, const at::Tensor& values, int64_t root) {
  check_contiguous("broadcast", values);
  if (group.size() == 1) return;
  run_call(group, "broadcast", payload_of(values), [&](Communicator& c) { return c.broadcast(values.detach(), root); });
}

Transfer start_send(const Group& group, const at::Tensor& values, int64_t to) {
  check_contiguous("send", values);
  WELKIN_CHECK(group.size() > 1 && to != group.group_rank(), "a message goes to another member");
  return start_call(group, "send", payload_of(values), [&](Communicator& c) { return c.send(values, to); });
}

Transfer start_receive(const Group& group, const at::Tensor& values, int64_t from) {
  check_contiguous("receive", values);
  WELKIN_CHECK(group.size() > 1 && from != group.group_rank(), "a message comes from another member");
  return start_call(group, "receive", payload_of(values), [&](Communicator& c) { return c.receive(values, from); });
}

Transfer start_exchange(const Group& group, const std::vector<Message>& leaving, const std::vector<Message>& arriving) {
  WELKIN_CHECK(group.size() > 1 && !(leaving.empty() && arriving.empty()), "an exchange has messages");
  Payload payload = payload_of((leaving.empty() ? arriving : leaving).front().values);
  payload.bytes = 0;
  for (const Message& message : leaving) payload.bytes += static_cast<int64_t>(message.values.nbytes());
  for (const std::vector<Message>* messages : {&leaving, &arriving}) {
    for (const auto& [values, peer] : *messages) {
      check_contiguous("send_receive", values);
      WELKIN_CHECK(peer != group.group_rank(), "messages go to and come from other members");
    }
  }
  return start_call(group, "send_receive", payload, [&](Communicator& c) { return c.exchange(leaving, arriving); });
}

void wait_for_recorded(const Group& group, const std::function<void()>& wait) {
  if (group.size() == 1) return wait();
  run_call(group, "recorded_calls", Payload{"()"}, [&](Communicator&) { return std::make_unique<RecordedWork>(wait); });
}

void barrier(const Group& group) {
  if (group.size() == 1) return;
  run_call(group, "barrier", Payload{"()"}, [](Communicator& c) { return c.barrier(); });
}

}  // namespace welkin::parallel
