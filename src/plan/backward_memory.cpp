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
      if (layer->gradients >= pass_.alone_bytes) send_alone(layer->gradients);
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
    packed_ += layer.gradients;
  }

  // The first message of a bucket begins when the bucket before the last one has landed.
  void begin() {
    if (is_begun_) return;
    while (sent_.size() >= kMostUnderWay) land();
    sent_.push_back(0);
    is_begun_ = true;
  }

  // A large gradient is not packed; what travels in another type is a copy of it.
  void send_alone(double bytes) {
    begin();
    packed_ -= bytes;
    if (pass_.travelling == 1) {
      whole_ -= bytes;
      under_way_ += bytes;
    } else {
      under_way_ += bytes * pass_.travelling;
      note();
      whole_ -= bytes;
    }
    leave(bytes);
  }

  void send() {
    if (bucket_ == 0) return;
    if (packed_ > 0) {
      begin();
      under_way_ -= std::exchange(received_, 0);
      under_way_ += packed_ * pass_.travelling;
      note();
      whole_ -= packed_;
      leave(packed_);
    }
    bucket_ = packed_ = 0;
    is_begun_ = false;
    limit_ = pass_.bucket_bytes;
  }

  void leave(double bytes) {
    under_way_ -= received_;
    received_ = pass_.is_received ? bytes * pass_.travelling * (pass_.ranks - 1) / pass_.ranks : 0;
    under_way_ += bytes * pass_.travelling / pass_.ranks + received_;
    sent_.back() += bytes;
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
  double bucket_ = 0, packed_ = 0, limit_ = kFirstBucketBytes;  // packed: of the bucket, what is not sent alone
  bool is_begun_ = false;                                       // the bucket, to be sent
  double received_ = 0;                                         // bytes of other ranks' values, until they are added
  std::deque<double> sent_;
  BackwardPeak peak_;
};

}  // namespace

BackwardPeak backward_peak(const BackwardPass& pass) { return BackwardRun(pass).run(); }

}  // namespace welkin::plan
