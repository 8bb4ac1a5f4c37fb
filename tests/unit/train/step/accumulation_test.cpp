// SPDX-License-Identifier: Apache-2.0
// The lecture's listings of gradient accumulation, with a model of one matrix (D35): the second clears the gradients just before
// the update and so applies none of them. What Welkin's own step does with parts is trainer_test.cpp.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/mm.h>
#include <gtest/gtest.h>

#include "gradient_check.h"
#include "tolerance.h"

namespace welkin::train {
namespace {

constexpr int64_t kBatchSamples = 16, kParts = 4;

class SlideModel {
 public:
  SlideModel() { weights_.set_requires_grad(true); }

  // loss_fn(model(inputs), labels) of some of the samples.
  at::Tensor loss(int64_t begin, int64_t count) const {
    return (at::mm(inputs_.narrow(0, begin, count), weights_) - labels_.narrow(0, begin, count)).square().mean();
  }
  void zero_grad() { weights_.mutable_grad() = at::Tensor(); }
  // optimizer.step() of SGD, which passes by what has no gradient.
  void step() {
    const at::NoGradGuard no_grad;
    if (weights_.grad().defined()) weights_ -= 0.1 * weights_.grad();
  }
  at::Tensor weights() const { return weights_.detach().clone(); }

 private:
  at::Tensor weights_ = tests::test_values({4, 2}, 1), inputs_ = tests::test_values({kBatchSamples, 4}, 2),
             labels_ = tests::test_values({kBatchSamples, 2}, 3);
};

// The loop of the second listing, up to where its gradients are complete.
void accumulate(const SlideModel& model) {
  for (int64_t i = 0; i < kParts; ++i) {
    const at::Tensor loss = model.loss(i * kBatchSamples / kParts, kBatchSamples / kParts) / kParts;
    loss.backward();
  }
}

TEST(LectureAccumulation, ClearingBeforeTheUpdateLearnsNothing) {
  SlideModel model;
  accumulate(model);
  model.zero_grad();
  model.step();
  EXPECT_TRUE(model.weights().equal(SlideModel().weights()));
}

TEST(LectureAccumulation, UpdatingBeforeClearingIsTheFirstListing) {
  SlideModel parts, whole;
  accumulate(parts);
  parts.step();
  parts.zero_grad();
  whole.zero_grad();
  whole.loss(0, kBatchSamples).backward();
  whole.step();
  EXPECT_FALSE(whole.weights().equal(SlideModel().weights()));
  EXPECT_TRUE(tests::close(parts.weights(), whole.weights(), at::kDouble, 2 * kBatchSamples));
}

}  // namespace
}  // namespace welkin::train
