// SPDX-License-Identifier: Apache-2.0
#include "ops/update/adaptive_update.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <numeric>

namespace welkin::ops {
namespace {

const AdaptiveUpdateKernel& adaptive_kernel() { return update_kernel(instruction_set()).adaptive; }

constexpr int64_t kMostChunks = 16;  // of a matrix, each with its own column sums

// Part of a row in one block.
struct RowPart {
  int64_t row = 0, block = 0;
  int64_t column = 0;   // number of its first column
  int64_t element = 0;  // its offset in memory
};

RowPart part_of(const FactoredSpan& matrix, int64_t row, int64_t block) {
  return {.row = row, .block = block, .column = block * matrix.columns, .element = (block * matrix.rows + row) * matrix.columns};
}

int64_t all_columns(const FactoredSpan& matrix) { return matrix.blocks * matrix.columns; }

// Rows of a chunk: at least a piece, and independent of the number of threads.
int64_t rows_of_chunk(const FactoredSpan& matrix) {
  const int64_t of_piece = std::max<int64_t>(1, kPiece / all_columns(matrix));
  return std::max(of_piece, (matrix.rows + kMostChunks - 1) / kMostChunks);
}

// Sums body(chunk, part) in memory order.
template <typename Body>
double sum_of_parts(const FactoredSpan& matrix, Body&& body) {
  const int64_t rows = rows_of_chunk(matrix), chunks = (matrix.rows + rows - 1) / rows;
  std::array<double, kMostChunks> of_chunks{};
  at::parallel_for(0, chunks, 1, [&](int64_t first, int64_t last) {
    for (int64_t chunk = first; chunk < last; ++chunk) {
      double sum = 0;
      for (int64_t block = 0; block < matrix.blocks; ++block) {
        for (int64_t row = chunk * rows; row < std::min(matrix.rows, (chunk + 1) * rows); ++row) {
          sum += body(chunk, part_of(matrix, row, block));
        }
      }
      of_chunks[static_cast<size_t>(chunk)] = sum;
    }
  });
  return std::accumulate(of_chunks.begin(), of_chunks.end(), 0.0);
}

double mean_of(const float* values, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(values[i]);
  return sum / static_cast<double>(count);
}

// The factor of a row's average in the estimate of an element.
double factor_of(const FactoredSpan& matrix, double floor_of_mean) {
  const double mean =
      matrix.mean_of_columns ? mean_of(matrix.column_average, all_columns(matrix)) : mean_of(matrix.row_average, matrix.rows);
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
                                    FactoredScratch& scratch) {
  const AdaptiveUpdateKernel& kernel = adaptive_kernel();
  const auto square_sum = update_kernel(instruction_set()).square_sum;
  const int64_t columns = all_columns(matrix);
  scratch.columns.assign(static_cast<size_t>(kMostChunks * columns), 0.0F);
  scratch.rows.assign(static_cast<size_t>(matrix.rows), 0.0);
  const double weights = sum_of_parts(matrix, [&](int64_t chunk, const RowPart& part) {
    scratch.rows[static_cast<size_t>(part.row)] +=
        kernel.factor_squares(rule.gradient_scale, matrix.columns, matrix.gradient + part.element,
                              scratch.columns.data() + chunk * columns + part.column);
    return square_sum(matrix.value + part.element, matrix.columns);
  });
  for (int64_t row = 0; row < matrix.rows; ++row) {
    move_average(matrix.row_average[row], scratch.rows[static_cast<size_t>(row)] / static_cast<double>(columns), rule.share);
  }
  for (int64_t column = 0; column < columns; ++column) {
    double sum = 0;
    for (int64_t chunk = 0; chunk < kMostChunks; ++chunk) {
      sum += static_cast<double>(scratch.columns[static_cast<size_t>(chunk * columns + column)]);
    }
    move_average(matrix.column_average[column], sum / static_cast<double>(matrix.rows), rule.share);
  }
  const double factor = factor_of(matrix, floor_of_mean);
  const double updates = sum_of_parts(matrix, [&](int64_t /*chunk*/, const RowPart& part) {
    return kernel.factored_sum(rule, row_factor(matrix, factor, part.row), matrix.columns, matrix.gradient + part.element,
                               matrix.column_average + part.column);
  });
  return {weights, updates};
}

void fused_factored(const FactoredSpan& matrix, const AdafactorRule& rule, double floor_of_mean, float step) {
  const AdaptiveUpdateKernel& kernel = adaptive_kernel();
  const double factor = factor_of(matrix, floor_of_mean);
  const int64_t grain = std::max<int64_t>(1, kPiece / matrix.columns);
  at::parallel_for(0, matrix.blocks * matrix.rows, grain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const RowPart part = part_of(matrix, i % matrix.rows, i / matrix.rows);
      kernel.factored(rule, step, row_factor(matrix, factor, part.row), matrix.columns, matrix.value + part.element,
                      matrix.gradient + part.element, matrix.column_average + part.column);
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
