// SPDX-License-Identifier: Apache-2.0
// The batches of SYNTHETIC measurements: those of one step, again and again, so that nothing is read.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <vector>

#include "data/pipeline/pipeline.h"

namespace welkin::train {

// One step's micro-batches, handed out over and over. All share the memory of the first, which is the largest.
class FixedBatches {
 public:
  explicit FixedBatches(data::Pipeline& pipeline) {
    data::Batch batch;
    do {
      batch = pipeline.next();
      if (batches_.empty()) {
        first_ = batch;
        first_.input = batch.input.clone(), first_.target = batch.target.clone();
      }
      const int64_t count = batch.input.size(0);
      batch.input = first_.input.narrow(0, 0, count);
      batch.target = first_.target.narrow(0, 0, count);
      batch.sample = batch.sample.clone();
      batches_.push_back(batch);
    } while (batch.micro + 1 < batch.num_micro);
  }

  const data::Batch& next() { return batches_[at_++ % batches_.size()]; }

 private:
  data::Batch first_;
  std::vector<data::Batch> batches_;
  size_t at_ = 0;
};

}  // namespace welkin::train
