// SPDX-License-Identifier: Apache-2.0
// Lion, LAMB, LARS and Adafactor on many float32 tensors on a CPU, like Adam in ops/update/fused_update.h: one pass over every
// array, and a pass before it if norms are needed. The order of sums does not depend on the number of threads.
#pragma once

#include <vector>

#include "ops/update/fused_update.h"
#include "ops/update/pieces.h"

namespace welkin::ops {

void fused_lion(const std::vector<UpdateSpan>& runs, const LionRule& rule);  // `first`: the average

// Updates the averages and returns sums of squares of weights and updates of each run. Then the weights, by one step per run.
RunSums lamb_sums(const std::vector<UpdateSpan>& runs, const LambRule& rule);
void fused_lamb(const std::vector<UpdateSpan>& runs, const LambRule& rule, const std::vector<float>& steps);

// Sums of squares of weights and gradients; then the update with each run's own rate. `first`: the velocity.
RunSums lars_sums(const std::vector<UpdateSpan>& runs, const LarsRule& rule);
void fused_lars(const std::vector<UpdateSpan>& runs, const LarsRule& rule, const std::vector<float>& rates);

// Like LAMB; `first`: the average of squares.
RunSums adafactor_sums(const std::vector<UpdateSpan>& runs, const AdafactorRule& rule);
void fused_adafactor(const std::vector<UpdateSpan>& runs, const AdafactorRule& rule, const std::vector<float>& steps);

// A matrix in memory, with the averages of the squares of its rows and columns. It is stored as blocks of its columns, one
// block after the other, each with its part of all rows, row after row.
struct FactoredSpan {
  int64_t rows = 0, columns = 0;  // columns of a block
  int64_t blocks = 1;
  float* value = nullptr;
  const float* gradient = nullptr;
  float* row_average = nullptr;
  float* column_average = nullptr;  // block after block
  bool mean_of_columns = false;     // the mean is taken over the columns' averages instead of the rows'
};

// Scratch memory for the largest matrix; kept by the caller.
struct FactoredScratch {
  std::vector<float> columns;
  std::vector<double> rows;
};

// Updates both averages and returns sums of squares of weights and updates. `floor_of_mean`: lower limit of the divisor.
std::array<double, 2> factored_sums(const FactoredSpan& matrix, const AdafactorRule& rule, double floor_of_mean,
                                    FactoredScratch& scratch);
void fused_factored(const FactoredSpan& matrix, const AdafactorRule& rule, double floor_of_mean, float step);

// average += share (value - average), `first`: the average; `gradient` is not read.
void fused_average(const std::vector<UpdateSpan>& runs, float share);

}  // namespace welkin::ops
