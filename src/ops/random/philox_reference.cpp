// SPDX-License-Identifier: Apache-2.0
// The mask from aten's integer operators. 64-bit products wrap as two's complement, so both halves of a 32 x 32 bit product are
// exact.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <array>

#include "core/error.h"
#include "core/philox.h"
#include "ops/arithmetic/philox_mask.h"
#include "ops/random/philox_dropout.h"
#include "ops/random/philox_words.h"

namespace welkin::ops {
namespace {

constexpr int64_t kLow32 = 0xffffffff;

using Words = std::array<at::Tensor, 4>;  // int64 tensors with 32-bit words

at::Tensor high_word(const at::Tensor& x) { return x.bitwise_right_shift(32).bitwise_and(kLow32); }
at::Tensor low_word(const at::Tensor& x) { return x.bitwise_and(kLow32); }

// The ten rounds of core/philox.h.
Words words_of_blocks(uint64_t key, Words c) {
  auto k0 = static_cast<uint32_t>(key);
  auto k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const at::Tensor p0 = c[0] * at::Scalar(int64_t{0xD2511F53});
    const at::Tensor p1 = c[2] * at::Scalar(int64_t{0xCD9E8D57});
    c = {high_word(p1).bitwise_xor(c[1]).bitwise_xor(int64_t{k0}), low_word(p1),
         high_word(p0).bitwise_xor(c[3]).bitwise_xor(int64_t{k1}), low_word(p0)};
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
  return c;
}

// Global index of every element of a sample: (1, ...) int64, dims as of shape.
at::Tensor element_indices(at::IntArrayRef shape, const MaskWindow& window, const at::Device& device) {
  const auto num_dims = static_cast<int64_t>(shape.size());
  std::vector<int64_t> ones(shape.size(), 1);
  at::Tensor index = at::zeros(ones, at::TensorOptions().dtype(at::kLong).device(device));
  int64_t stride = 1;
  for (int64_t dim = num_dims - 1; dim >= 1; --dim) {
    const auto d = static_cast<size_t>(dim);
    const int64_t offset = window.offset.empty() ? 0 : window.offset.at(d - 1);
    std::vector<int64_t> view = ones;
    view[d] = shape[d];
    index = index + (at::arange(shape[d], index.options()) + offset).mul(stride).view(view);
    stride *= window.global_shape.empty() ? shape[d] : window.global_shape.at(d - 1);
  }
  return index;
}

// (4, blocks)
at::Tensor words_of(uint64_t stream, const at::Tensor& counter, const at::Tensor& block) {
  const at::Tensor high = block * 0 + counter;
  const Words words = words_of_blocks(stream, {low_word(block), high_word(block), low_word(high), high_word(high)});
  return at::stack({words[0], words[1], words[2], words[3]});
}

}  // namespace

at::Tensor philox_words(uint64_t stream, const at::Tensor& counter, const at::Tensor& element) {
  const at::Tensor words = words_of(stream, counter, element.bitwise_right_shift(2));
  return words.gather(0, element.bitwise_and(3).unsqueeze(0)).squeeze(0);
}

at::Tensor philox_words(uint64_t stream, const at::Tensor& counter, int64_t first, int64_t count) {
  const at::Tensor block = at::arange(first / 4, (first + count + 3) / 4, counter.options());
  return words_of(stream, counter, block).t().flatten().narrow(0, first % 4, count);
}

at::Tensor philox_keep_reference(at::IntArrayRef shape, double rate, const MaskKey& key, const MaskWindow& window) {
  WELKIN_CHECK(!shape.empty() && key.sample.numel() == shape[0], "one sample number per element of dim 0");
  std::vector<int64_t> per_sample(shape.size(), 1);
  per_sample[0] = shape[0];
  const at::Tensor element = element_indices(shape, window, key.sample.device());
  const at::Tensor counter = key.step.bitwise_left_shift(32).bitwise_xor(key.sample).view(per_sample);
  const at::Tensor block = element.bitwise_right_shift(2);
  const at::Tensor zero = (block + counter).mul(0);  // gives the full shape
  const Words words = words_of_blocks(
      key.stream, {low_word(block) + zero, high_word(block) + zero, low_word(counter) + zero, high_word(counter) + zero});
  const at::Tensor lane = element.bitwise_and(3) + zero;
  const at::Tensor word = at::stack({words[0], words[1], words[2], words[3]}).gather(0, lane.unsqueeze(0)).squeeze(0);
  return word.ge(int64_t{mask_rule(key.stream, rate).threshold});
}

}  // namespace welkin::ops
