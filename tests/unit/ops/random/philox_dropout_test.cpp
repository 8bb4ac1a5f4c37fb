// SPDX-License-Identifier: Apache-2.0
#include "ops/random/philox_dropout.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/philox.h"
#include "device_on_cpu.h"
#include "gradient_check.h"
#include "number_close.h"

namespace welkin::ops {
namespace {

MaskKey key_of(std::vector<int64_t> samples, int64_t step = 3, uint64_t stream = 77) {
  return {stream, at::scalar_tensor(step, at::kLong), at::tensor(samples, at::kLong)};
}

TEST(PhiloxDropout, FastFormEqualsTheReferenceAndTheDefinition) {
  const MaskKey key = key_of({5, 9});
  const at::Tensor x = at::ones({2, 3, 37});  // rows that begin inside a block of four
  const at::Tensor out = philox_dropout(x, 0.3, key);
  const at::Tensor keep = philox_keep_reference(x.sizes(), 0.3, key);
  EXPECT_TRUE(at::equal(out, keep.to(at::kFloat).mul(1.0 / 0.7)));
  const int64_t element = 2 * 37 + 11;
  const uint64_t counter = (uint64_t{3} << 32) ^ 9;
  const uint32_t word = philox(77, counter, element / 4)[element % 4];
  EXPECT_EQ(keep[1][2][11].item<bool>(), word >= static_cast<uint32_t>(0.3 * 0x1.0p32 + 0.5));
}

TEST(PhiloxDropout, KeepsTheStatedShareAndTheMean) {
  const at::Tensor out = philox_dropout(at::ones({4, 250000}), 0.25, key_of({0, 1, 2, 3}));
  const double kept = out.ne(0).to(at::kDouble).mean().item<double>();
  EXPECT_TRUE(tests::within(kept, 0.75, {5 * std::sqrt(0.25 * 0.75 / 1e6), "five standard errors"}));
  EXPECT_TRUE(tests::within(out.mean().item<double>(), 1.0, {5 * std::sqrt(0.25 / 0.75 / 1e6), "five standard errors"}));
}

TEST(PhiloxDropout, IsAFunctionOfSampleNotOfItsPlaceInTheBatch) {
  const at::Tensor together = philox_dropout(at::ones({3, 5, 8}), 0.5, key_of({10, 11, 12}));
  const at::Tensor alone = philox_dropout(at::ones({1, 5, 8}), 0.5, key_of({12}));
  EXPECT_TRUE(at::equal(together[2], alone[0]));
  EXPECT_FALSE(at::equal(together[0], together[1]));
}

TEST(PhiloxDropout, ChangesWithStepAndStream) {
  const at::Tensor x = at::ones({1, 64});
  const at::Tensor base = philox_dropout(x, 0.5, key_of({1}, 3, 77));
  EXPECT_FALSE(at::equal(base, philox_dropout(x, 0.5, key_of({1}, 4, 77))));
  EXPECT_FALSE(at::equal(base, philox_dropout(x, 0.5, key_of({1}, 3, 78))));
  EXPECT_TRUE(at::equal(base, philox_dropout(x, 0.5, key_of({1}, 3, 77))));
}

TEST(PhiloxDropout, APartHasTheMaskOfTheWhole) {
  const MaskKey key = key_of({4, 6});
  const at::Tensor whole = philox_dropout(at::ones({2, 6, 10}), 0.4, key);
  const MaskWindow window{{6, 10}, {2, 3}};  // tokens 2..4, features 3..8
  const at::Tensor part = philox_dropout(at::ones({2, 3, 6}), 0.4, key, window);
  EXPECT_TRUE(at::equal(part, whole.slice(1, 2, 5).slice(2, 3, 9)));
  EXPECT_TRUE(at::equal(part.ne(0), philox_keep_reference({2, 3, 6}, 0.4, key, window)));
}

// A block of a grid of 3 x 4 tokens is no run of them.
TEST(PhiloxDropout, ABlockOfTokensHasTheMaskOfTheWhole) {
  const MaskKey key = key_of({4, 6});
  const at::Tensor whole = philox_dropout(at::ones({2, 12, 10}), 0.4, key).view({2, 3, 4, 10});
  const MaskWindow window{.global_shape = {3, 4, 10}, .offset = {1, 1, 5}, .local_shape = {2, 3, 4}};
  const at::Tensor x = at::ones({2, 6, 4}).requires_grad_();
  const at::Tensor part = philox_dropout(x, 0.4, key, window);
  EXPECT_TRUE(at::equal(part, whole.slice(1, 1, 3).slice(2, 1, 4).slice(3, 5, 9).reshape({2, 6, 4})));
  part.sum().backward();
  EXPECT_TRUE(at::equal(x.grad(), part.detach()));
}

TEST(PhiloxDropout, IsTheSameForAnyNumberOfThreads) {
  const MaskKey key = key_of({1, 2});
  const at::Tensor x = at::ones({2, 300, 129});
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const at::Tensor one = philox_dropout(x, 0.1, key);
  at::set_num_threads(2);
  const at::Tensor two = philox_dropout(x, 0.1, key);
  at::set_num_threads(before);
  EXPECT_TRUE(at::equal(one, two));
}

TEST(PhiloxDropout, TakesAnyFloatingTypeAndStrides) {
  const MaskKey key = key_of({1, 2});
  const at::Tensor x = tests::test_values({2, 8, 5}, 1);
  const at::Tensor keep = philox_keep_reference({2, 8, 5}, 0.5, key);
  for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16, at::kHalf}) {
    EXPECT_TRUE(at::equal(philox_dropout(x.to(type), 0.5, key), x.to(type).mul(keep).mul(2))) << type;
  }
  const at::Tensor strided = tests::test_values({2, 5, 8}, 1).transpose(1, 2);
  EXPECT_TRUE(at::equal(philox_dropout(strided, 0.5, key), strided.mul(keep).mul(2)));
}

// Rows that begin and end anywhere in a block of four and in a round of lanes, of any type and stride.
TEST(PhiloxDropout, FusedFormEqualsTheReferenceWithGradientsOverTails) {
  const MaskKey key = key_of({3, 8});
  for (const at::ScalarType dtype : {at::kDouble, at::kFloat, at::kBFloat16, at::kHalf}) {
    for (const int64_t length : {1, 2, 5, 31, 63, 64, 65, 127, 193}) {
      const auto fused = [&](const std::vector<at::Tensor>& in) { return philox_dropout(in[0], 0.25, key); };
      const auto reference = [&](const std::vector<at::Tensor>& in) {
        return in[0].mul(philox_keep_reference(in[0].sizes(), 0.25, key)).mul(4.0 / 3);
      };
      const at::Tensor x = tests::test_values({2, length, 3}, 5).to(dtype).transpose(1, 2);
      EXPECT_TRUE(tests::same_results(fused, reference, {x}, 1)) << dtype << " " << length;
    }
  }
}

// Its kernel, run on the CPU.
TEST(PhiloxDropout, OfAGpuHasTheBitsOfTheCpus) {
  using Signature =
      at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&, int64_t, double, at::IntArrayRef, at::IntArrayRef);
  const MaskKey key = key_of({3, 8});
  const MaskWindow window{{90, 200}, {7, 5}};
  for (const at::ScalarType dtype : {at::kDouble, at::kFloat, at::kBFloat16, at::kHalf}) {
    for (const int64_t length : {1, 2, 5, 64, 193}) {
      const at::Tensor x = tests::test_values({2, length, 70}, 1).to(dtype).transpose(1, 2);
      const auto of_gpu = [&](const MaskWindow& part) {
        return tests::call_device_kernel<Signature>("welkin::philox_dropout", x, key.step, key.sample,
                                                    static_cast<int64_t>(key.stream), 0.25, at::IntArrayRef(part.global_shape),
                                                    at::IntArrayRef(part.offset));
      };
      EXPECT_TRUE(at::equal(of_gpu({}), philox_dropout(x, 0.25, key))) << dtype << " " << length;
      EXPECT_TRUE(at::equal(of_gpu(window), philox_dropout(x, 0.25, key, window))) << dtype << " " << length;
    }
  }
}

TEST(PhiloxDropout, GradientIsTheSameMask) {
  const MaskKey key = key_of({1, 2});
  const auto dropped = [&](const std::vector<at::Tensor>& in) { return philox_dropout(in[0].square(), 0.3, key); };
  EXPECT_TRUE(tests::gradcheck(dropped, {tests::test_values({2, 3, 7}, 1)}));
}

TEST(PhiloxDropout, RateZeroIsTheIdentity) {
  const at::Tensor x = at::ones({2, 3});
  EXPECT_TRUE(philox_dropout(x, 0.0, {}).is_same(x));
}

TEST(PhiloxDropPath, DropsWholeSamplesAndKeepsTheMean) {
  const at::Tensor samples = at::arange(20000, at::kLong);
  const MaskKey key{5, at::scalar_tensor(int64_t{0}, at::kLong), samples};
  const at::Tensor out = philox_drop_path(at::ones({20000, 2, 3}), 0.2, key);
  const at::Tensor flat = out.flatten(1);
  EXPECT_TRUE(at::equal(flat, flat.slice(1, 0, 1).expand_as(flat)));
  EXPECT_TRUE(tests::within(flat.select(1, 0).ne(0).to(at::kDouble).mean().item<double>(), 0.8,
                            {5 * std::sqrt(0.16 / 20000), "five standard errors"}));
  EXPECT_FLOAT_EQ(out.max().item<float>(), 1.25F);
}

TEST(PhiloxDropPath, GradientIsTheSameDecision) {
  const MaskKey key = key_of({1, 2, 3, 4});
  const auto dropped = [&](const std::vector<at::Tensor>& in) { return philox_drop_path(in[0].square(), 0.5, key); };
  EXPECT_TRUE(tests::gradcheck(dropped, {tests::test_values({4, 3}, 1)}));
}

}  // namespace
}  // namespace welkin::ops
