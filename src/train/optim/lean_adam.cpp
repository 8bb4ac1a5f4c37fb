// SPDX-License-Identifier: Apache-2.0
#include "train/optim/lean_adam.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bucketize.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "core/error.h"
#include "core/philox.h"
#include "core/text.h"
#include "ops/random/philox_words.h"
#include "ops/update/lean_update.h"
#include "train/optim/update_spans.h"

namespace welkin::train {

ops::AdamRule adam_rule(const AdamNumbers& numbers, const config::OptimizerConfig& config) {
  const auto single = [](double x) { return static_cast<float>(x); };
  return {.gradient_scale = numbers.gradient_scale,
          .decay = numbers.decoupled ? 0.0F : single(numbers.decay),
          .keep = numbers.decoupled ? single(1 - numbers.rate * numbers.decay) : 1.0F,
          .average_share = single(1 - config.betas[0]),
          .square_keep = single(config.betas[1]),
          .square_share = single(1 - config.betas[1]),
          .step = single(numbers.rate / (1 - std::pow(config.betas[0], numbers.steps))),
          .root_factor = single(1 / std::sqrt(1 - std::pow(config.betas[1], numbers.steps))),
          .epsilon = single(config.eps)};
}

namespace {

// Sizes of the dims in memory, the outermost first, so that a state made for one order does not fit a parameter of another.
std::vector<int64_t> shape_in_memory(const at::Tensor& value) {
  std::vector<int64_t> dims(static_cast<size_t>(value.dim())), shape;
  std::iota(dims.begin(), dims.end(), int64_t{0});
  std::ranges::stable_sort(dims, [&](int64_t a, int64_t b) { return value.stride(a) > value.stride(b); });
  for (const int64_t dim : dims) shape.push_back(value.size(dim));
  return shape;
}

// Rounds up with a probability equal to the lost fraction; `dice` (n) int64, of which 16 bits count.
at::Tensor rounded_bf16(const at::Tensor& values, const at::Tensor& dice) {
  const at::Tensor bits = values.to(at::kFloat).contiguous().view(at::kInt).to(at::kLong);
  const at::Tensor sum = bits + dice.bitwise_and(0xffff) * at::isfinite(values);
  return sum.bitwise_right_shift(16).to(at::kShort).view(at::kBFloat16);
}

// The values of a table, on a device.
struct Codebook {
  at::Tensor values, borders;  // (256), (255) between them

  static Codebook of(const ops::CodeTable& table, const at::Tensor& like) {
    const at::Tensor values = at::tensor(at::ArrayRef<float>(table.value, ops::kNumCodes), at::kFloat).to(like.device());
    return {values, (values.narrow(0, 0, ops::kNumCodes - 1) + values.narrow(0, 1, ops::kNumCodes - 1)) * 0.5};
  }
};

struct CodedState {
  at::Tensor codes;  // uint8, shape_in_memory
  at::Tensor scale;  // (blocks) float32
};

CodedState coded_state(const at::Tensor& value) {
  const auto options = value.options().requires_grad(false);
  const int64_t blocks = (value.numel() + ops::kCodedBlock - 1) / ops::kCodedBlock;
  return {at::zeros(shape_in_memory(value), options.dtype(at::kByte)), at::zeros({blocks}, options.dtype(at::kFloat))};
}

// (blocks, 256), with zeros behind the last element.
at::Tensor in_blocks(const at::Tensor& flat) {
  const int64_t over = flat.numel() % ops::kCodedBlock;
  const at::Tensor padded = over == 0 ? flat : at::constant_pad_nd(flat, {0, ops::kCodedBlock - over}, 0);
  return padded.view({-1, ops::kCodedBlock});
}

at::Tensor decoded(const CodedState& state, const Codebook& book) {
  const at::Tensor values = book.values.index_select(0, state.codes.flatten().to(at::kLong));
  return (in_blocks(values) * state.scale.unsqueeze(1)).flatten().narrow(0, 0, state.codes.numel());
}

CodedState encoded(const at::Tensor& values, const Codebook& book, const CodedState& like) {
  const at::Tensor blocks = in_blocks(values.to(at::kFloat));
  const at::Tensor scale = blocks.abs().amax(1);
  const at::Tensor inverse = at::where(scale.gt(0), scale.reciprocal(), at::zeros_like(scale));
  const at::Tensor codes = at::bucketize((blocks * inverse.unsqueeze(1)).clamp(-1, 1), book.borders);
  return {codes.flatten().narrow(0, 0, values.numel()).to(at::kByte).view(like.codes.sizes()), scale};
}

// The common part of both formats: the choice of lean parameters, the count of steps, and the arithmetic on averages.
class LeanAdam : public Optimizer {
 public:
  using Wide = OptimizerPtr (*)(const config::RunConfig&, std::vector<OptimizerParameter>);

  LeanAdam(const config::RunConfig& config, std::vector<OptimizerParameter> parameters, Wide wide)
      : config_(config.optimizer), decoupled_(wide == adamw) {
    std::vector<OptimizerParameter> rest;
    for (OptimizerParameter& parameter : parameters) {
      const bool is_lean = parameter.decays && parameter.elements() >= kLeastLeanElements;
      (is_lean ? parameters_ : rest).push_back(std::move(parameter));
    }
    config::RunConfig of_rest = config;
    of_rest.optimizer.optimizer_state = config::OptimizerState::Fp32;
    wide_ = wide(of_rest, std::move(rest));
    const auto device = parameters_.empty() ? at::Device(at::kCPU) : parameters_.front().value.device();
    steps_ = at::zeros({}, at::TensorOptions(at::kFloat).device(device));
  }

  void step(const StepInputs& inputs) final {
    const at::NoGradGuard no_grad;
    wide_->step(inputs);
    if (parameters_.empty()) return;
    steps_.add_(1 - inputs.found_inf);
    const StepLists lists = with_gradients(parameters_, /*decays=*/true);
    const auto fits = [](const at::Tensor& x) {
      return x.is_cpu() && x.scalar_type() == at::kFloat && x.is_non_overlapping_and_dense();
    };
    if (std::ranges::all_of(lists.values, fits) && std::ranges::all_of(lists.gradients, fits)) {
      if (inputs.found_inf.item<float>() == 0) fused_step(lists, rule(inputs));
      return;
    }
    for (size_t i = 0; i < lists.rows.size(); ++i) {
      reference_step(inputs, lists.rows[i], lists.values[i].flatten(), lists.gradients[i].flatten());
    }
  }

  bool takes_gradient_scale() const final { return true; }

  std::vector<NamedState> states() final {
    std::vector<NamedState> all = wide_->states();
    all.push_back({"lean_steps", steps_});
    for (size_t row = 0; row < parameters_.size(); ++row) add_states(all, row);
    return all;
  }

 protected:
  virtual void fused_step(const StepLists& lists, const ops::AdamRule& rule) = 0;
  // (n) in the order of memory.
  virtual void reference_step(const StepInputs& inputs, size_t row, const at::Tensor& value, const at::Tensor& raw) = 0;
  virtual void add_states(std::vector<NamedState>& all, size_t row) = 0;

  struct Averages {
    at::Tensor average, square;
  };

  // Moves `value` by averages in its own precision, and returns the averages after the step.
  Averages move(const StepInputs& inputs, const at::Tensor& value, const at::Tensor& raw, const Averages& before) const {
    at::Tensor g = safe_gradient(inputs, raw);
    if (!decoupled_ && config_.weight_decay != 0) g = g + config_.weight_decay * value;
    const at::Tensor m = before.average + (1 - config_.betas[0]) * (g - before.average);
    const at::Tensor v = config_.betas[1] * before.square + (1 - config_.betas[1]) * g * g;
    const at::Tensor steps = steps_.to(at::kDouble).clamp_min(1), rate = inputs.rate.to(at::kDouble);
    const at::Tensor first = rate / (1 - at::pow(config_.betas[0], steps)),
                     second = (1 - at::pow(config_.betas[1], steps)).rsqrt();
    const at::Tensor kept = decoupled_ ? value * (1 - rate * config_.weight_decay) : value;
    assign_unless_skipped(inputs, value, kept - first * (m / (v.sqrt() * second + config_.eps)));
    return {m, v};
  }

  const std::vector<OptimizerParameter>& parameters() const { return parameters_; }
  const at::Tensor& steps() const { return steps_; }

 private:
  ops::AdamRule rule(const StepInputs& inputs) const {
    return adam_rule({.rate = inputs.rate.item<double>(),
                      .steps = steps_.item<double>(),
                      .decay = config_.weight_decay,
                      .decoupled = decoupled_,
                      .gradient_scale = gradient_scale(inputs)},
                     config_);
  }

  config::OptimizerConfig config_;
  bool decoupled_;
  std::vector<OptimizerParameter> parameters_;  // those with lean averages
  OptimizerPtr wide_;                           // for the others
  at::Tensor steps_;                            // () float32, applied steps
};

class Bf16Adam final : public LeanAdam {
 public:
  Bf16Adam(const config::RunConfig& config, std::vector<OptimizerParameter> all, Wide wide)
      : LeanAdam(config, std::move(all), wide) {
    for (const OptimizerParameter& parameter : parameters()) {
      average_.push_back(state_like(parameter.value).to(at::kBFloat16));
      square_average_.push_back(state_like(parameter.value).to(at::kBFloat16));
      streams_.push_back(stream_key(config.loop.seed, "optimizer.rounding." + parameter.name));
    }
  }

 protected:
  void fused_step(const StepLists& lists, const ops::AdamRule& rule) override {
    const auto bits = [](const at::Tensor& state) { return static_cast<uint16_t*>(state.mutable_data_ptr()); };
    std::vector<ops::Bf16Span> runs;
    for (size_t i = 0; i < lists.rows.size(); ++i) {
      const size_t row = lists.rows[i];
      runs.push_back({.count = lists.values[i].numel(),
                      .value = lists.values[i].mutable_data_ptr<float>(),
                      .gradient = lists.gradients[i].const_data_ptr<float>(),
                      .average = bits(average_[row]),
                      .square = bits(square_average_[row]),
                      .stream = streams_[row],
                      .place = parameters()[row].runs});
    }
    ops::fused_bf16_adam(runs, rule, static_cast<uint64_t>(steps().item<double>()));
  }

  void reference_step(const StepInputs& inputs, size_t row, const at::Tensor& value, const at::Tensor& raw) override {
    const at::Tensor average = in_memory_order(average_[row]).flatten();
    const at::Tensor square = in_memory_order(square_average_[row]).flatten();
    const auto type = value.scalar_type();
    const Averages after = move(inputs, value, raw, {average.to(type), square.to(type)});
    const at::Tensor words = words_of(row, value.numel());
    assign_unless_skipped(inputs, average, rounded_bf16(after.average, words));
    assign_unless_skipped(inputs, square, rounded_bf16(after.square, words.bitwise_right_shift(16)));
  }

  void add_states(std::vector<NamedState>& all, size_t row) override {
    all.push_back({"exp_avg." + parameters()[row].name, average_[row]});
    all.push_back({"exp_avg_sq." + parameters()[row].name, square_average_[row]});
  }

 private:
  at::Tensor words_of(size_t row, int64_t count) const {
    const ops::PartRuns& runs = parameters()[row].runs;
    const at::Tensor counter = steps().to(at::kLong);
    if (runs.length == 0) return ops::philox_words(streams_[row], counter, runs.begin, count);
    const at::Tensor own = at::arange(runs.begin, runs.begin + count, counter.options());
    const at::Tensor run = own.div(runs.length, "floor"), within = own - run * runs.length;
    return ops::philox_words(streams_[row], counter, (run * runs.parts + runs.part) * runs.length + within);
  }

  std::vector<at::Tensor> average_, square_average_;
  std::vector<uint64_t> streams_;
};

class CodedAdam final : public LeanAdam {
 public:
  CodedAdam(const config::RunConfig& config, std::vector<OptimizerParameter> all, Wide wide)
      : LeanAdam(config, std::move(all), wide) {
    for (const OptimizerParameter& parameter : parameters()) {
      WELKIN_CHECK(parameter.runs.begin % ops::kCodedBlock == 0, cat("pieces begin at blocks of codes: ", parameter.name));
      average_.push_back(coded_state(parameter.value));
      square_average_.push_back(coded_state(parameter.value));
    }
    if (parameters().empty()) return;
    average_book_ = Codebook::of(ops::signed_codes(), parameters().front().value);
    square_book_ = Codebook::of(ops::unsigned_codes(), parameters().front().value);
  }

 protected:
  void fused_step(const StepLists& lists, const ops::AdamRule& rule) override {
    std::vector<ops::CodedSpan> runs;
    for (size_t i = 0; i < lists.rows.size(); ++i) {
      const size_t row = lists.rows[i];
      runs.push_back({.count = lists.values[i].numel(),
                      .value = lists.values[i].mutable_data_ptr<float>(),
                      .gradient = lists.gradients[i].const_data_ptr<float>(),
                      .average = average_[row].codes.mutable_data_ptr<uint8_t>(),
                      .average_scale = average_[row].scale.mutable_data_ptr<float>(),
                      .square = square_average_[row].codes.mutable_data_ptr<uint8_t>(),
                      .square_scale = square_average_[row].scale.mutable_data_ptr<float>()});
    }
    ops::fused_coded_adam(runs, rule);
  }

  void reference_step(const StepInputs& inputs, size_t row, const at::Tensor& value, const at::Tensor& raw) override {
    const auto type = value.scalar_type();
    const Averages after =
        move(inputs, value, raw,
             {decoded(average_[row], average_book_).to(type), decoded(square_average_[row], square_book_).to(type)});
    assign(inputs, average_[row], encoded(after.average, average_book_, average_[row]));
    assign(inputs, square_average_[row], encoded(after.square, square_book_, square_average_[row]));
  }

  void add_states(std::vector<NamedState>& all, size_t row) override {
    const std::string& name = parameters()[row].name;
    all.push_back({.name = "exp_avg_codes." + name, .value = average_[row].codes, .run = 1});
    all.push_back({.name = "exp_avg_scale." + name, .value = average_[row].scale, .run = ops::kCodedBlock});
    all.push_back({.name = "exp_avg_sq_codes." + name, .value = square_average_[row].codes, .run = 1});
    all.push_back({.name = "exp_avg_sq_scale." + name, .value = square_average_[row].scale, .run = ops::kCodedBlock});
  }

 private:
  static void assign(const StepInputs& inputs, const CodedState& state, const CodedState& after) {
    assign_unless_skipped(inputs, state.codes, after.codes);
    assign_unless_skipped(inputs, state.scale, after.scale);
  }

  std::vector<CodedState> average_, square_average_;
  Codebook average_book_, square_book_;
};

}  // namespace

OptimizerPtr lean_adam(const config::RunConfig& config, std::vector<OptimizerParameter> parameters,
                       OptimizerPtr (*wide)(const config::RunConfig&, std::vector<OptimizerParameter>)) {
  if (config.optimizer.optimizer_state == config::OptimizerState::Bf16)
    return std::make_unique<Bf16Adam>(config, std::move(parameters), wide);
  return std::make_unique<CodedAdam>(config, std::move(parameters), wide);
}

}  // namespace welkin::train
