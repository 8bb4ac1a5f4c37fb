// SPDX-License-Identifier: Apache-2.0
// The launches of ops/device_update.h on a CPU: the code of the kernels block by block and thread by thread, and a table of them
// in the place of libwelkin_cuda.so's.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>

#include <cmath>
#include <vector>

#include "ops/device_update.h"

namespace welkin::tests {

template <typename Rule>
void run_launches(const std::vector<ops::UpdateTable>& tables, const ops::PreparedRule<Rule>& prepared) {
  for (const ops::UpdateTable& table : tables) {
    for (int32_t block = 0; block < table.first_piece[table.num_tensors]; ++block) {
      for (int thread = 0; thread < ops::kUpdateThreads; ++thread) {
        ops::update_share(prepared, ops::piece_at(table, block), thread, ops::kUpdateThreads);
      }
    }
  }
}

inline double block_total(const ops::UpdateTable& table, int32_t block) {
  std::vector<double> sums;
  for (int thread = 0; thread < ops::kUpdateThreads; ++thread) {
    sums.push_back(ops::square_share(ops::piece_at(table, block), thread, ops::kUpdateThreads));
  }
  for (int width = ops::kUpdateThreads / 2; width > 0; width /= 2) {
    for (int thread = 0; thread < ops::kUpdateThreads; ++thread) ops::add_halves(sums.data(), thread, width);
  }
  return sums[0];
}

inline double square_sum_of(const std::vector<ops::UpdateTable>& tables) {
  std::vector<double> partials;
  for (const ops::UpdateTable& table : tables) {
    for (int32_t block = 0; block < table.first_piece[table.num_tensors]; ++block) partials.push_back(block_total(table, block));
  }
  double total = 0;
  for (int thread = 0; thread < 8; ++thread) {
    total += ops::partial_share(partials.data(), static_cast<int64_t>(partials.size()), thread, 8);
  }
  return total;
}

inline float number_in(const at::Tensor& scalar) { return scalar.item<float>(); }

// While alive, optimizers and norms of float32 tensors on the CPU take the way of a GPU.
class DeviceUpdateOnCpu {
 public:
  DeviceUpdateOnCpu() : before_(ops::device_update()) {
    ops::device_update() = {.device = c10::kCPU, .adam = &adam, .sgd = &sgd, .norm = &norm};
  }
  ~DeviceUpdateOnCpu() { ops::device_update() = before_; }
  DeviceUpdateOnCpu(const DeviceUpdateOnCpu&) = delete;
  DeviceUpdateOnCpu& operator=(const DeviceUpdateOnCpu&) = delete;

 private:
  static void adam(const std::vector<ops::UpdateRun>& runs, const ops::AdamSettings& settings, const ops::UpdateScalars& in) {
    run_launches(ops::update_tables(runs), ops::prepared_rule(settings, number_in(in.rate), number_in(in.steps),
                                                              number_in(in.gradient_scale), number_in(in.found_inf)));
  }
  static void sgd(const std::vector<ops::UpdateRun>& runs, const ops::SgdSettings& settings, const ops::UpdateScalars& in) {
    run_launches(ops::update_tables(runs),
                 ops::prepared_rule(settings, number_in(in.rate), number_in(in.gradient_scale), number_in(in.found_inf)));
  }
  static at::Tensor norm(const std::vector<ops::FloatRun>& runs, c10::Device /*device*/) {
    return at::full({}, std::sqrt(square_sum_of(ops::norm_tables(runs))), at::kFloat);
  }

  ops::DeviceUpdate before_;
};

}  // namespace welkin::tests
