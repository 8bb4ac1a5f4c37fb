// SPDX-License-Identifier: Apache-2.0
// Samples of standard normals of any shape that need no file: for measuring a step without reading.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "data/sample/dataset.h"

namespace welkin::data {

// Sample i is a window of one pool of normals at a place drawn from (seed, i): as fast as a copy, different from sample to
// sample. Blocks of the pool are made when a sample first needs them: a short run uses a fraction.
class SyntheticFields : public Dataset {
 public:
  SyntheticFields(SampleSpec spec, int64_t size, uint64_t seed);

  int64_t size() const override { return size_; }
  const SampleSpec& spec() const override { return spec_; }
  SamplePlan plan(SampleKey key, const Region& wanted) const override;
  void read(const SamplePlan& plan, SampleView out) const override;
  // Samples are independent normals, so any order will do.
  std::optional<int64_t> following(int64_t index) const override {
    return index + 1 < size_ ? std::optional(index + 1) : std::nullopt;
  }

 private:
  void fill(std::span<float> out, uint64_t place) const;
  void fill_region(const ArraySpec& spec, const Region& region, std::span<float> out, uint64_t place) const;

  SampleSpec spec_;
  int64_t size_;
  uint64_t key_;
  void need(size_t first, size_t count) const;  // from any number of threads

  mutable std::vector<float> pool_;
  mutable std::unique_ptr<std::once_flag[]> made_;  // by block of the pool
};

}  // namespace welkin::data
