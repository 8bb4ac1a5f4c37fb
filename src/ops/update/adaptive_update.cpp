// SPDX-License-Identifier: Apache-2.0
#include "ops/update/adaptive_update.h"

#include <ATen/Parallel.h>

#include <algorithm>

namespace welkin::ops {
namespace {

const AdaptiveUpdateKernel& adaptive_kernel() { return update_kernel(instruction_set()).adaptive; }

constexpr int64_t kMostChunks = 16;  // of a matrix, each with sums of columns of its own

// Rows of a chunk: of no less than a piece, and the same for any number of threads.
int64_t rows_of_chunk(const FactoredSpan& matrix) {
  const int64_t of_piece = std::max<int64_t>(1, kPiece / matrix.columns);
  return std::max(of_piece, (matrix.rows + kMostChunks - 1) / kMostChunks);
}

// body(row) -> two sums.
template <typename Body>
std::array<double, 2> sums_of_rows(const FactoredSpan& matrix, Body&& body) {
  const int64_t rows = rows_of_chunk(matrix), chunks = (matrix.rows + rows - 1) / rows;
  std::array<std::array<double, 2>, kMostChunks> of_chunks{};
  at::parallel_for(0, chunks, 1, [&](int64_t first, int64_t last) {
    for (int64_t chunk = first; chunk < last; ++chunk) {
      auto& sums = of_chunks[static_cast<size_t>(chunk)];
      for (int64_t row = chunk * rows; row < std::min(matrix.rows, (chunk + 1) * rows); ++row) {
        const std::array<double, 2> more = body(chunk, row);
        sums = {sums[0] + more[0], sums[1] + more[1]};
      }
    }
  });
  std::array<double, 2> total{};
  for (const auto& sums : of_chunks) total = {total[0] + sums[0], total[1] + sums[1]};
  return total;
}

double mean_of(const float* values, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(values[i]);
  return sum / static_cast<double>(count);
}

// What a row's average is multiplied by in the estimate of an element.
double factor_of(const FactoredSpan& matrix, double floor_of_mean) {
  const double mean =
      matrix.mean_of_columns ? mean_of(matrix.column_average, matrix.columns) : mean_of(matrix.row_average, matrix.rows);
  return 1 / std::max(mean, floor_of_mean);
}

float row_factor(const FactoredSpan& matrix, double factor, int64_t row) {
  return static_cast<float>(static_cast<double>(matrix.row_average[row]) * factor);
}

void move_average(float& average, double mean, float share) { average += share * (static_cast<float>(mean) - average); }

}  // namespace

void fused_lion(const std::vector<UpdateSpan>& runs, const LionRule& rule) {
  const AdaptiveUpdateKernel& kernel = adaptive_kernel();
  for_pieces(pieces_of(runs), [&](size_t /*index*/, const Piece& piece) {
    const UpdateSpan& run = runs[piece.run];
    kernel.lion(rule, piece.count, run.value + piece.begin, run.gradient + piece.begin, run.first + piece.begin);
  });
}

RunSums lamb_sums(const std::vector<UpdateSpan>& runs, const LambRule& rule) {
  const AdaptiveUpdateKernel& kernel = adaptive_kernel();
  return sums_of_runs(runs, [&](const Piece& piece, double* sums) {
    const UpdateSpan& run = runs[piece.run];
    kernel.lamb_sums(rule, piece.count, run.value + piece.begin, run.gradient + piece.begin, run.first + piece.begin,
                     run.second + piece.begin, sums);
  });
}

void fused_lamb(const std::vector<UpdateSpan>& runs, const LambRule& rule, const std::vector<float>& steps) {
  const AdaptiveUpdateKernel& kernel = adaptive_kernel();
  for_pieces(pieces_of(runs), [&](size_t /*index*/, const Piece& piece) {
    const UpdateSpan& run = runs[piece.run];
    kernel.lamb(rule, steps[piece.run], piece.count, run.value + piece.begin, run.first + piece.begin, run.second + piece.begin);
  });
}

RunSums lars_sums(const std::vector<UpdateSpan>& runs, const LarsRule& rule) {
  const AdaptiveUpdateKernel& kernel = adaptive_kernel();
  return sums_of_runs(runs, [&](const Piece& piece, double* sums) {
    const UpdateSpan& run = runs[piece.run];
    kernel.lars_sums(rule, piece.count, run.value + piece.begin, run.gradient + piece.begin, sums);
  });
}

void fused_lars(const std::vector<UpdateSpan>& runs, const LarsRule& rule, const std::vector<float>& rates) {
  const AdaptiveUpdateKernel& kernel = adaptive_kernel();
  for_pieces(pieces_of(runs), [&](size_t /*index*/, const Piece& piece) {
    const UpdateSpan& run = runs[piece.run];
    kernel.lars(rule, rates[piece.run], piece.count, run.value + piece.begin, run.gradient + piece.begin,
                run.first + piece.begin);
  });
}

RunSums adafactor_sums(const std::vector<UpdateSpan>& runs, const AdafactorRule& rule) {
  const AdaptiveUpdateKernel& kernel = adaptive_kernel();
  return sums_of_runs(runs, [&](const Piece& piece, double* sums) {
    const UpdateSpan& run = runs[piece.run];
    kernel.adafactor_sums(rule, piece.count, run.value + piece.begin, run.gradient + piece.begin, run.first + piece.begin, sums);
  });
}

void fused_adafactor(const std::vector<UpdateSpan>& runs, const AdafactorRule& rule, const std::vector<float>& steps) {
  const AdaptiveUpdateKernel& kernel = adaptive_kernel();
  for_pieces(pieces_of(runs), [&](size_t /*index*/, const Piece& piece) {
    const UpdateSpan& run = runs[piece.run];
    kernel.adafactor(rule, steps[piece.run], piece.count, run.value + piece.begin, run.gradient + piece.begin,
                     run.first + piece.begin);
  });
}

std::array<double, 2> factored_sums(const FactoredSpan& matrix, const AdafactorRule& rule, double floor_of_mean,
                                    std::vector<float>& scratch) {
  const AdaptiveUpdateKernel& kernel = adaptive_kernel();
  const double rows = static_cast<double>(matrix.rows), columns = static_cast<double>(matrix.columns);
  scratch.assign(static_cast<size_t>(kMostChunks * matrix.columns), 0.0F);
  const double weights = sums_of_rows(matrix, [&](int64_t chunk, int64_t row) -> std::array<double, 2> {
    const double sum = kernel.factor_squares(rule.gradient_scale, matrix.columns, matrix.gradient + row * matrix.columns,
                                             scratch.data() + chunk * matrix.columns);
    move_average(matrix.row_average[row], sum / columns, rule.share);
    return {update_kernel(instruction_set()).square_sum(matrix.value + row * matrix.columns, matrix.columns), 0};
  })[0];
  for (int64_t column = 0; column < matrix.columns; ++column) {
    double sum = 0;
    for (int64_t chunk = 0; chunk < kMostChunks; ++chunk) {
      sum += static_cast<double>(scratch[static_cast<size_t>(chunk * matrix.columns + column)]);
    }
    move_average(matrix.column_average[column], sum / rows, rule.share);
  }
  const double factor = factor_of(matrix, floor_of_mean);
  const double updates = sums_of_rows(matrix, [&](int64_t /*chunk*/, int64_t row) -> std::array<double, 2> {
    return {kernel.factored_sum(rule, row_factor(matrix, factor, row), matrix.columns, matrix.gradient + row * matrix.columns,
                                matrix.column_average),
            0};
  })[0];
  return {weights, updates};
}

void fused_factored(const FactoredSpan& matrix, const AdafactorRule& rule, double floor_of_mean, float step) {
  const AdaptiveUpdateKernel& kernel = adaptive_kernel();
  const double factor = factor_of(matrix, floor_of_mean);
  const int64_t grain = std::max<int64_t>(1, kPiece / matrix.columns);
  at::parallel_for(0, matrix.rows, grain, [&](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) {
      kernel.factored(rule, step, row_factor(matrix, factor, row), matrix.columns, matrix.value + row * matrix.columns,
                      matrix.gradient + row * matrix.columns, matrix.column_average);
    }
  });
}

void fused_average(const std::vector<UpdateSpan>& runs, float share) {
  const AdaptiveUpdateKernel& kernel = adaptive_kernel();
  for_pieces(pieces_of(runs), [&](size_t /*index*/, const Piece& piece) {
    const UpdateSpan& run = runs[piece.run];
    kernel.average(share, piece.count, run.value + piece.begin, run.first + piece.begin);
  });
}

}  // namespace welkin::ops
