// SPDX-License-Identifier: Apache-2.0
// Pairs of input and target that another thread hands over while a run trains on them: a buffer of bounded memory between the
// two. The producer waits while it is full; the training thread waits until it can take a whole step.
//
// A step draws at random, without regard to when pairs came: the draws are a function of the seed and the order of the pairs
// alone. Each pair is drawn `uses` times and then let go; the next one takes its place (a shuffle buffer). The first pairs may be
// held out for validation.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace welkin::data {

struct StreamedPair {
  std::vector<float> input, target;  // (C, ...) row-major, in the units of their producer
};

struct PairStreamOptions {
  int64_t pairs = 256;   // in memory besides those held out: `batch` of them wait, the others are drawn from
  int64_t batch = 1;     // draws of one step; at most half of `pairs`
  int64_t uses = 1;      // draws of one pair
  int64_t held_out = 0;  // of the first ones
  uint64_t seed = 0;
};

// One thread draws, any number hand over.
class PairStream {
 public:
  explicit PairStream(const PairStreamOptions& options);

  // Over: pairs are no longer drawn.
  enum class Given { Taken, Full, Over };
  // Takes the pair, and leaves in its place one that was let go, of any values, or an empty one. Waits for at most `patience`
  // where the buffer is full; if it still is then, `pair` is untouched. ConfigError after end(), and the error of fail().
  Given give(StreamedPair& pair, std::chrono::milliseconds patience);
  // Ends the stream: the pairs that are there are used up. Any thread.
  void end();
  // Stops the drawing: give() no longer waits, and throws `error` where there is one.
  void fail(std::exception_ptr error);

  // Waits for the pairs held out and the first ones to draw from, or for the end of the pairs.
  void wait_for_first() const;
  // Called after wait_for_first(): calls `visit` of each of them, in the order in which they came.
  void visit_first(const std::function<void(const StreamedPair&)>& visit) const;
  const std::vector<StreamedPair>& held_out() const { return held_out_; }  // after wait_for_first()

  // Waits until a step can draw without waiting; true if enough pairs are left. Polls `is_stopped`; false once that is true.
  bool wait_for_step(const std::function<bool()>& is_stopped) const;
  // Copies the pair that is drawn next. Empty spans are not wanted. DataError where the pairs have ended.
  void draw(std::span<float> input, std::span<float> target);

  const PairStreamOptions& options() const { return options_; }
  int64_t given() const;  // pairs so far
  // A text for the log: the number of pairs, and how long each side waited for the other.
  std::string text() const;
  double waited_s() const;  // of give(), for a place

 private:
  struct Drawn {
    StreamedPair pair;
    int64_t uses = 0;
  };
  size_t window() const { return static_cast<size_t>(options_.pairs - options_.batch); }
  bool has_first() const { return has_ended_ || (held_out_is_full() && waiting_.size() + drawn_.size() >= window()); }
  bool held_out_is_full() const { return static_cast<int64_t>(held_out_.size()) == options_.held_out; }
  bool has_place() const { return !held_out_is_full() || waiting_.size() + drawn_.size() < static_cast<size_t>(options_.pairs); }
  void refill();

  const PairStreamOptions options_;
  mutable std::mutex mutex_;
  mutable std::condition_variable came_;  // a pair, or the end
  std::condition_variable went_;          // a pair, or the thread that draws them
  std::vector<StreamedPair> held_out_;
  std::deque<StreamedPair> waiting_;
  std::vector<Drawn> drawn_;          // the window
  std::vector<StreamedPair> let_go_;  // memory for others
  int64_t draws_ = 0, given_ = 0;
  double waited_s_ = 0;           // of give(), for a place
  mutable double awaited_s_ = 0;  // of wait_for_step(), for pairs
  bool has_ended_ = false, is_abandoned_ = false;
  std::exception_ptr error_;
};

}  // namespace welkin::data
