// SPDX-License-Identifier: Apache-2.0
// The data of a run: its data sets, opened and checked before anything is written, and the loader that training reads.
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <memory>
#include <vector>

#include "data/pipeline/pipeline.h"
#include "data/sample/dataset.h"
#include "observe/timeline/span.h"
#include "train/replay/replay_buffer.h"
#include "train/run/data_notes.h"
#include "train/run/trainer_context.h"
#include "train/run/validation.h"
#include "train/step/layout.h"
#include "train/step/step_record.h"

namespace welkin::train {

class RunData {
 public:
  // `context` outlives it.
  explicit RunData(const TrainerContext& context);

  // Opens the data, staged to the node if the configuration says so. ConfigError, DataError for data that cannot be trained on.
  void open(c10::Device device);
  // ConfigError for numbers of samples that the layout cannot share. Every rank calls it.
  void check(const Layout& layout) const;
  // Makes the loader and returns the run's length, which follows from the loader's steps. `tracer` outlives the loader.
  RunLength start_loader(const Layout& layout, const observe::Tracer& tracer);

  const data::Dataset& train() const { return *train_; }  // for one step of the model
  // The data set that the loader reads: the same, or samples of several steps.
  const data::Dataset& samples() const { return sequences_ ? *sequences_ : *train_; }
  // Sets the number of model steps of the samples from the next step on, at the same place of the same order.
  void set_steps(int64_t steps);
  int64_t steps() const { return steps_; }
  bool has_sequences() const { return sequences_ != nullptr; }
  // Null without a replay buffer. With one, the loader gives the samples of its plan, with the inputs of the data.
  ReplayBuffer* replay() { return replay_.get(); }
  const data::Dataset& valid() const { return *valid_; }
  data::Pipeline& loader() { return *loader_; }
  bool has_loader() const { return loader_ != nullptr; }
  // Null if samples come from files. Else each is read once, in the step's own thread, after it came.
  const data::PairStream* stream() const { return stream_.get(); }
  // Waits for the samples of a step, if another program hands them over, until `is_stopped`. False if there are none: the
  // program has ended them, which before the first step is a DataError, or it was stopped.
  bool wait_for_step(const std::function<bool()>& is_stopped, bool is_first) const;
  DataNotes& notes() { return notes_; }
  // Fingerprints from when the files were opened: damage after that is no part of the run.
  const std::vector<data::FileFingerprint>& files() const { return files_; }
  int64_t samples_per_epoch() const { return samples_per_epoch_; }
  ReadingEvents reading_events(const Layout& layout);
  // Indices of a step's samples: those that this rank read if it reads all, else those of all ranks.
  std::vector<int64_t> samples_of(const StepRecord& record) const {
    return loader_options_.num_shards == 1 ? record.samples : loader_->samples_of_all({record.epoch, record.step});
  }
  // The first place where the data of a step are not finite, from the first rank that finds one; empty if they are finite.
  // Reads them again. Every rank calls it.
  std::string first_nonfinite(const data::PipelineState& step) const;

 private:
  std::string own_nonfinite(const data::PipelineState& step) const;
  void open_loader();
  void open_replay(const Layout& layout);
  void log_data_sets(const Layout& layout) const;
  void log_loader() const;

  const TrainerContext& context_;
  const config::RunConfig& config_;
  c10::Device device_ = c10::kCPU;
  std::unique_ptr<data::Dataset> train_, valid_;
  std::unique_ptr<data::Dataset> sequences_;  // null if samples have one step
  int64_t steps_ = 1;                         // steps of these samples
  std::unique_ptr<ReplayBuffer> replay_;
  std::shared_ptr<data::PairStream> stream_;
  data::PipelineOptions loader_options_;
  std::vector<data::FileFingerprint> files_;
  DataNotes notes_;
  std::unique_ptr<data::Pipeline> loader_;
  data::Region region_;  // the part of every sample that this rank reads
  data::SampleRules rules_;
  int64_t samples_per_epoch_ = 0;
  bool drops_last_ = false;
};

}  // namespace welkin::train
