// SPDX-License-Identifier: Apache-2.0
#include "plan/backward_memory.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <utility>

namespace welkin::plan {
namespace {

constexpr double kFirstBucketBytes = 1 << 20;  // parallel/shard/gradient_exchange.cpp
constexpr size_t kMostUnderWay = 2;            // parallel/sharding/sharded_gradients.cpp

class BackwardRun {
 public:
  explicit BackwardRun(const BackwardPass& pass) : pass_(pass) {
    double all = 0;
    for (const BackwardLayer& layer : pass.layers) {
      all += layer.gradients;
      activations_ += layer.activations;
    }
    if (pass.adds_up) whole_ = all;
    if (pass.has_pieces) pieces_ = all / pass.ranks;
    note();
  }

  BackwardPeak run() {
    for (auto layer = pass_.layers.rbegin(); layer != pass_.layers.rend(); ++layer) {
      if (pass_.ends_with_units && bucket_ > 0 && bucket_ + layer->gradients > pass_.bucket_bytes) send();
      make(*layer);
      const bool is_full = pass_.ends_with_units ? layer->begins_unit : bucket_ >= limit_;
      if (is_full) send();
    }
    send();
    while (!sent_.empty()) land();
    return peak_;
  }

 private:
  // A new gradient exists beside the one to which it is added.
  void make(const BackwardLayer& layer) {
    whole_ += layer.gradients;
    note();
    under_way_ -= std::exchange(received_, 0);
    if (pass_.adds_up) whole_ -= layer.gradients;
    activations_ = std::max(0.0, activations_ - layer.activations);  // removes a rounding error below 0
    bucket_ += layer.gradients;
  }

  void send() {
    if (bucket_ == 0) return;
    while (sent_.size() >= kMostUnderWay) land();
    under_way_ -= received_;
    received_ = pass_.is_received ? bucket_ * pass_.travelling * (pass_.ranks - 1) / pass_.ranks : 0;
    under_way_ += bucket_ * pass_.travelling;
    note();
    whole_ -= bucket_;
    under_way_ += bucket_ * pass_.travelling / pass_.ranks + received_;
    sent_.push_back(bucket_);
    bucket_ = 0;
    limit_ = pass_.bucket_bytes;
    note();
  }

  void land() {
    const double bucket = sent_.front();
    sent_.pop_front();
    under_way_ -= bucket * pass_.travelling * (1 + 1 / pass_.ranks);
    if (!pass_.has_pieces) pieces_ += bucket / pass_.ranks;
  }

  void note() {
    const BackwardPeak now{.gradients = whole_ + pieces_, .under_way = under_way_, .activations = activations_};
    if (now.sum() > peak_.sum()) peak_ = now;
  }

  const BackwardPass& pass_;
  double whole_ = 0, pieces_ = 0, under_way_ = 0, activations_ = 0;
  double bucket_ = 0, limit_ = kFirstBucketBytes;
  double received_ = 0;  // bytes of other ranks' values, until they are added
  std::deque<double> sent_;
  BackwardPeak peak_;
};

}  // namespace

BackwardPeak backward_peak(const BackwardPass& pass) { return BackwardRun(pass).run(); }

}  // namespace welkin::plan
