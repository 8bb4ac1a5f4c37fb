// SPDX-License-Identifier: Apache-2.0
#include "plan/backward_memory.h"

#include <gtest/gtest.h>

namespace welkin::plan {
namespace {

constexpr double kMib = 1 << 20;

// Two blocks of 8 MiB weights with 3 MiB activations each, in packed buckets of a block, on four ranks.
BackwardPass two_blocks() {
  return {.layers = {{.gradients = 8 * kMib, .activations = 3 * kMib, .begins_unit = true},
                     {.gradients = 8 * kMib, .activations = 3 * kMib, .begins_unit = true}},
          .ranks = 4,
          .bucket_bytes = 8 * kMib,
          .alone_bytes = 1000 * kMib};
}

void expect_peak(const BackwardPass& pass, double gradients, double under_way, double activations) {
  const BackwardPeak peak = backward_peak(pass);
  EXPECT_EQ(peak.gradients, gradients * kMib);
  EXPECT_EQ(peak.under_way, under_way * kMib);
  EXPECT_EQ(peak.activations, activations * kMib);
}

// The last block's gradients are on their way, whole and the part of the sum, when the first one's are packed beside themselves.
TEST(BackwardPeak, IsWhereABucketIsPackedWhileTheOneBeforeTravels) { expect_peak(two_blocks(), 8, 10 + 8, 0); }

TEST(BackwardPeak, OfManyActivationsIsWhereTheFirstGradientsAreMade) {
  BackwardPass pass = two_blocks();
  pass.layers[0].activations = pass.layers[1].activations = 30 * kMib;
  expect_peak(pass, 8, 0, 60);
  pass.layers[1].activations = 2 * kMib;  // the last block's gradients travel, and what the first one has kept is still there
  expect_peak(pass, 8, 10, 30);
}

// Pieces of earlier passes stand all the time, and nothing new stays of what lands.
TEST(BackwardPeak, PiecesOfEarlierPassesAreAddedTo) {
  BackwardPass pass = two_blocks();
  pass.has_pieces = true;
  expect_peak(pass, 4 + 8, 10 + 8, 0);
}

// Whole gradients of earlier passes stand until they are sent, and a gradient is made beside its sum.
TEST(BackwardPeak, WholeGradientsOfEarlierPassesStandUntilTheyAreSent) {
  BackwardPass pass = two_blocks();
  pass.adds_up = true;
  expect_peak(pass, 16 + 8, 0, 6);
  pass.layers[0].activations = pass.layers[1].activations = 0;
  expect_peak(pass, 8 + 8, 10, 0);  // the first block's is made while the last one's travels
}

// Each of the three other ranks sends a quarter of a bucket. It is added while the next gradients are made.
TEST(BackwardPeak, ValuesOfOthersHaveRoomUntilTheNextGradientsAreMade) {
  BackwardPass pass = two_blocks();
  pass.is_received = true;
  expect_peak(pass, 8, 10 + 6, 3);  // the first block's gradients are made while the last one's are received
  for (BackwardLayer& layer : pass.layers) layer.activations = 0;
  expect_peak(pass, 8, 10 + 8, 0);
  pass.travelling = 0.5;
  expect_peak(pass, 8, 5 + 4, 0);
}

// A third bucket waits for the first one, of which a piece stays: both are there while the fourth block's gradients are made.
TEST(BackwardPeak, TwoBucketsAreUnderWayAtMost) {
  BackwardPass pass = two_blocks();
  pass.layers.insert(pass.layers.begin(), 2, pass.layers[0]);
  for (BackwardLayer& layer : pass.layers) layer.activations = 0;
  expect_peak(pass, 2 + 8, 2 * 10, 0);
}

// The first block's gradients follow the last one's, and both are there with their parts of the sum.
TEST(BackwardPeak, LargeGradientsAreSentFromWhereTheyAre) {
  BackwardPass pass = two_blocks();
  for (BackwardLayer& layer : pass.layers) layer.activations = 0;
  pass.alone_bytes = 8 * kMib;
  expect_peak(pass, 0, 2 * 10, 0);
  pass.travelling = 0.5;  // a copy
  expect_peak(pass, 8, 5 + 4, 0);
  pass.travelling = 1;
  pass.bucket_bytes = 100 * kMib;
  pass.layers.insert(pass.layers.begin(), {.gradients = kMib / 2});  // packed while the large ones of its bucket travel
  expect_peak(pass, 0.5, 2 * 10 + 0.5, 0);
}

// Where weights are shared out, a bucket ends with its unit; else it goes on until it is full, after a first one of 1 MiB.
TEST(BackwardPeak, BucketsAreThoseOfTheRun) {
  BackwardPass pass = two_blocks();
  for (BackwardLayer& layer : pass.layers) layer.activations = 0;
  pass.bucket_bytes = 100 * kMib;
  expect_peak(pass, 8, 10 + 8, 0);  // the first bucket is full with one layer
  pass.layers.push_back({.gradients = kMib});
  expect_peak(pass, 16, 1.25 + 16, 0);
  pass.ends_with_units = true;
  pass.layers.back().begins_unit = true;
  expect_peak(pass, 0.25 + 8, 10 + 8, 0);
}

}  // namespace
}  // namespace welkin::plan
