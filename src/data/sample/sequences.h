// SPDX-License-Identifier: Apache-2.0
// Samples of several steps of a model, from a data set whose samples follow each other in time: the input of the first step,
// the channels that later steps know in advance, and all targets. They are channels, so all code that reads, cuts, transforms
// and shares out samples works on them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/sample/dataset.h"
#include "data/sample/resident_arrays.h"

namespace welkin::data {

// For each target channel the input channel of the newest step that is the same quantity, -1 where there is none.
std::vector<int64_t> earlier_channels(const SampleSpec& spec);
// Input channels of the newest step whose values are known of any time.
std::vector<int64_t> known_channels(const SampleSpec& spec);
// True if the input is an earlier state of the target, so that a prediction can be the next input: fields in time.
bool is_state_of_target(const SampleSpec& spec);

// Spec of n steps: the input's channels, n - 1 times the known ones, n times the target's ("t2m[+2]": that of the second).
SampleSpec sequence_spec(const SampleSpec& one, int64_t steps);

// Steps of truth after a sample, its own target among them; at most `most` are counted.
int64_t steps_after(const Dataset& dataset, int64_t index, int64_t most);
// The samples that begin so many steps, ascending. ConfigError, naming the longest run of steps, where there is none.
std::vector<int64_t> sequence_starts(const Dataset& one, int64_t steps);

class Sequences : public Dataset {
 public:
  // Sample i begins at sample (*starts)[i] of `one`, which outlives this and has `steps` steps of truth from there on. With the
  // starts of longer sequences all lengths have the same samples in the same order.
  Sequences(const Dataset& one, int64_t steps, std::shared_ptr<const std::vector<int64_t>> starts);

  Sequences(const Sequences&) = delete;
  Sequences& operator=(const Sequences&) = delete;

  int64_t size() const override { return static_cast<int64_t>(starts_->size()); }
  const SampleSpec& spec() const override { return spec_; }
  // `index` of a plan is that of the first step in the data set of single steps.
  SamplePlan plan(SampleKey key, const Region& wanted) const override;
  void read(const SamplePlan& plan, SampleView out) const override;
  std::vector<std::string> describe() const override { return one_.describe(); }
  std::vector<std::string> warnings() const override { return one_.warnings(); }
  std::vector<std::string> notes() const override { return one_.notes(); }
  bool transforms() const override { return one_.transforms(); }
  const ResidentArrays* resident() const override;
  std::string location(const SamplePlan& plan) const override { return one_.location(plan); }
  uint64_t bytes_requested() const override { return one_.bytes_requested(); }
  std::vector<FileFingerprint> fingerprints() const override { return one_.fingerprints(); }

 private:
  // The cuts of all steps, for data on a device.
  class Held : public ResidentArrays {
   public:
    explicit Held(const Sequences& all) : all_(all) {}
    std::vector<ResidentArray> arrays() const override { return held().arrays(); }
    void read_plane(int64_t array, int64_t channel, int64_t index, std::span<float> out) const override {
      held().read_plane(array, channel, index, out);
    }
    std::string plane_location(int64_t array, int64_t channel, int64_t index) const override {
      return held().plane_location(array, channel, index);
    }
    ResidentSample crops(const SamplePlan& plan) const override;

   private:
    const ResidentArrays& held() const { return *all_.one_.resident(); }
    const Sequences& all_;
  };

  SamplePlan after(const SamplePlan& plan) const;

  const Dataset& one_;
  int64_t steps_;
  std::shared_ptr<const std::vector<int64_t>> starts_;
  std::vector<int64_t> known_;
  SampleSpec spec_;
  Held held_{*this};
};

}  // namespace welkin::data
