// SPDX-License-Identifier: Apache-2.0
#include "train/learn/spike_guard.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

namespace welkin::train {
namespace {

using config::SpikeAction;

at::Tensor scalar(double value) { return at::full({}, value, at::kFloat); }

// Whether a step of this loss and norm is a spike; the guard has seen it then.
bool step(SpikeGuard& guard, double loss, double norm = 1) {
  const at::Tensor spike = guard.judge(scalar(loss), scalar(norm));
  guard.add(scalar(loss), scalar(norm), spike, guard.skips() ? spike : scalar(0));
  return spike.item<float>() != 0;
}

// 8 steps around 1 with a median absolute deviation of 0.1.
void fill(SpikeGuard& guard) {
  for (const double loss : {1.0, 1.1, 0.9, 1.0, 1.2, 0.8, 1.1, 0.9}) EXPECT_FALSE(step(guard, loss));
}

config::HealthConfig watched(SpikeAction action, int64_t window = 32) {
  return {.on_spike = action, .spike_factor = 4, .spike_window = window, .spike_patience = 2};
}

TEST(SpikeGuard, JudgesByMedianAndSpread) {
  SpikeGuard guard(watched(SpikeAction::Skip), at::kCPU);
  fill(guard);
  EXPECT_FALSE(step(guard, 1.5));  // 1 + 4 * 1.4826 * 0.1 = 1.59
  EXPECT_TRUE(step(guard, 1.7));
  EXPECT_FALSE(step(guard, 1.0));       // what was skipped is not in the window
  EXPECT_TRUE(step(guard, 1.0, 1.05));  // the norms were all 1, whose least deviation is a hundredth: limit 1.04
}

TEST(SpikeGuard, WaitsForAQuarterOfTheWindow) {
  SpikeGuard guard(watched(SpikeAction::Skip, 8), at::kCPU);
  EXPECT_FALSE(step(guard, 1));
  EXPECT_FALSE(step(guard, 1000));
  SpikeGuard other(watched(SpikeAction::Skip, 8), at::kCPU);
  EXPECT_FALSE(step(other, 1));
  EXPECT_FALSE(step(other, 1));
  EXPECT_TRUE(step(other, 1000));
}

TEST(SpikeGuard, WhatIsNoNumberIsASpikeAndStaysOutOfTheWindow) {
  SpikeGuard guard(watched(SpikeAction::Rollback), at::kCPU);
  fill(guard);
  EXPECT_TRUE(step(guard, std::nan("")));
  EXPECT_TRUE(step(guard, 1, INFINITY));
  EXPECT_FALSE(step(guard, 1));
}

TEST(SpikeGuard, ANewLevelIsTakenAfterThePatience) {
  SpikeGuard guard(watched(SpikeAction::Skip), at::kCPU);
  fill(guard);
  EXPECT_TRUE(step(guard, 50));
  EXPECT_TRUE(step(guard, 50));
  for (int i = 0; i < 8; ++i) EXPECT_FALSE(step(guard, 50));
  EXPECT_TRUE(step(guard, 500));  // eight steps of the new level are a quarter of the window
}

TEST(SpikeGuard, WarningAloneChangesNothing) {
  SpikeGuard guard(watched(SpikeAction::Warn), at::kCPU);
  EXPECT_FALSE(guard.skips());
  fill(guard);
  EXPECT_TRUE(step(guard, 50));
  EXPECT_EQ(guard.lowered(scalar(3)).item<float>(), 3);
}

TEST(SpikeGuard, TheRateIsLowerForSoManyUpdates) {
  config::HealthConfig config = watched(SpikeAction::Skip);
  config.spike_lr_factor = 0.5;
  config.spike_lr_steps = 2;
  SpikeGuard guard(config, at::kCPU);
  fill(guard);
  const auto rate = [&] { return guard.lowered(scalar(8)).item<float>(); };
  EXPECT_EQ(rate(), 8);
  step(guard, 50);
  EXPECT_EQ(rate(), 4);
  step(guard, 1);
  EXPECT_EQ(rate(), 4);
  step(guard, 1);
  EXPECT_EQ(rate(), 8);
}

TEST(SpikeGuard, ACheckpointBringsTheWindowBack) {
  SpikeGuard first(watched(SpikeAction::Skip), at::kCPU), second(watched(SpikeAction::Skip), at::kCPU);
  fill(first);
  const auto from = first.states(), to = second.states();
  ASSERT_EQ(from.size(), to.size());
  for (size_t i = 0; i < from.size(); ++i) to[i].value.copy_(from[i].value);
  for (const double loss : {1.5, 1.7, 50.0, 1.0, 1.6}) EXPECT_EQ(step(first, loss), step(second, loss)) << loss;
}

}  // namespace
}  // namespace welkin::train
