// SPDX-License-Identifier: Apache-2.0
// Confidence of means over starts: the starts are drawn again with replacement, in blocks of neighbours where they depend on each
// other (moving blocks: H. R. Kuensch, Ann. Statist. 17 (1989) 1217), and the spread of the drawn means is that of the mean.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace welkin::train {

struct Interval {
  double value = 0, low = 0, high = 0;  // low and high: 2.5 and 97.5 percent of the drawn ones
};

class Resampling {
 public:
  // A function of the seed and the numbers alone. `replicates` 0: no intervals.
  Resampling(int64_t num_cases, int64_t replicates, int64_t block, uint64_t seed);

  // `statistic` is given how often each case counts, in the order of the cases. NaN bounds without replicates.
  Interval interval(const std::function<double(const std::vector<double>&)>& statistic) const;

 private:
  int64_t num_cases_;
  std::vector<std::vector<double>> counts_;  // of each replicate
};

}  // namespace welkin::train
