// SPDX-License-Identifier: Apache-2.0
// A run that trains on pairs which another program hands over from its own loop. The program fills a pair's channels by name
// and gives it; a thread of the run draws from the given pairs (data/online/pair_stream.h). It begins with the first pair.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "config/resolve/resolve.h"
#include "core/process/signals.h"
#include "data/online/online_data.h"
#include "data/online/pair_stream.h"
#include "data/pipeline/sample_check.h"
#include "train/coupling/field_layout.h"
#include "train/learn/registries.h"
#include "train/run/trainer_context.h"

namespace welkin::train {

struct TrainingProgress {
  ReachedStep reached;
  int64_t pairs = 0;                                                                      // handed over so far
  double train_loss = std::numeric_limits<double>::quiet_NaN(), valid_loss = train_loss;  // of the last validation
  double waited_s = 0;                                                                    // of give(), for a free place
  bool is_running = false;
};

// One thread calls it, except for progress().
class PairTrainer : private RunListener {
 public:
  // The configuration has the data set `online`; another one is a ConfigError.
  PairTrainer(std::unique_ptr<Registries> registries, config::Resolved resolved, std::string init_from);
  // Stops a run that finish() has not ended, after its step, with a checkpoint.
  ~PairTrainer() override;

  std::filesystem::path folder() const;
  const data::ArraySpec& input() const { return spec_.input; }
  const data::ArraySpec& target() const { return spec_.target; }
  const std::vector<int64_t>& shape() const { return shape_; }  // of a field: without channels

  // Called before the first pair. `std` 0: mean and deviation are computed from the first pairs. ConfigError for a channel that
  // the run does not have, and for numbers that differ from those with which a resumed run began.
  void set_channel(const std::string& name, const data::OnlineFacts::Channel& channel);
  // Degrees, one value per row and per column; empty: not known.
  void set_grid(std::vector<double> latitude, std::vector<double> longitude);

  // Copies a channel of the next pair's input or target. ConfigError for other names, strides that do not fit, and values that
  // are not finite. NaN is taken if the run's nan_policy fills or leaves out such points.
  enum class Side { Input, Target };
  void set(Side side, const std::string& channel, const void* values, const FieldLayout& layout);
  // Hands over the pair, all of whose channels are set, and begins the next. If the buffer is full it waits for at most
  // `patience` (negative: for ever); if it still is full then, the pair is kept. Rethrows an error of the run.
  data::PairStream::Given give(std::chrono::milliseconds patience);

  TrainingProgress progress() const;  // any thread
  // No more pairs: the run uses up what it has, validates and saves. Rethrows its error. Called once.
  RunOutcome finish();

 private:
  void start();
  void run();
  void end(int signal);
  void stepped(const ReachedStep& at) override;
  void validated(const ReachedStep& at, double train_loss, double valid_loss, double rate) override;
  void take_facts_of_run();

  std::unique_ptr<Registries> registries_;
  config::Resolved resolved_;
  std::string init_from_;
  InterruptWatch interrupt_{InterruptWatch::Watched::None};
  data::OnlineFacts facts_;
  bool is_resumed_ = false;
  data::SampleSpec spec_;
  std::vector<int64_t> shape_;
  bool takes_nan_ = false;
  std::shared_ptr<data::PairStream> stream_;
  data::StreamedPair pair_;
  std::vector<bool> is_set_;  // for the input's channels, then the target's
  mutable std::mutex mutex_;  // guards the two below
  TrainingProgress progress_;
  bool is_over_ = false;
  RunOutcome outcome_;
  std::exception_ptr error_;
  std::thread thread_;  // joined before these two are read
};

}  // namespace welkin::train
