// SPDX-License-Identifier: Apache-2.0
// Adafactor, with averages of rows and columns or of every weight.
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "ops/update/adaptive_update.h"
#include "train/optim/normed_optimizer.h"
#include "train/optim/update_spans.h"

namespace welkin::train {
namespace {

// The memory order of a weight of two or more dims, as a matrix of its first dim. Between: some of the other dims are outside,
// like the taps of a transposed convolution.
enum class MatrixOrder { FirstDimOutside, FirstDimInside, FirstDimBetween, Unknown };

MatrixOrder matrix_order(const at::Tensor& value) {
  const int64_t rest = value.numel() / std::max<int64_t>(1, value.size(0));
  if (!value.is_non_overlapping_and_dense() || rest == 0) return MatrixOrder::Unknown;
  if (value.size(0) == 1 || value.stride(0) == rest) return MatrixOrder::FirstDimOutside;
  return value.stride(0) == 1 ? MatrixOrder::FirstDimInside : MatrixOrder::FirstDimBetween;
}

// Averages of the columns: the shape of one row, with elements in the order of memory.
at::Tensor column_state(const at::Tensor& value) {
  std::vector<int64_t> strides = value.strides().slice(1).vec();
  const MatrixOrder order = matrix_order(value);
  if (order == MatrixOrder::Unknown) return at::zeros(value.sizes().slice(1), value.options().requires_grad(false));
  for (int64_t& stride : strides) {
    if (stride > value.stride(0)) stride /= value.size(0);  // a dim outside of the first one
  }
  return at::empty_strided(value.sizes().slice(1), strides, value.options().requires_grad(false)).zero_();
}

class Adafactor : public NormedOptimizer {
 public:
  Adafactor(const config::OptimizerConfig& config, std::vector<OptimizerParameter> parameters)
      : NormedOptimizer(std::move(parameters)), config_(config) {
    for (const OptimizerParameter& parameter : this->parameters()) add_state(parameter);
    const auto device = average_.empty() ? at::Device(at::kCPU) : average_.front().device();
    steps_ = at::zeros({}, at::TensorOptions(at::kFloat).device(device));
  }

  std::vector<NamedState> states() override {
    std::vector<NamedState> all = {{"steps", steps_}};
    for (size_t row = 0; row < average_.size(); ++row) {
      const std::string& name = parameters()[row].name;
      all.push_back({(is_factored(row) ? "row_var." : "variance.") + name, average_[row]});
      if (is_factored(row)) all.push_back({"col_var." + name, columns_[row]});
    }
    return all;
  }

 protected:
  void count(const StepInputs& inputs) override { steps_.add_(1 - inputs.found_inf); }

  // Averages of rows and columns of weights in parts: all ranks add up their squares, in double precision.
  void prepare(const StepLists& lists, const StepInputs& inputs) override {
    std::vector<size_t> rows;
    std::vector<at::Tensor> sums;
    for (size_t i = 0; i < lists.rows.size(); ++i) {
      if (!is_factored(lists.rows[i]) || !is_part(lists.rows[i])) continue;
      rows.push_back(lists.rows[i]);
      sums.push_back(sums_of_part(lists.rows[i], safe_gradient(inputs, lists.gradients[i])));
    }
    if (rows.empty()) return;
    inputs.add_over_parts(rows, sums);
    for (size_t i = 0; i < rows.size(); ++i) {
      const at::Tensor &of_first = average_[rows[i]], &of_rest = columns_[rows[i]];
      const int64_t first = of_first.numel(), rest = of_rest.numel();
      move(inputs, of_first, sums[i].narrow(0, 0, first) / rest);
      move(inputs, of_rest, sums[i].narrow(0, first, rest).view(of_rest.sizes()) / first);
    }
  }

  Sums fused_sums(const StepLists& lists, const StepInputs& inputs, bool decays) override {
    const ops::AdafactorRule rule = rule_of(inputs, decays);
    Sums sums(lists.rows.size());
    std::vector<size_t> plain;
    for (size_t i = 0; i < sums.size(); ++i) {
      if (!is_factored(lists.rows[i])) {
        plain.push_back(i);
      } else if (order(lists.rows[i]) == MatrixOrder::Unknown) {
        const SumTensors tensors = reference_sums(row_at(lists, i, inputs, decays), inputs);
        sums[i] = {tensors.first.item<double>(), tensors.second.item<double>()};
      } else {
        sums[i] = ops::factored_sums(matrix_at(lists, i), rule, config_.eps, scratch_);
      }
    }
    const ops::RunSums of_plain = ops::adafactor_sums(spans(lists, plain), rule);
    for (size_t k = 0; k < plain.size(); ++k) sums[plain[k]] = of_plain[k];
    return sums;
  }

  void fused_update(const StepLists& lists, const StepInputs& inputs, bool decays, const Sums& sums) override {
    const ops::AdafactorRule rule = rule_of(inputs, decays);
    std::vector<size_t> plain;
    std::vector<float> steps;
    for (size_t i = 0; i < sums.size(); ++i) {
      const double step = step_size(inputs, lists.rows[i], sums[i]);
      if (!is_factored(lists.rows[i])) {
        plain.push_back(i);
        steps.push_back(static_cast<float>(step));
      } else if (order(lists.rows[i]) == MatrixOrder::Unknown) {
        const Row row = row_at(lists, i, inputs, decays);
        row.value.mul_(rule.keep).sub_(reference_direction(row), step);
      } else {
        ops::fused_factored(matrix_at(lists, i), rule, config_.eps, static_cast<float>(step));
      }
    }
    ops::fused_adafactor(spans(lists, plain), rule, steps);
  }

  SumTensors reference_sums(const Row& row, const StepInputs& inputs) override {
    if (is_factored(row.row) && !is_part(row.row)) {
      const at::Tensor squares = in_logical_order(row.row, row.gradient).square();
      move(inputs, average_[row.row], squares.flatten(1).mean(1));
      move(inputs, columns_[row.row], squares.mean(0));
    } else if (!is_factored(row.row)) {
      move(inputs, in_memory_order(average_[row.row]), row.gradient.square());
    }
    return {row.value.square().sum(), reference_direction(row).square().sum()};
  }

  void reference_update(const Row& row, const StepInputs& inputs, const SumTensors& sums) override {
    const auto elements = static_cast<double>(parameters()[row.row].elements());
    const at::Tensor rate = inputs.rate.to(at::kDouble);
    const at::Tensor most = steps_.to(at::kDouble).clamp_min(1).rsqrt();
    const at::Tensor scale = (sums.first.to(at::kDouble) / elements).sqrt().clamp_min(config_.adafactor_min_scale);
    const at::Tensor clipping = ((sums.second.to(at::kDouble) / elements).sqrt() / config_.adafactor_clip).clamp_min(1.0);
    const at::Tensor step = scale * rate.minimum(most) / clipping;
    const double decay = row.decays ? config_.weight_decay : 0.0;
    assign_unless_skipped(inputs, row.value, row.value * (1 - rate * decay) - reference_direction(row) * step);
  }

 private:
  void add_state(const OptimizerParameter& parameter) {
    const at::Tensor& value = parameter.value;
    const auto options = value.options().requires_grad(false);
    const std::vector<int64_t> shape = parameter.shape();
    const bool is_matrix = config_.adafactor_factored && shape.size() > 1;
    average_.push_back(is_matrix ? at::zeros({shape[0]}, options) : state_like(value));
    if (!is_matrix) {
      columns_.emplace_back();
    } else {
      columns_.push_back(parameter.is_part ? at::zeros(at::IntArrayRef(shape).slice(1), options) : column_state(value));
    }
  }

  bool is_part(size_t row) const { return parameters()[row].is_part; }

  // Moves the average, in its own type, towards a mean of any type.
  void move(const StepInputs& inputs, const at::Tensor& average, const at::Tensor& mean) const {
    const at::Tensor share = at::pow(steps_.to(at::kDouble).clamp_min(1), config_.adafactor_decay);
    assign_unless_skipped(inputs, average, average + (mean - average) * share);
  }

  // A view of a box of a part; dim 0 is the dim of rows.
  static at::Tensor view_of(const at::Tensor& part, const PartBox& box) {
    return part.as_strided(box.extent, box.strides, part.storage_offset() + box.offset);
  }
  static at::Tensor cells_of(at::Tensor of_rest, const PartBox& box) {
    for (int64_t dim = 0; dim < of_rest.dim(); ++dim) {
      const auto own = static_cast<size_t>(dim) + 1;
      of_rest = of_rest.narrow(dim, box.begin[own], box.extent[own]);
    }
    return of_rest;
  }

  // (rows + columns) float64: the part's sums of squares.
  at::Tensor sums_of_part(size_t row, const at::Tensor& gradient) const {
    const int64_t first = average_[row].numel(), rest = columns_[row].numel();
    at::Tensor sums = at::zeros({first + rest}, gradient.options().dtype(at::kDouble).requires_grad(false));
    const at::Tensor of_rest = sums.narrow(0, first, rest).view(columns_[row].sizes());
    for (const PartBox& box : parameters()[row].boxes) {
      const at::Tensor squares = view_of(gradient, box).square();
      sums.narrow(0, box.begin[0], box.extent[0]).add_(squares.flatten(1).sum(1, false, at::kDouble));
      cells_of(of_rest, box).add_(squares.sum(0, false, at::kDouble));
    }
    return sums;
  }

  at::Tensor direction_of_part(const Row& row, const at::Tensor& rows) const {
    at::Tensor direction = at::empty_like(row.gradient);
    for (const PartBox& box : parameters()[row.row].boxes) {
      std::vector<int64_t> shape(box.extent.size(), 1);
      shape[0] = box.extent[0];
      const at::Tensor estimate =
          rows.narrow(0, box.begin[0], box.extent[0]).view(shape) * cells_of(columns_[row.row], box).unsqueeze(0);
      const double floor = config_.eps * config_.eps;
      view_of(direction, box).copy_(view_of(row.gradient, box) * estimate.clamp_min(floor).rsqrt());
    }
    return direction;
  }

  bool is_factored(size_t row) const { return columns_[row].defined(); }
  MatrixOrder order(size_t row) const { return is_part(row) ? MatrixOrder::Unknown : matrix_order(parameters()[row].value); }

  // The tensor that with_gradients() laid out in the order of memory, with the parameter's dims again.
  at::Tensor in_logical_order(size_t row, const at::Tensor& in_memory) const {
    const at::Tensor& value = parameters()[row].value;
    if (in_memory.sizes() == value.sizes()) return in_memory;
    return in_memory.as_strided(value.sizes(), value.strides());
  }

  Row row_at(const StepLists& lists, size_t i, const StepInputs& inputs, bool decays) const {
    return {lists.rows[i], lists.values[i], safe_gradient(inputs, lists.gradients[i]), decays};
  }

  std::vector<ops::UpdateSpan> spans(const StepLists& lists, const std::vector<size_t>& which) const {
    std::vector<ops::UpdateSpan> runs;
    for (const size_t i : which) {
      runs.push_back({.count = lists.values[i].numel(),
                      .value = lists.values[i].mutable_data_ptr<float>(),
                      .gradient = lists.gradients[i].const_data_ptr<float>(),
                      .first = average_[lists.rows[i]].mutable_data_ptr<float>()});
    }
    return runs;
  }

  ops::FactoredSpan matrix_at(const StepLists& lists, size_t i) const {
    const size_t row = lists.rows[i];
    float* const of_first = average_[row].mutable_data_ptr<float>();
    float* const of_rest = columns_[row].mutable_data_ptr<float>();
    const int64_t first = average_[row].numel(), rest = columns_[row].numel();
    const bool inside = order(row) == MatrixOrder::FirstDimInside, between = order(row) == MatrixOrder::FirstDimBetween;
    const int64_t columns = inside ? first : between ? parameters()[row].value.stride(0) : rest;
    return {.rows = inside ? rest : first,
            .columns = columns,
            .blocks = inside ? 1 : rest / columns,
            .value = lists.values[i].mutable_data_ptr<float>(),
            .gradient = lists.gradients[i].const_data_ptr<float>(),
            .row_average = inside ? of_rest : of_first,
            .column_average = inside ? of_first : of_rest,
            .mean_of_columns = inside};
  }

  // The direction, laid out like the row's value.
  at::Tensor reference_direction(const Row& row) const {
    const double floor = config_.eps * config_.eps;
    if (!is_factored(row.row)) return row.gradient * in_memory_order(average_[row.row]).clamp_min(floor).rsqrt();
    const at::Tensor& of_first = average_[row.row];
    const at::Tensor rows = of_first / of_first.mean().clamp_min(config_.eps);
    if (is_part(row.row)) return direction_of_part(row, rows);
    std::vector<int64_t> shape(parameters()[row.row].value.sizes().size(), 1);
    shape[0] = of_first.numel();
    const at::Tensor estimate = rows.view(shape) * columns_[row.row].unsqueeze(0);
    at::Tensor direction = in_logical_order(row.row, row.gradient) * estimate.clamp_min(floor).rsqrt();
    if (row.value.sizes() == direction.sizes()) return direction;
    const at::Tensor in_order = at::empty_strided(direction.sizes(), parameters()[row.row].value.strides(), direction.options());
    return in_memory_order(in_order.copy_(direction));
  }

  double step_size(const StepInputs& inputs, size_t row, const std::array<double, 2>& sums) const {
    const auto elements = static_cast<double>(parameters()[row].elements());
    const double scale = std::max(config_.adafactor_min_scale, std::sqrt(sums[0] / elements));
    const double rate = std::min(inputs.rate.item<double>(), 1 / std::sqrt(steps_.item<double>()));
    return scale * rate / std::max(1.0, std::sqrt(sums[1] / elements) / config_.adafactor_clip);
  }

  ops::AdafactorRule rule_of(const StepInputs& inputs, bool decays) const {
    return {.gradient_scale = gradient_scale(inputs),
            .share = static_cast<float>(std::pow(steps_.item<double>(), config_.adafactor_decay)),
            .floor = static_cast<float>(config_.eps * config_.eps),
            .keep = static_cast<float>(1 - inputs.rate.item<double>() * (decays ? config_.weight_decay : 0.0))};
  }

  config::OptimizerConfig config_;
  std::vector<at::Tensor> average_;  // by row: of all squares, or (first dim) of rows
  std::vector<at::Tensor> columns_;  // by row: of columns; undefined if it is not factored
  ops::FactoredScratch scratch_;
  at::Tensor steps_;  // () float32, applied steps
};

}  // namespace

OptimizerPtr adafactor(const config::RunConfig& config, std::vector<OptimizerParameter> parameters) {
  return std::make_unique<Adafactor>(config.optimizer, std::move(parameters));
}

}  // namespace welkin::train
