// SPDX-License-Identifier: Apache-2.0
// The launches of ops/error_sums_kernel.h on a CPU: the code of the kernels block by block and lane by lane, and a table of them
// in the place of libwelkin_cuda.so's.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/util/BFloat16.h>

#include <array>
#include <vector>

#include "ops/error_sums.h"

namespace welkin::tests {

// As the butterfly of a warp adds: every lane its neighbour's, at half the distance each time.
template <typename Real>
ops::ErrorPair<Real> sum_of_lanes(std::array<ops::ErrorPair<Real>, ops::kErrorLanes> values) {
  for (size_t distance = ops::kErrorLanes / 2; distance > 0; distance /= 2) {
    const auto before = values;
    for (size_t lane = 0; lane < values.size(); ++lane) {
      values[lane] = {before[lane].first + before[lane ^ distance].first, before[lane].second + before[lane ^ distance].second};
    }
  }
  return values[0];
}

template <typename Low>
void run_error_sums(const ops::ErrorCall<Low>& call, float* sums) {
  const int64_t chunks = ops::error_chunks(ops::error_rows(call));
  std::vector<ops::ErrorPair<float>> partials(static_cast<size_t>(call.size[0] * chunks));
  for (int64_t sample = 0; sample < call.size[0]; ++sample) {
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      ops::ErrorPair<float>& total = partials[static_cast<size_t>(sample * chunks + chunk)];
      for (int first = 0; first < ops::kErrorRows; ++first) {
        std::array<ops::ErrorPair<float>, ops::kErrorLanes> lanes;
        for (int lane = 0; lane < ops::kErrorLanes; ++lane)
          lanes[static_cast<size_t>(lane)] = ops::error_share(call, sample, chunk, first, lane);
        const ops::ErrorPair<float> row = sum_of_lanes(lanes);
        total.first += row.first;
        total.second += row.second;
      }
    }
    std::array<ops::ErrorPair<double>, ops::kErrorLanes> lanes;
    for (int lane = 0; lane < ops::kErrorLanes; ++lane)
      lanes[static_cast<size_t>(lane)] = ops::error_total_share(partials.data(), chunks, sample, lane);
    const ops::ErrorPair<double> total = sum_of_lanes(lanes);
    sums[2 * sample] = static_cast<float>(total.first);
    sums[2 * sample + 1] = static_cast<float>(total.second);
  }
}

template <typename Low>
void run_error_backward(const ops::ErrorBackward<Low>& backward) {
  for (int64_t sample = 0; sample < backward.call.size[0]; ++sample) {
    for (int64_t chunk = 0; chunk < ops::error_chunks(ops::error_rows(backward.call)); ++chunk) {
      for (int first = 0; first < ops::kErrorRows; ++first) {
        for (int lane = 0; lane < ops::kErrorLanes; ++lane) ops::error_backward_share(backward, sample, chunk, first, lane);
      }
    }
  }
}

// While alive, losses of the CPU take the way of a GPU.
class ErrorSumsOnCpu {
 public:
  ErrorSumsOnCpu() : before_(ops::device_errors()) {
    ops::device_errors() = {.device = c10::kCPU, .forward = &forward, .backward = &backward};
    calls() = 0;
  }
  ~ErrorSumsOnCpu() { ops::device_errors() = before_; }
  ErrorSumsOnCpu(const ErrorSumsOnCpu&) = delete;
  ErrorSumsOnCpu& operator=(const ErrorSumsOnCpu&) = delete;

  // Of forward and backward together, since the newest of these objects was made.
  static int64_t& calls() {
    static int64_t count = 0;
    return count;
  }

 private:
  template <typename Body>
  static void with_type(at::ScalarType type, const Body& body) {
    if (type == at::kFloat) return body(float{});
    TORCH_CHECK(type == at::kBFloat16, "the twin is made for float32 and bfloat16");
    body(c10::BFloat16{});
  }

  static at::Tensor forward(const at::Tensor& prediction, const at::Tensor& target, ops::ErrorKind kind, double rate) {
    ++calls();
    const at::Tensor sums = at::empty({prediction.size(0), 2}, target.options());
    with_type(prediction.scalar_type(), [&](auto low) {
      run_error_sums(ops::error_call<decltype(low)>(prediction, target, kind, rate), sums.mutable_data_ptr<float>());
    });
    return sums;
  }

  static at::Tensor backward(const at::Tensor& of_sums, const at::Tensor& prediction, const at::Tensor& target,
                             ops::ErrorKind kind, double rate) {
    ++calls();
    const at::Tensor of_prediction = at::empty_like(prediction);
    with_type(prediction.scalar_type(), [&](auto low) {
      ops::ErrorBackward<decltype(low)> launch;
      launch.call = ops::error_call<decltype(low)>(prediction, target, kind, rate);
      launch.of_sums = of_sums.const_data_ptr<float>();
      ops::fill_error_strides(of_prediction, launch.stride);
      launch.of_prediction = of_prediction.mutable_data_ptr<decltype(low)>();
      run_error_backward(launch);
    });
    return of_prediction;
  }

  ops::DeviceErrors before_;
};

}  // namespace welkin::tests
