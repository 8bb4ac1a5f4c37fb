// SPDX-License-Identifier: Apache-2.0
// An asynchronous transfer as a span on its own lane, from launch to end. The end time comes from the back end's callback, else
// from the moment when the wait for the transfer returns.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "observe/timeline/span.h"

namespace welkin::parallel {

// Told on a thread of the back end, perhaps just after the waiting thread has gone on.
class TransferEnd {
 public:
  void finish() { ended_.store(observe::SpanClock::now().time_since_epoch().count(), std::memory_order_release); }
  observe::SpanClock::time_point time_or(observe::SpanClock::time_point otherwise) const {
    const auto ended = ended_.load(std::memory_order_acquire);
    return ended == 0 ? otherwise : observe::SpanClock::time_point(observe::SpanClock::duration(ended));
  }

 private:
  std::atomic<observe::SpanClock::rep> ended_ = 0;
};

class BackgroundSpan {
 public:
  BackgroundSpan(std::string lane, std::string name) : lane_(std::move(lane)), name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  observe::SpanClock::time_point began() const { return began_; }
  observe::SpanClock::time_point ended() const { return end_->time_or(observe::SpanClock::now()); }
  const std::shared_ptr<TransferEnd>& end() const { return end_; }  // outlives the span: the back end tells it when it likes

  // Once the transfer has been waited for.
  void show(const observe::Tracer& tracer) const { tracer.record(lane_, name_, began_, ended()); }

 private:
  std::string lane_, name_;
  observe::SpanClock::time_point began_ = observe::SpanClock::now();
  std::shared_ptr<TransferEnd> end_ = std::make_shared<TransferEnd>();
};

}  // namespace welkin::parallel
