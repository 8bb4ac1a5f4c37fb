// SPDX-License-Identifier: Apache-2.0
// Meters for a run: means that can be saved and resumed, windows with robust statistics, throughput.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/stopwatch.h"

namespace welkin::observe {

// A weighted mean in double. Sum and weight are its whole state, for checkpoints and for sums over ranks.
struct MeanMeter {
  double sum = 0;
  double weight = 0;

  void add(double value, double value_weight = 1) {
    sum += value * value_weight;
    weight += value_weight;
  }
  double mean() const { return weight != 0 ? sum / weight : 0.0; }
};

// The last `capacity` values. Statistics of an empty window are 0.
class Window {
 public:
  explicit Window(size_t capacity);

  void add(double value);
  size_t count() const { return values_.size(); }
  double mean() const;
  double median() const { return quantile(0.5); }
  double spread() const { return quantile(0.75) - quantile(0.25); }  // the interquartile range: insensitive to one slow step
  double quantile(double share) const;                               // linear between order statistics, share in [0, 1]

 private:
  size_t capacity_;
  size_t next_ = 0;
  std::vector<double> values_;  // a ring once it is full
};

// Units (samples, FLOPs) per second of wall time since start().
class Throughput {
 public:
  void start() {
    units_ = 0;
    watch_.restart();
  }
  void add(double units) { units_ += units; }
  double units() const { return units_; }
  double seconds() const { return watch_.seconds(); }
  double per_second() const {
    const double elapsed = seconds();
    return elapsed > 0 ? units_ / elapsed : 0.0;
  }

 private:
  Stopwatch watch_;
  double units_ = 0;
};

}  // namespace welkin::observe
