// SPDX-License-Identifier: Apache-2.0
// The losses of the tutorials, relative L2 (ViT) and L1 with a density term (U-Net), and mean errors.
#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/full.h>
#include <ATen/ops/square.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>

#include <functional>
#include <limits>
#include <utility>

#include "core/error.h"
#include "ops/loss/error_sums.h"
#include "train/learn/loss.h"

namespace welkin::train {
namespace {

at::Tensor sum_per_sample(const at::Tensor& values) { return values.flatten(1).sum(1); }

// (B): how many elements a sample has.
at::Tensor count_per_sample(const at::Tensor& like, int64_t elements) {
  return at::full({like.size(0)}, static_cast<double>(elements), like.options().requires_grad(false));
}

// (B): the sum of the weights of a sample's elements.
at::Tensor weight_per_sample(const at::Tensor& weight, const at::Tensor& like) { return sum_per_sample(weight.expand_as(like)); }

class RelativeL2 : public Loss {
 public:
  at::Tensor partial(const at::Tensor& prediction, const at::Tensor& target) const override {
    if (ops::fuses_error_sums(prediction, target)) return ops::error_sums(prediction, target, ops::ErrorKind::Square);
    const at::Tensor wide_target = widen(target);
    return at::stack({sum_per_sample(at::square(widen(prediction) - wide_target)), sum_per_sample(at::square(wide_target))}, 1);
  }

  at::Tensor weighted_partial(const at::Tensor& prediction, const at::Tensor& target, const at::Tensor& weight) const override {
    const at::Tensor wide_target = widen(target);
    return at::stack(
        {sum_per_sample(weight * at::square(widen(prediction) - wide_target)), sum_per_sample(weight * at::square(wide_target))},
        1);
  }
  bool takes_weights() const override { return true; }

  // A perfect prediction has gradient 0, not the NaN of sqrt at 0.
  at::Tensor finish(const at::Tensor& sums) const override {
    const at::Tensor error = at::clamp_min(sums.select(1, 0), std::numeric_limits<float>::min());
    return error.sqrt() / sums.select(1, 1).sqrt();
  }
};

class L1Rho : public Loss {
 public:
  explicit L1Rho(double lambda) : lambda_(lambda) {}

  at::Tensor partial(const at::Tensor& prediction, const at::Tensor& target) const override {
    const Parts sums = ops::fuses_error_sums(prediction, target) ? fused_parts(prediction, target) : parts(prediction, target);
    const int64_t points = prediction.numel() / prediction.size(0);
    std::vector<at::Tensor> columns = {sums.difference, count_per_sample(sums.difference, points)};
    if (lambda_ != 0) {
      columns.push_back(sums.density);
      columns.push_back(count_per_sample(sums.density, points / prediction.size(1)));
    }
    return at::stack(columns, 1);
  }

  at::Tensor weighted_partial(const at::Tensor& prediction, const at::Tensor& target, const at::Tensor& weight) const override {
    const at::Tensor p = widen(prediction), t = widen(target);
    std::vector<at::Tensor> columns = {sum_per_sample(weight * at::abs(p - t)), weight_per_sample(weight, p)};
    if (lambda_ != 0) {
      const at::Tensor of_density = weight.expand_as(p).select(1, 0);
      columns.push_back(sum_per_sample(of_density * at::abs(density(p) - density(t))));
      // If the density has no point at all, its term is 0.
      columns.push_back(at::clamp_min(sum_per_sample(of_density), std::numeric_limits<float>::min()));
    }
    return at::stack(columns, 1);
  }
  bool takes_weights() const override { return true; }

  at::Tensor finish(const at::Tensor& sums) const override {
    at::Tensor difference = sums.select(1, 0) / sums.select(1, 1);
    if (lambda_ == 0) return difference;
    return difference + lambda_ * (sums.select(1, 2) / sums.select(1, 3));
  }

 private:
  static constexpr double kDensityRate = 14;

  // (B) each.
  struct Parts {
    at::Tensor difference, density;
  };

  Parts parts(const at::Tensor& prediction, const at::Tensor& target) const {
    const at::Tensor p = widen(prediction), t = widen(target);
    Parts sums{.difference = sum_per_sample(at::abs(p - t)), .density = {}};
    if (lambda_ != 0) sums.density = sum_per_sample(at::abs(density(p) - density(t)));
    return sums;
  }

  Parts fused_parts(const at::Tensor& prediction, const at::Tensor& target) const {
    const double rate = lambda_ == 0 ? 0 : kDensityRate;
    const at::Tensor sums = ops::error_sums(prediction, target, ops::ErrorKind::Absolute, rate);
    return {.difference = sums.select(1, 0), .density = sums.select(1, 1)};
  }

  static at::Tensor density(const at::Tensor& values) { return at::exp(kDensityRate * values.select(1, 0)); }

  double lambda_;
};

// The mean of a function of the error, element by element.
class MeanError : public Loss {
 public:
  using Error = std::function<at::Tensor(const at::Tensor& difference)>;
  explicit MeanError(Error error) : error_(std::move(error)) {}

  at::Tensor partial(const at::Tensor& prediction, const at::Tensor& target) const override {
    const at::Tensor error = error_(widen(prediction) - widen(target));
    return at::stack({sum_per_sample(error), count_per_sample(error, error.numel() / error.size(0))}, 1);
  }

  at::Tensor weighted_partial(const at::Tensor& prediction, const at::Tensor& target, const at::Tensor& weight) const override {
    const at::Tensor error = error_(widen(prediction) - widen(target));
    return at::stack({sum_per_sample(weight * error), weight_per_sample(weight, error)}, 1);
  }
  bool takes_weights() const override { return true; }

  at::Tensor finish(const at::Tensor& sums) const override { return sums.select(1, 0) / sums.select(1, 1); }

 private:
  Error error_;
};

}  // namespace

at::Tensor Loss::weighted_partial(const at::Tensor& /*prediction*/, const at::Tensor& /*target*/,
                                  const at::Tensor& /*weight*/) const {
  throw InternalError("this loss takes no weights");
}

LossPtr mean_square() {
  return std::make_unique<MeanError>([](const at::Tensor& difference) { return at::square(difference); });
}

LossPtr mean_absolute() {
  return std::make_unique<MeanError>([](const at::Tensor& difference) { return at::abs(difference); });
}

LossPtr huber(double delta) {
  return std::make_unique<MeanError>([delta](const at::Tensor& difference) {
    const at::Tensor size = at::abs(difference);
    return at::where(size.le(delta), at::square(difference).mul(0.5), size.sub(0.5 * delta).mul(delta));
  });
}

at::Tensor widen(const at::Tensor& values) { return values.scalar_type() == at::kDouble ? values : values.to(at::kFloat); }

LossPtr relative_l2() { return std::make_unique<RelativeL2>(); }

LossPtr l1_rho(double lambda) { return std::make_unique<L1Rho>(lambda); }

}  // namespace welkin::train
