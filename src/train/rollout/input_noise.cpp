// SPDX-License-Identifier: Apache-2.0
// Number e of a sample is computed from words 2 (e / 2) and the one after it, like normal_pair() of core/philox.h.
#include "train/rollout/input_noise.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/stack.h>
#include <c10/util/accumulate.h>

#include <numbers>

#include "core/philox.h"
#include "ops/random/philox_words.h"

namespace welkin::train {
namespace {

// The middles of 2^32 intervals, like open_unit().
at::Tensor open_units(const at::Tensor& words) { return words.to(at::kDouble).add(0.5).mul(0x1.0p-32); }

}  // namespace

at::Tensor standard_normals(const NoiseKey& key, const std::vector<int64_t>& shape) {
  const at::NoGradGuard no_grad;
  const uint64_t stream = stream_key(key.seed, "input noise");
  const int64_t count = c10::multiply_integers(shape), pairs = (count + 1) / 2;
  std::vector<at::Tensor> samples;
  for (int64_t b = 0; b < key.sample.size(0); ++b) {
    const at::Tensor counter = key.step.bitwise_left_shift(32).bitwise_xor(key.sample.select(0, b));
    const at::Tensor units = open_units(ops::philox_words(stream, counter, 0, 2 * pairs)).view({pairs, 2});
    const at::Tensor radius = units.select(1, 0).log().mul(-2).sqrt();
    const at::Tensor angle = units.select(1, 1).mul(2 * std::numbers::pi);
    const at::Tensor both = at::stack({radius * angle.cos(), radius * angle.sin()}, 1).to(at::kFloat);
    samples.push_back(both.view({-1}).narrow(0, 0, count).view(shape));
  }
  return at::stack(samples);
}

}  // namespace welkin::train
