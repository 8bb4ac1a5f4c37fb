// SPDX-License-Identifier: Apache-2.0
// The buffer between who hands pairs over and who draws them: bounded, each pair as often as it is to be used, the same draws
// whatever the threads do.
#include "data/online/pair_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "core/error.h"

namespace welkin::data {
namespace {

using namespace std::chrono_literals;
using Given = PairStream::Given;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr auto kNow = 0ms, kLong = 20'000ms;

Given give(PairStream& stream, int number, std::chrono::milliseconds patience = kLong) {
  StreamedPair pair{.input = {static_cast<float>(number), 0.5F}, .target = {static_cast<float>(-number)}};
  return stream.give(pair, patience);
}

bool goes_on() { return false; }

int draw(PairStream& stream) {
  std::vector<float> input(2), target(1);
  stream.draw(input, target);
  EXPECT_EQ(input[1], 0.5F);
  EXPECT_EQ(target[0], -input[0]);
  return static_cast<int>(input[0]);
}

// All draws of whole steps, while another thread hands over `pairs`.
std::vector<int> draws_of(const PairStreamOptions& options, int pairs, std::chrono::microseconds pause = {},
                          std::chrono::microseconds step = {}) {
  PairStream stream(options);
  std::thread maker([&] {
    for (int i = 0; i < pairs; ++i) {
      EXPECT_EQ(give(stream, i), Given::Taken);
      std::this_thread::sleep_for(pause);
    }
    stream.end();
  });
  std::vector<int> draws;
  stream.wait_for_first();
  while (stream.wait_for_step(goes_on)) {
    for (int64_t i = 0; i < options.batch; ++i) draws.push_back(draw(stream));
    std::this_thread::sleep_for(step);
  }
  maker.join();
  return draws;
}

TEST(PairStream, EachPairIsUsedAsOftenAsItIsToBe) {
  for (const int64_t uses : {1, 3}) {
    const std::vector<int> draws = draws_of({.pairs = 12, .batch = 4, .uses = uses}, 40);
    ASSERT_EQ(draws.size(), static_cast<size_t>(40 * uses));
    std::vector<int64_t> counts(40, 0);
    for (const int number : draws) ++counts[static_cast<size_t>(number)];
    EXPECT_THAT(counts, Each(uses));
    EXPECT_FALSE(std::ranges::is_sorted(draws));
  }
}

TEST(PairStream, TheDrawsDoNotDependOnWhoWaits) {
  const PairStreamOptions options{.pairs = 16, .batch = 4, .uses = 2, .held_out = 3, .seed = 7};
  const std::vector<int> draws = draws_of(options, 60);
  EXPECT_EQ(draws_of(options, 60, 300us), draws);
  EXPECT_EQ(draws_of(options, 60, {}, 1000us), draws);
  PairStreamOptions other = options;
  other.seed = 8;
  EXPECT_NE(draws_of(other, 60), draws);
}

TEST(PairStream, APairIsDrawnWithinTheWindowThatFollowsIt) {
  const std::vector<int> draws = draws_of({.pairs = 8, .batch = 2, .uses = 1}, 100);
  for (size_t i = 0; i < draws.size(); ++i) EXPECT_LT(draws[i], static_cast<int>(i) + 6);  // it came before the window was full
}

TEST(PairStream, WhoHandsOverWaitsWhereItIsFull) {
  PairStream stream({.pairs = 4, .batch = 2, .uses = 1, .held_out = 1});
  for (int i = 0; i < 5; ++i) EXPECT_EQ(give(stream, i, kNow), Given::Taken);
  StreamedPair pair{.input = {5, 0.5F}, .target = {-5}};
  EXPECT_EQ(stream.give(pair, 1ms), Given::Full);
  EXPECT_THAT(pair.input, ElementsAre(5, 0.5F));
  EXPECT_EQ(stream.given(), 5);
  EXPECT_GT(stream.waited_s(), 0);
  std::thread later([&] { EXPECT_EQ(stream.give(pair, kLong), Given::Taken); });
  draw(stream);
  later.join();
  EXPECT_EQ(pair.input.size(), 2U);  // the memory of the one that was let go
  EXPECT_THAT(stream.held_out().front().input, ElementsAre(0, 0.5F));
}

TEST(PairStream, TheEndIsUsedUpInWholeSteps) {
  EXPECT_EQ(draws_of({.pairs = 8, .batch = 4, .uses = 1}, 11).size(), 8U);
  EXPECT_EQ(draws_of({.pairs = 8, .batch = 4, .uses = 3}, 3).size(), 8U);
  EXPECT_TRUE(draws_of({.pairs = 8, .batch = 4, .uses = 1}, 3).empty());
  EXPECT_TRUE(draws_of({.pairs = 8, .batch = 4, .uses = 1, .held_out = 5}, 5).empty());
}

TEST(PairStream, WhatComesFirstIsSeenBeforeItIsDrawn) {
  PairStream stream({.pairs = 4, .batch = 1, .uses = 1, .held_out = 2});
  std::thread maker([&] {
    for (int i = 0; i < 6; ++i) give(stream, i);
  });
  stream.wait_for_first();
  maker.join();
  std::vector<float> seen;
  stream.visit_first([&](const StreamedPair& pair) { seen.push_back(pair.input.front()); });
  EXPECT_THAT(seen, ElementsAre(0, 1, 2, 3, 4));  // two held out, three in the window
}

TEST(PairStream, ARunThatIsStoppedNoLongerWaits) {
  PairStream stream({.pairs = 4, .batch = 2});
  EXPECT_FALSE(stream.wait_for_step([] { return true; }));
  stream.end();
  std::vector<float> input(2), target(1);
  EXPECT_THROW(stream.draw(input, target), DataError);
  EXPECT_THROW(give(stream, 0), ConfigError);
}

TEST(PairStream, WhoHandsOverHearsThatTheRunIsOver) {
  PairStream stream({.pairs = 2, .batch = 1});
  while (give(stream, 0, kNow) == Given::Taken) continue;
  std::thread maker([&] { EXPECT_EQ(give(stream, 1), Given::Over); });
  stream.fail(nullptr);
  maker.join();
  PairStream failed({.pairs = 2, .batch = 1});
  failed.fail(std::make_exception_ptr(std::runtime_error("the run failed")));
  EXPECT_THROW(give(failed, 0), std::runtime_error);
}

}  // namespace
}  // namespace welkin::data
