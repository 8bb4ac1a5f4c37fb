// SPDX-License-Identifier: Apache-2.0
// Persistence: the newest input as the forecast, in the target's numbers.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "data/sample/dataset.h"
#include "data/storage/channel_op.h"

namespace welkin::train {

// True if the newest input step holds channels of the target at an earlier time (data::earlier_channels() says which).
bool has_persistence(const data::SampleSpec& spec);

class Persistence {
 public:
  // The data set has persistence.
  explicit Persistence(const data::SampleSpec& spec);

  // (B, C, ...) of an input -> (B, C', ...), as the target is clipped, logarithmic and normalised. NaN, not defined: a channel of
  // which there is no earlier state, or of which the input was clipped to a range that the target goes beyond.
  at::Tensor of(const at::Tensor& input) const;

 private:
  struct Conversion {
    data::ChannelOp input, target;  // to be undone, to be applied
  };
  struct Channel {
    int64_t from = -1;                       // of the input; -1: not defined
    std::optional<Conversion> conversion{};  // nothing: both have the same numbers
  };

  std::vector<Channel> channels_;  // by target channel
};

}  // namespace welkin::train
