// SPDX-License-Identifier: Apache-2.0
// The functions of ops/convolution/block_convolution.h on CUDA tensors.
#include "ops/cuda/box_blocks.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "ops/cuda/low_types.h"
#include "ops/device/device_ops.h"

namespace welkin::ops {
namespace {

constexpr const char* kBoxBlocks = "box_blocks";
constexpr auto kBoxLayout = at::MemoryFormat::ChannelsLast3d;

at::Tensor box_like(const at::Tensor& x, const BlocksShape& shape, bool of_blocks) {
  const auto extent = [&](int axis) { return of_blocks ? shape.blocks(axis) : shape.points[axis]; };
  const int64_t channels = shape.channels * (of_blocks ? kBlockPoints : 1);
  return at::empty({shape.boxes, channels, extent(0), extent(1), extent(2)}, x.options(), kBoxLayout);
}

at::Tensor to_blocks_on_cuda(const at::Tensor& x) {
  TORCH_CHECK(x.dim() == 5 && x.is_contiguous(kBoxLayout), kBoxBlocks, ": a box, channels-last without gaps");
  const BlocksShape shape{.boxes = x.size(0), .channels = x.size(1), .points = {x.size(2), x.size(3), x.size(4)}};
  for (const int64_t points : shape.points)
    TORCH_CHECK(points % 2 == 0, kBoxBlocks, ": an even number of points along each axis");
  const c10::cuda::CUDAGuard guard(x.device());
  const at::Tensor blocks = box_like(x, shape, true);
  for_low_type(kBoxBlocks, x.scalar_type(), [&](auto low) {
    using Low = decltype(low);
    const ToBlocks<Low> call{.shape = shape,
                             .box = static_cast<const Low*>(x.const_data_ptr()),
                             .blocks = static_cast<Low*>(blocks.mutable_data_ptr())};
    C10_CUDA_CHECK(launch_to_blocks(call, c10::cuda::getCurrentCUDAStream()));
  });
  return blocks;
}

at::Tensor from_blocks_on_cuda(const at::Tensor& blocks, const at::Tensor& bias, double slope) {
  TORCH_CHECK(blocks.dim() == 5 && blocks.is_contiguous(kBoxLayout) && blocks.size(1) % kBlockPoints == 0, kBoxBlocks,
              ": blocks, channels-last without gaps");
  BlocksShape shape{.boxes = blocks.size(0), .channels = blocks.size(1) / kBlockPoints};
  for (int axis = 0; axis < 3; ++axis) shape.points[axis] = 2 * (blocks.size(2 + axis) - 1);
  if (bias.defined()) {
    check_places(kBoxBlocks, blocks, {bias});
    TORCH_CHECK(bias.numel() == shape.channels && bias.scalar_type() == at::kFloat, kBoxBlocks, ": a float32 bias per channel");
  }
  const c10::cuda::CUDAGuard guard(blocks.device());
  const at::Tensor box = box_like(blocks, shape, false);
  for_low_type(kBoxBlocks, blocks.scalar_type(), [&](auto low) {
    using Low = decltype(low);
    const FromBlocks<Low> call{.shape = shape,
                               .blocks = static_cast<const Low*>(blocks.const_data_ptr()),
                               .bias = bias.defined() ? bias.const_data_ptr<float>() : nullptr,
                               .slope = static_cast<float>(slope),
                               .box = static_cast<Low*>(box.mutable_data_ptr())};
    C10_CUDA_CHECK(launch_from_blocks(call, c10::cuda::getCurrentCUDAStream()));
  });
  return box;
}

const bool kBlocksRegistered = [] {
  device_ops().blocks = {.device = c10::kCUDA, .to_blocks = &to_blocks_on_cuda, .from_blocks = &from_blocks_on_cuda};
  return true;
}();

}  // namespace
}  // namespace welkin::ops
