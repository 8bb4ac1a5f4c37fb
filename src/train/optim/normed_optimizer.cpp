// SPDX-License-Identifier: Apache-2.0
#include "train/optim/normed_optimizer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

namespace welkin::train {
namespace {

constexpr std::array<bool, 2> kDecays{true, false};

bool is_float_on_cpu(const at::Tensor& x) {
  return x.is_cpu() && x.scalar_type() == at::kFloat && x.is_non_overlapping_and_dense();
}

bool takes_fused(const StepLists& lists) {
  return std::ranges::all_of(lists.values, is_float_on_cpu) && std::ranges::all_of(lists.gradients, is_float_on_cpu);
}

}  // namespace

NormedOptimizer::NormedOptimizer(std::vector<OptimizerParameter> parameters) : parameters_(std::move(parameters)) {}

void NormedOptimizer::step(const StepInputs& inputs) {
  const at::NoGradGuard no_grad;
  const std::array<StepLists, 2> lists{with_gradients(parameters_, true), with_gradients(parameters_, false)};
  count(inputs);
  const bool is_fused = takes_fused(lists[0]) && takes_fused(lists[1]);
  if (is_fused && inputs.found_inf.item<float>() != 0) return;
  for (const StepLists& list : lists) prepare(list, inputs);
  is_fused ? fused_step(inputs, lists) : reference_step(inputs, lists);
}

void NormedOptimizer::fused_step(const StepInputs& inputs, const std::array<StepLists, 2>& lists) {
  const auto num = static_cast<int64_t>(parameters_.size());
  std::array<Sums, 2> sums;
  for (size_t k = 0; k < 2; ++k) sums[k] = fused_sums(lists[k], inputs, kDecays[k]);
  if (inputs.sum_over_parts) {
    const at::Tensor own = at::zeros({2, num}, at::kDouble);
    const auto place = [num](size_t which, size_t row) { return static_cast<int64_t>(which) * num + static_cast<int64_t>(row); };
    for (size_t k = 0; k < 2; ++k) {
      for (size_t i = 0; i < sums[k].size(); ++i) {
        for (size_t which = 0; which < 2; ++which)
          own.mutable_data_ptr<double>()[place(which, lists[k].rows[i])] = sums[k][i][which];
      }
    }
    const at::Tensor whole = inputs.sum_over_parts(own).contiguous();
    for (size_t k = 0; k < 2; ++k) {
      for (size_t i = 0; i < sums[k].size(); ++i) {
        for (size_t which = 0; which < 2; ++which)
          sums[k][i][which] = whole.const_data_ptr<double>()[place(which, lists[k].rows[i])];
      }
    }
  }
  for (size_t k = 0; k < 2; ++k) fused_update(lists[k], inputs, kDecays[k], sums[k]);
}

void NormedOptimizer::reference_step(const StepInputs& inputs, const std::array<StepLists, 2>& lists) {
  std::vector<Row> rows;
  std::vector<SumTensors> sums;
  for (size_t k = 0; k < 2; ++k) {
    for (size_t i = 0; i < lists[k].rows.size(); ++i) {
      rows.push_back({lists[k].rows[i], lists[k].values[i], safe_gradient(inputs, lists[k].gradients[i]), kDecays[k]});
      sums.push_back(reference_sums(rows.back(), inputs));
    }
  }
  if (inputs.sum_over_parts && !sums.empty()) {
    const at::Tensor zero = at::zeros({}, sums.front().first.options());
    std::array<std::vector<at::Tensor>, 2> own{std::vector(parameters_.size(), zero), std::vector(parameters_.size(), zero)};
    for (size_t i = 0; i < rows.size(); ++i) {
      own[0][rows[i].row] = sums[i].first;
      own[1][rows[i].row] = sums[i].second;
    }
    const at::Tensor whole = inputs.sum_over_parts(at::stack({at::stack(own[0]), at::stack(own[1])}));
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto row = static_cast<int64_t>(rows[i].row);
      sums[i] = {whole.select(0, 0).select(0, row), whole.select(0, 1).select(0, row)};
    }
  }
  for (size_t i = 0; i < rows.size(); ++i) reference_update(rows[i], inputs, sums[i]);
}

}  // namespace welkin::train
