// SPDX-License-Identifier: Apache-2.0
#include "model/layers/instance_norm.h"

#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "tolerance.h"

namespace welkin::model {
namespace {

// A gradient whose channels lie last, as one that comes out of tokens: torch's own backward pass takes it wrongly for one sample.
TEST(InstanceNorm, GradientsDoNotDependOnHowTheOneThatArrivesLies) {
  constexpr int64_t kChannels = 8, kHeight = 17, kWidth = 32;
  for (const int64_t batch : {1, 2}) {
    const at::Tensor x = at::randn({batch, kChannels, kHeight, kWidth});
    const at::Tensor lying = at::randn({batch, kHeight * kWidth, kChannels}).transpose(1, 2).unflatten(2, {kHeight, kWidth});
    const auto gradients = [&](const at::Tensor& arriving) {
      InstanceNorm norm("norm", kChannels);
      norm.initialise(1);
      const at::Tensor input = x.clone().requires_grad_();
      norm.forward(input).backward(arriving);
      return std::vector<at::Tensor>{input.grad(), norm.weight.grad(), norm.bias.grad()};
    };
    const auto got = gradients(lying), wanted = gradients(lying.contiguous());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(got[i].equal(wanted[i])) << batch << " " << i;
    EXPECT_TRUE(tests::close(got[2], lying.sum({0, 2, 3}), at::kFloat, kHeight * kWidth));
  }
}

}  // namespace
}  // namespace welkin::model
