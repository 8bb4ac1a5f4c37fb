// SPDX-License-Identifier: Apache-2.0
// A copy of a training state in the host's memory, from which a checkpoint is written while training changes the state itself.
// There is one copy: its memory is used again for the next checkpoint, page-locked where the state lies on a GPU.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <vector>

#include "train/checkpoint/whole_tensors.h"

namespace welkin::train {

class HostCopy {
 public:
  explicit HostCopy(c10::Device device) : device_(device) {}

  // Takes the memory that these tensors need, row-major. Throws what the allocator throws.
  void reserve(const RankTensors& own);
  // Touches the pages, so that the first copy is as fast as the others. Any thread; not beside take().
  void touch();

  // Returns the same tensors with their present values, in this object's memory, valid up to the next call. Calls `make_whole`
  // and `fetch` of each once, in order. Returns when the values have arrived.
  RankTensors take(const RankTensors& own);

  int64_t bytes() const;

 private:
  std::vector<CheckpointGroup> copied(const std::vector<CheckpointGroup>& groups);
  at::Tensor& buffer_like(const CheckpointTensor& tensor);

  c10::Device device_;
  std::vector<at::Tensor> buffers_;  // in the order of the tensors
  size_t next_ = 0;
};

// True if values lie outside of memory: a copy would bring all of them in.
bool has_fetched_values(const std::vector<CheckpointGroup>& groups);

}  // namespace welkin::train
