// SPDX-License-Identifier: Apache-2.0
// Weights in a file: there while they are held, changed or not, and without memory otherwise.
#include "train/offload/weight_store.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <vector>

#include "scratch_folder.h"

namespace welkin::train {
namespace {

class StoredWeights : public ::testing::Test {
 protected:
  // One of them permuted, one a view of more.
  std::vector<at::Tensor> weights() {
    return {at::arange(6, at::kFloat).view({2, 3}).t(), at::arange(5000, at::kFloat).narrow(0, 7, 3000),
            at::full({}, 2.5, at::kFloat)};
  }
  void hold(WeightStore& store, size_t number) {
    store.start(number);
    store.wait(number);
  }

  const ScratchFolder folder;
};

TEST_F(StoredWeights, HaveMemoryWhileTheyAreHeld) {
  const std::vector<at::Tensor> own = weights();
  WeightStore store(folder.path(), own);
  const std::vector<at::Tensor> wanted = weights();
  for (int round = 0; round < 2; ++round) {
    for (size_t i = 0; i < own.size(); ++i) {
      EXPECT_EQ(own[i].storage().nbytes(), 0u);
      hold(store, i);
      hold(store, i);  // twice
      EXPECT_TRUE(at::equal(own[i], wanted[i])) << i;
      EXPECT_EQ(own[i].strides(), wanted[i].strides());
      store.let_go(i, /*is_changed=*/false);
      EXPECT_TRUE(at::equal(own[i], wanted[i])) << i;
      store.let_go(i, /*is_changed=*/false);
      EXPECT_EQ(own[i].storage().nbytes(), 0u);
    }
  }
}

TEST_F(StoredWeights, KeepWhatWasChanged) {
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> own = weights();
  WeightStore store(folder.path(), own);
  for (size_t i = 0; i < own.size(); ++i) {
    hold(store, i);
    own[i].add_(1);
    store.let_go(i, /*is_changed=*/true);
  }
  for (size_t i = 0; i < own.size(); ++i) {
    hold(store, i);
    EXPECT_TRUE(at::equal(own[i], weights()[i] + 1)) << i;
    own[i].add_(1);
    store.let_go(i, /*is_changed=*/false);  // a change that nobody tells of is lost
    hold(store, i);
    EXPECT_TRUE(at::equal(own[i], weights()[i] + 1)) << i;
    store.let_go(i, /*is_changed=*/false);
  }
}

// A view that was made before finds the values where the weight's are.
TEST_F(StoredWeights, AreFoundByTheirViews) {
  const at::Tensor own = at::arange(12, at::kFloat).view({3, 4}).clone(), view = own.t();
  WeightStore store(folder.path(), {own});
  hold(store, 0);
  EXPECT_TRUE(at::equal(view, at::arange(12, at::kFloat).view({3, 4}).t()));
  store.let_go(0, /*is_changed=*/false);
}

}  // namespace
}  // namespace welkin::train
