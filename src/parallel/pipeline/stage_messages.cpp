// SPDX-License-Identifier: Apache-2.0
#include "parallel/pipeline/stage_messages.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace welkin::parallel {
namespace {

constexpr size_t kPostedAhead = 1;  // posted receives beyond the one that is needed now

// False for empty tensors: a block of a box may have no cells at a deep scale.
bool is_sent(const at::Tensor& tensor) { return tensor.numel() > 0; }

size_t place_of(const StageMessage& message, const std::vector<TimedMessage>& messages) {
  const auto found = std::ranges::find(messages, message, &TimedMessage::message);
  WELKIN_CHECK(found != messages.end(), "the schedule of a pipeline has every message that is asked for");
  return static_cast<size_t>(found - messages.begin());
}

}  // namespace

StageMessages::StageMessages(const Schedule& schedule, const Group& ranks, MakeBuffers make_buffers)
    : ranks_(ranks), make_buffers_(std::move(make_buffers)), shape_(schedule.shape) {
  const int64_t own = ranks.group_rank();
  leaving_.resize(static_cast<size_t>(ranks.size()));
  for (int64_t rank = 0; rank < ranks.size(); ++rank) {
    incoming_.push_back(
        {.wanted = rank == own ? std::vector<TimedMessage>{} : messages_between(schedule, rank, own), .posted = {}});
    outgoing_.push_back(rank == own ? std::vector<TimedMessage>{} : messages_between(schedule, own, rank));
  }
}

model::Tensors StageMessages::receive(const StageMessage& message) {
  const int64_t from = shape_.rank_of(message.is_gradient ? message.boundary + 1 : message.boundary);
  Incoming& incoming = incoming_[static_cast<size_t>(from)];
  const size_t place = place_of(message, incoming.wanted);
  post_until(from, place + 1 + kPostedAhead);
  Posted& posted = incoming.posted[place];
  for (Transfer& transfer : posted.transfers) transfer.wait();
  let_go(from, incoming.wanted[place].made_by);
  return std::exchange(posted.buffers, {});
}

// Messages between two ranks arrive in the order of sending, so receives are posted in that order, whichever is needed first.
void StageMessages::post_until(int64_t from, size_t count) {
  Incoming& incoming = incoming_[static_cast<size_t>(from)];
  for (size_t i = incoming.posted.size(); i < std::min(count, incoming.wanted.size()); ++i) {
    const StageMessage& message = incoming.wanted[i].message;
    Posted posted{.buffers = make_buffers_(message.boundary, message.micro), .transfers = {}};
    for (const at::Tensor& buffer : posted.buffers) {
      if (is_sent(buffer)) posted.transfers.push_back(start_receive(ranks_, buffer, from));
    }
    incoming.posted.push_back(std::move(posted));
  }
}

// Frees tensors sent to `rank`. A message from it proves that its earlier passes have used their inputs, so these sends are
// complete and waiting for them takes no time.
void StageMessages::let_go(int64_t rank, size_t passes_done) {
  std::deque<Leaving>& leaving = leaving_[static_cast<size_t>(rank)];
  while (!leaving.empty() && leaving.front().used_by <= passes_done) {
    for (Transfer& transfer : leaving.front().transfers) transfer.wait();
    leaving.pop_front();
  }
}

void StageMessages::send(const StageMessage& message, const model::Tensors& tensors) {
  const int64_t to = shape_.rank_of(message.is_gradient ? message.boundary : message.boundary + 1);
  Leaving leaving{.used_by = used_by(message, to), .buffers = {}, .transfers = {}};
  for (const at::Tensor& tensor : tensors) {
    leaving.buffers.push_back(tensor.detach().contiguous());
    if (is_sent(tensor)) leaving.transfers.push_back(start_send(ranks_, leaving.buffers.back(), to));
  }
  leaving_[static_cast<size_t>(to)].push_back(std::move(leaving));
}

size_t StageMessages::used_by(const StageMessage& message, int64_t to) const {
  const std::vector<TimedMessage>& messages = outgoing_[static_cast<size_t>(to)];
  return messages[place_of(message, messages)].used_by;
}

void StageMessages::finish() {
  for (std::deque<Leaving>& leaving : leaving_) {
    for (Leaving& one : leaving) {
      for (Transfer& transfer : one.transfers) transfer.wait();
    }
    leaving.clear();
  }
}

}  // namespace welkin::parallel
