// SPDX-License-Identifier: Apache-2.0
// Pairs held out for validation, in memory and as an HDF5 file: arrays input and target, (pair, channel, ...), in the units of
// their producer, with names, units, grid, means and deviations.
#pragma once

#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "data/online/pair_stream.h"
#include "data/sample/dataset.h"

namespace welkin::data {

class HeldPairs : public Dataset {
 public:
  HeldPairs(SampleSpec spec, std::shared_ptr<const std::vector<StreamedPair>> pairs)
      : spec_(std::move(spec)), pairs_(std::move(pairs)) {}

  int64_t size() const override { return static_cast<int64_t>(pairs_->size()); }
  const SampleSpec& spec() const override { return spec_; }
  SamplePlan plan(SampleKey key, const Region& wanted) const override { return {.index = key.index, .region = wanted}; }
  void read(const SamplePlan& plan, SampleView out) const override;
  std::string location(const SamplePlan& plan) const override;

 private:
  SampleSpec spec_;
  std::shared_ptr<const std::vector<StreamedPair>> pairs_;
};

// Writes under a temporary name, then renames. DataError when the disk refuses.
void write_held_pairs(const std::filesystem::path& path, const SampleSpec& spec, const std::vector<StreamedPair>& pairs);

// `spec` says names and shapes; units, grid, means and deviations become those of the file. DataError for a file of other
// channels or another grid.
HeldPairs read_held_pairs(const std::filesystem::path& path, SampleSpec spec);
// The same without the pairs themselves.
SampleSpec read_held_spec(const std::filesystem::path& path, SampleSpec spec);

}  // namespace welkin::data
