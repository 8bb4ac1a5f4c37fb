// SPDX-License-Identifier: Apache-2.0
#include "data/online/pair_stream.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/philox.h"
#include "core/stopwatch.h"
#include "core/text.h"

namespace welkin::data {

PairStream::PairStream(const PairStreamOptions& options) : options_(options) {
  WELKIN_CHECK(options.batch >= 1 && options.pairs >= 2 * options.batch && options.uses >= 1, "a stream of impossible sizes");
}

PairStream::Given PairStream::give(StreamedPair& pair, std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  const auto may_go_on = [this] { return has_place() || has_ended_ || is_abandoned_; };
  if (!may_go_on()) {
    const Stopwatch watch;
    went_.wait_for(lock, patience, may_go_on);
    waited_s_ += watch.seconds();
  }
  if (error_) std::rethrow_exception(error_);
  if (has_ended_) {
    throw ConfigError("online", cat("the end of the pairs was announced before: pairs=", given_),
                      "Hand all pairs over before that");
  }
  if (is_abandoned_) return Given::Over;
  if (!has_place()) return Given::Full;
  StreamedPair next;
  if (!let_go_.empty()) {
    next = std::move(let_go_.back());
    let_go_.pop_back();
  }
  std::swap(pair, next);
  held_out_is_full() ? waiting_.push_back(std::move(next)) : held_out_.push_back(std::move(next));
  ++given_;
  came_.notify_all();
  return Given::Taken;
}

void PairStream::end() {
  const std::lock_guard lock(mutex_);
  has_ended_ = true;
  came_.notify_all();
  went_.notify_all();
}

void PairStream::fail(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  is_abandoned_ = true;
  error_ = std::move(error);
  went_.notify_all();
}

void PairStream::wait_for_first() const {
  std::unique_lock lock(mutex_);
  came_.wait(lock, [this] { return has_first(); });
}

void PairStream::visit_first(const std::function<void(const StreamedPair&)>& visit) const {
  const std::lock_guard lock(mutex_);
  for (const StreamedPair& pair : held_out_) visit(pair);
  const size_t count = std::min(window(), waiting_.size());
  for (size_t i = 0; i < count; ++i) visit(waiting_[i]);
}

void PairStream::refill() {
  while (drawn_.size() < window() && !waiting_.empty()) {
    drawn_.push_back({.pair = std::move(waiting_.front())});
    waiting_.pop_front();
  }
}

bool PairStream::wait_for_step(const std::function<bool()>& is_stopped) const {
  constexpr std::chrono::milliseconds kLook{50};
  std::unique_lock lock(mutex_);
  const auto has_step = [this] {  // a step lets go of at most as many pairs as it draws
    return has_ended_ || waiting_.size() + drawn_.size() >= static_cast<size_t>(options_.pairs);
  };
  const Stopwatch watch;
  bool goes_on = true;
  while (!has_step() && goes_on) goes_on = came_.wait_for(lock, kLook, has_step) || !is_stopped();
  awaited_s_ += watch.seconds();
  if (!goes_on) return false;
  int64_t left = static_cast<int64_t>(waiting_.size()) * options_.uses;
  for (const Drawn& drawn : drawn_) left += options_.uses - drawn.uses;
  return left >= options_.batch;
}

void PairStream::draw(std::span<float> input, std::span<float> target) {
  std::unique_lock lock(mutex_);
  refill();
  while (drawn_.size() < window() && !has_ended_) {
    came_.wait(lock);
    refill();
  }
  if (drawn_.empty()) {
    throw DataError("online", cat("the pairs have ended: pairs=", given_, ", draws=", draws_),
                    "Hand over more pairs, or let the run use each more often (online_uses)");
  }
  const PhiloxBlock random = philox(stream_key(options_.seed, "online"), 0, static_cast<uint64_t>(draws_++));
  Drawn& chosen = drawn_[random[0] % drawn_.size()];
  if (!input.empty()) std::ranges::copy(chosen.pair.input, input.begin());
  if (!target.empty()) std::ranges::copy(chosen.pair.target, target.begin());
  if (++chosen.uses < options_.uses) return;
  let_go_.push_back(std::move(chosen.pair));
  if (&chosen != &drawn_.back()) chosen = std::move(drawn_.back());
  drawn_.pop_back();
  refill();
  went_.notify_one();
}

int64_t PairStream::given() const {
  const std::lock_guard lock(mutex_);
  return given_;
}

std::string PairStream::text() const {
  const auto in_hundredths = [](double seconds) { return std::round(seconds * 100) / 100; };
  const std::lock_guard lock(mutex_);
  return cat("Pairs: ", given_, ". Steps waited ", in_hundredths(awaited_s_), " s for them, and the program that gave them ",
             in_hundredths(waited_s_), " s for a place");
}

double PairStream::waited_s() const {
  const std::lock_guard lock(mutex_);
  return waited_s_;
}

}  // namespace welkin::data
