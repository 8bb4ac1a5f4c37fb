// SPDX-License-Identifier: Apache-2.0
// Arithmetic and traversal of error sums per sample and of their gradient on a GPU; torch-free. A row is a run along
// the last axis. A warp takes one row at a time, each lane every 32nd element. A block sums a chunk of a sample's rows; a
// second kernel sums the chunks in double, so the bits are reproducible.
#pragma once

#include <cmath>
#include <cstdint>

#include "ops/arithmetic/row_chunks.h"

namespace welkin::ops {

inline constexpr int kErrorLanes = 32;
inline constexpr int kErrorRows = 8;          // warps of a block
inline constexpr int64_t kErrorChunks = 256;  // of a sample, at most
inline constexpr int kErrorDims = 5;          // (B, C, D, H, W); D is 1 for a plane

enum class ErrorKind {
  Square,    // (p - t)^2; second sum: t^2
  Absolute,  // |p - t|; second sum: |exp(rate p) - exp(rate t)| of the first channel, 0 if the rate is 0
};

// Low is the type of the prediction: float, half or bfloat16. Strides are in elements.
template <typename Low>
struct ErrorCall {
  ErrorKind kind = ErrorKind::Square;
  float rate = 0;
  int64_t size[kErrorDims]{};
  int64_t prediction_stride[kErrorDims]{};
  int64_t target_stride[kErrorDims]{};
  const Low* prediction = nullptr;
  const float* target = nullptr;
};

template <typename Low>
struct ErrorBackward {
  ErrorCall<Low> call;
  const float* grad_sums = nullptr;  // (B, 2), without gaps
  int64_t stride[kErrorDims]{};      // of the output
  Low* grad_prediction = nullptr;
};

// The two sums of a sample, or a part of them.
template <typename Real>
struct ErrorPair {
  Real first = 0, second = 0;
};

// Rows of a sample, rows of a chunk, and number of chunks.
template <typename Low>
constexpr int64_t error_rows(const ErrorCall<Low>& call) {
  return call.size[1] * call.size[2] * call.size[3];
}
constexpr int64_t error_chunk(int64_t rows) { return chunk_length(rows, kErrorRows, kErrorChunks); }
constexpr int64_t error_chunks(int64_t rows) { return chunk_count(rows, error_chunk(rows)); }

// The position of a row. The channel changes fastest: in channels-last memory the rows of one place share their cache lines.
struct ErrorRow {
  int64_t sample = 0, channel = 0, plane = 0, line = 0;

  constexpr int64_t offset(const int64_t (&stride)[kErrorDims]) const {
    return sample * stride[0] + channel * stride[1] + plane * stride[2] + line * stride[3];
  }
};

// A 64-bit division takes a GPU as long as a row's errors.
template <typename Low>
constexpr ErrorRow error_row(const ErrorCall<Low>& call, int64_t sample, int64_t row) {
  if (row <= UINT32_MAX && call.size[1] <= UINT32_MAX && call.size[3] <= UINT32_MAX) {
    const auto channels = static_cast<uint32_t>(call.size[1]), lines = static_cast<uint32_t>(call.size[3]);
    const auto short_row = static_cast<uint32_t>(row), line = short_row / channels;
    return {sample, short_row % channels, line / lines, line % lines};
  }
  const int64_t line = row / call.size[1];
  return {sample, row % call.size[1], line / call.size[3], line % call.size[3]};
}

template <typename Low>
constexpr ErrorPair<float> error_terms(const ErrorCall<Low>& call, int64_t channel, float p, float t) {
  const float difference = p - t;
  if (call.kind == ErrorKind::Square) return {difference * difference, t * t};
  ErrorPair<float> terms{difference < 0 ? -difference : difference, 0};
  if (call.rate == 0 || channel != 0) return terms;
  const float grown = expf(call.rate * p) - expf(call.rate * t);
  terms.second = grown < 0 ? -grown : grown;
  return terms;
}

// 0 at 0; NaN stays.
constexpr float error_sign(float value) { return value > 0 ? 1.0F : value < 0 ? -1.0F : value; }

// The gradient of both sums by the prediction.
template <typename Low>
constexpr float error_slope(const ErrorCall<Low>& call, int64_t channel, float p, float t, ErrorPair<float> grad_sums) {
  if (call.kind == ErrorKind::Square) return 2 * (p - t) * grad_sums.first;
  const float slope = error_sign(p - t) * grad_sums.first;
  if (call.rate == 0 || channel != 0) return slope;
  const float grown = expf(call.rate * p);
  return slope + error_sign(grown - expf(call.rate * t)) * call.rate * grown * grad_sums.second;
}

// A lane's part of the sums over every kErrorRows-th row of a chunk, starting at row `first`.
template <typename Low>
constexpr ErrorPair<float> error_share(const ErrorCall<Low>& call, int64_t sample, int64_t chunk, int first, int lane) {
  const int64_t rows = error_rows(call), length = error_chunk(rows), begin = chunk * length;
  const int64_t end = begin + length < rows ? begin + length : rows;
  ErrorPair<float> sums;
  for (int64_t row = begin + first; row < end; row += kErrorRows) {
    const ErrorRow at = error_row(call, sample, row);
    const Low* prediction = call.prediction + at.offset(call.prediction_stride);
    const float* target = call.target + at.offset(call.target_stride);
    for (int64_t i = lane; i < call.size[4]; i += kErrorLanes) {
      const auto p = static_cast<float>(prediction[i * call.prediction_stride[4]]);
      const ErrorPair<float> terms = error_terms(call, at.channel, p, target[i * call.target_stride[4]]);
      sums.first += terms.first;
      sums.second += terms.second;
    }
  }
  return sums;
}

// A lane's part of a sample's total; partials (B, chunks) pairs.
constexpr ErrorPair<double> error_total_share(const ErrorPair<float>* partials, int64_t chunks, int64_t sample, int lane) {
  ErrorPair<double> sums;
  for (int64_t chunk = lane; chunk < chunks; chunk += kErrorLanes) {
    sums.first += partials[sample * chunks + chunk].first;
    sums.second += partials[sample * chunks + chunk].second;
  }
  return sums;
}

template <typename Low>
constexpr void error_backward_share(const ErrorBackward<Low>& backward, int64_t sample, int64_t chunk, int first, int lane) {
  const ErrorCall<Low>& call = backward.call;
  const int64_t rows = error_rows(call), length = error_chunk(rows), begin = chunk * length;
  const int64_t end = begin + length < rows ? begin + length : rows;
  const ErrorPair<float> grad_sums{backward.grad_sums[2 * sample], backward.grad_sums[2 * sample + 1]};
  for (int64_t row = begin + first; row < end; row += kErrorRows) {
    const ErrorRow at = error_row(call, sample, row);
    const Low* prediction = call.prediction + at.offset(call.prediction_stride);
    const float* target = call.target + at.offset(call.target_stride);
    Low* out = backward.grad_prediction + at.offset(backward.stride);
    for (int64_t i = lane; i < call.size[4]; i += kErrorLanes) {
      const auto p = static_cast<float>(prediction[i * call.prediction_stride[4]]);
      out[i * backward.stride[4]] =
          static_cast<Low>(error_slope(call, at.channel, p, target[i * call.target_stride[4]], grad_sums));
    }
  }
}

}  // namespace welkin::ops
