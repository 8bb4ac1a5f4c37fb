// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/host_copy.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cstring>

namespace welkin::train {

at::Tensor& HostCopy::buffer_like(const CheckpointTensor& tensor) {
  const at::IntArrayRef shape = tensor.make_whole ? at::IntArrayRef(tensor.whole_shape) : tensor.value.sizes();
  if (next_ == buffers_.size()) buffers_.emplace_back();
  at::Tensor& buffer = buffers_[next_++];
  const bool fits = buffer.defined() && buffer.sizes() == shape && buffer.scalar_type() == tensor.value.scalar_type();
  if (!fits) buffer = at::empty(shape, at::TensorOptions(tensor.value.scalar_type()).pinned_memory(device_.is_cuda()));
  return buffer;
}

void HostCopy::reserve(const RankTensors& own) {
  next_ = 0;
  for (const auto* groups : {&own.pieces, &own.whole}) {
    for (const CheckpointGroup& group : *groups) {
      for (const CheckpointTensor& tensor : group.tensors) buffer_like(tensor);
    }
  }
}

void HostCopy::touch() {
  for (const at::Tensor& buffer : buffers_) {
    if (buffer.nbytes() > 0) std::memset(buffer.mutable_data_ptr(), 0, buffer.nbytes());
  }
}

std::vector<CheckpointGroup> HostCopy::copied(const std::vector<CheckpointGroup>& groups) {
  std::vector<CheckpointGroup> copies;
  for (const CheckpointGroup& group : groups) {
    copies.push_back({.name = group.name, .tensors = {}});
    for (const CheckpointTensor& tensor : group.tensors) {
      at::Tensor& buffer = buffer_like(tensor);
      buffer.copy_(tensor.make_whole ? tensor.make_whole() : tensor.fetched(), /*non_blocking=*/true);
      copies.back().tensors.push_back(
          {.name = tensor.name, .value = buffer, .placement = tensor.placement, .run = tensor.run, .piece = tensor.piece});
    }
  }
  return copies;
}

RankTensors HostCopy::take(const RankTensors& own) {
  const at::NoGradGuard no_grad;
  next_ = 0;
  RankTensors copies;
  copies.pieces = copied(own.pieces);  // the same in every checkpoint; among whole tensors a picture may come and go at the end
  copies.whole = copied(own.whole);
  if (!device_.is_cpu()) {
    const c10::impl::VirtualGuardImpl guard(device_.type());
    guard.synchronizeStream(guard.getStream(device_));
  }
  return copies;
}

int64_t HostCopy::bytes() const {
  int64_t bytes = 0;
  for (const at::Tensor& buffer : buffers_) bytes += static_cast<int64_t>(buffer.nbytes());
  return bytes;
}

bool has_fetched_values(const std::vector<CheckpointGroup>& groups) {
  return std::ranges::any_of(groups, [](const CheckpointGroup& group) {
    return std::ranges::any_of(group.tensors, [](const CheckpointTensor& tensor) { return static_cast<bool>(tensor.fetch); });
  });
}

}  // namespace welkin::train
