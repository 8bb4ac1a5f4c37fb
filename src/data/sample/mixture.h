// SPDX-License-Identifier: Apache-2.0
// Several data sets as one, whose samples are drawn by weight. The order of samples, and with it everything that a resumed run
// needs, is that of any data set: a function of seed, epoch and position.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/sample/dataset.h"

namespace welkin::data {

struct MixturePart {
  std::string name;  // for logs and messages
  double weight = 1;
  std::unique_ptr<Dataset> dataset;
};

// Number of samples of each part in an epoch of `total`, by weight; the sum is `total`. Remainders go to the largest fractions,
// the earlier one of equal ones.
std::vector<int64_t> mixture_shares(int64_t total, const std::vector<double>& weights);

class Mixture final : public Dataset {
 public:
  // Drawn: an epoch has as many samples as the parts have together, at most `limit` (0: no limit), shared out by weight. A part
  // that has fewer gives each of its samples equally often, and draws the missing ones among them. A part that has more gives a
  // choice that differs from epoch to epoch. EverySample: the samples of all parts, each once; weights do not count.
  enum class Order { Drawn, EverySample };
  // DataError for parts whose channels, units, grid or normalisation differ, or that have no sample.
  Mixture(std::vector<MixturePart> parts, Order order, int64_t limit = 0);

  int64_t size() const override { return first_.back(); }
  const SampleSpec& spec() const override { return parts_.front().dataset->spec(); }
  SamplePlan plan(SampleKey key, const Region& wanted) const override;
  void read(const SamplePlan& plan, SampleView out) const override;
  std::optional<int64_t> following(int64_t index) const override;
  // A mixture of the sequences of each part, with the same weights: an epoch has as many as they have together.
  std::unique_ptr<Dataset> of_steps(int64_t steps, int64_t longest) const override;
  std::vector<std::string> describe() const override;
  std::vector<std::string> warnings() const override;
  std::vector<std::string> notes() const override;
  bool transforms() const override;
  std::string location(const SamplePlan& plan) const override;
  uint64_t bytes_requested() const override;
  std::vector<FileFingerprint> fingerprints() const override;

 private:
  std::vector<const Dataset*> datasets() const;
  size_t part_of(int64_t index) const;
  void check_alike() const;

  std::vector<MixturePart> parts_;
  Order order_;
  int64_t limit_;
  std::vector<int64_t> first_;  // sample of each part, and the number of all
};

}  // namespace welkin::data
