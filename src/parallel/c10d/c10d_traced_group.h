// SPDX-License-Identifier: Apache-2.0
// The process group that the Reducer gets while a tracer is active. It records when each bucket is sent and when it has
// arrived. Host transfers only: to the host, a GPU transfer looks done when it is queued. Heavy: only the Reducer's adapter
// includes it.
#pragma once

#include <algorithm>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <utility>
#include <vector>

#include "core/text.h"
#include "parallel/comm/background_span.h"

namespace welkin::parallel {

class TracedProcessGroup : public c10d::ProcessGroup {
 public:
  TracedProcessGroup(c10::intrusive_ptr<c10d::ProcessGroup> group, std::string axis)
      : c10d::ProcessGroup(group->getRank(), group->getSize()), group_(std::move(group)), axis_(std::move(axis)) {
    setBackend(c10::kCPU, c10d::ProcessGroup::BackendType::GLOO, group_->getBackend(c10::kCPU));
    setDefaultBackend(c10d::ProcessGroup::BackendType::GLOO);
  }

  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions& options) override {
    BackgroundSpan& sent = sent_.emplace_back(cat("gradient exchange ", axis_), cat("gradient exchange ", sent_.size()));
    auto work = group_->allreduce(tensors, options);
    last_sent_ = observe::SpanClock::now();
    work->getFuture()->addCallback([end = sent.end()](c10::ivalue::Future&) { end->finish(); });
    return work;
  }

  void forget() { sent_.clear(); }

  // The Reducer waits inside the backward pass: from the last bucket's sending, after which little is left to compute, until all
  // have arrived.
  void show(const observe::Tracer& tracer) {
    if (sent_.empty()) return;
    auto all_here = last_sent_;
    for (const BackgroundSpan& bucket : sent_) {
      all_here = std::max(all_here, bucket.ended());
      bucket.show(tracer);
    }
    tracer.record("", "gradient exchange, waiting", last_sent_, all_here);
  }

 private:
  c10::intrusive_ptr<c10d::ProcessGroup> group_;
  std::string axis_;
  std::vector<BackgroundSpan> sent_;  // in this step
  observe::SpanClock::time_point last_sent_;
};

}  // namespace welkin::parallel
