// SPDX-License-Identifier: Apache-2.0
// The gradient of a potential on some planes of a periodic cube, and its value at a place (cloud in cell). Fourth-order
// differences: antisymmetric, so that with the same kernel for density and force a particle does not pull itself and momentum is
// conserved.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/process/thread_pool.h"
#include "data/simulate/universe/cloud_in_cell.h"
#include "data/simulate/universe/plane_store.h"

namespace welkin::data::simulate {

class ForceWindow {
 public:
  // Planes first .. first + planes - 1 (modulo edge) of `potential`, whose planes begin with (edge, edge) values.
  ForceWindow(const PlaneStore& potential, ThreadPool& pool, int64_t first, int64_t planes);

  // The three components of the gradient. The cells along axis 0 lie in the window.
  std::array<double, 3> at(const CloudAxis& along, const CloudAxis& row, const CloudAxis& column) const;

  static int64_t bytes(int64_t edge, int64_t planes);

 private:
  void differentiate(const std::vector<float>& potential, int64_t plane);

  int64_t edge_, first_;
  std::vector<std::array<float, 3>> gradient_;  // (planes, edge, edge)
};

// Number of planes of `bytes_each` that fit beside `fixed_bytes`, at least 1 and at most `most`. ConfigError naming the need.
int64_t planes_that_fit(std::string_view what, int64_t bytes_each, int64_t fixed_bytes, int64_t most, int64_t window_bytes);

}  // namespace welkin::data::simulate
