// SPDX-License-Identifier: Apache-2.0
// Huber's loss, conservation and spectra against sums written out and against closed forms.
#include "train/learn/loss_terms.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gmock/gmock.h>

#include <cmath>
#include <complex>
#include <limits>
#include <numbers>

#include "core/error.h"
#include "gradient_check.h"
#include "train/learn/weighted_loss.h"

namespace welkin::train {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// Of a loss that is always 0, so that the terms stand alone.
class NoLoss : public Loss {
 public:
  at::Tensor partial(const at::Tensor& prediction, const at::Tensor& /*target*/) const override {
    return at::zeros({prediction.size(0), 1}, prediction.options().requires_grad(false));
  }
  at::Tensor finish(const at::Tensor& sums) const override { return sums.select(1, 0); }
};

at::Tensor fields(uint64_t seed) { return tests::test_values({2, 3, 4, 6}, seed); }
at::Tensor rows() { return at::tensor({0.4, 1.6, 1.2, 0.8}, at::kDouble); }
LossPtr term(LossTerms terms) {
  terms.rows = rows();
  return with_terms(std::make_unique<NoLoss>(), std::move(terms));
}

TEST(Huber, IsASquareBelowDeltaAndALineAbove) {
  const at::Tensor prediction = at::tensor({0.1, -0.4, 0.5, 2.0, -3.0}, at::kDouble).view({1, 1, 1, 5});
  const double wanted = (0.005 + 0.08 + 0.125 + 0.5 * (2.0 - 0.25) + 0.5 * (3.0 - 0.25)) / 5;
  EXPECT_TRUE(tests::close(huber(0.5)->per_sample(prediction, at::zeros_like(prediction)).item<double>(), wanted, kFp64, 16));
  const at::Tensor p = fields(1), t = fields(2);
  EXPECT_TRUE(tests::close(huber(10)->per_sample(p, t), mean_square()->per_sample(p, t) / 2, at::kDouble, 72));
  EXPECT_TRUE(tests::gradcheck([](const std::vector<at::Tensor>& in) { return huber(0.3)->per_sample(in[0], in[1]); },
                               {fields(3), fields(4)}));
}

TEST(Huber, TakesWeights) {
  const LossPtr weighted = weighted_loss(huber(0.3), {.channels = at::tensor({1.0, 0.0, 0.0}, at::kDouble)}, "huber");
  const at::Tensor p = fields(1), t = fields(2);
  EXPECT_TRUE(
      tests::close(weighted->per_sample(p, t), huber(0.3)->per_sample(p.narrow(1, 0, 1), t.narrow(1, 0, 1)), at::kDouble, 72));
}

// Row by row, point by point.
double mean_error(const at::Tensor& difference, int64_t sample, int64_t channel) {
  double sum = 0, weight = 0;
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = 0; j < 6; ++j) {
      const auto value = difference[sample][channel][i][j].item<double>(), row = rows()[i].item<double>();
      if (std::isnan(value)) continue;
      sum += row * value, weight += row;
    }
  }
  return sum / weight;
}

TEST(Conservation, IsTheSquareOfTheErrorOfTheMean) {
  const LossPtr loss = term({.conservation = at::tensor({2.0, 0.0, 0.5}, at::kDouble)});
  const at::Tensor p = fields(5), t = fields(6), got = loss->per_sample(p, t);
  for (int64_t b = 0; b < 2; ++b) {
    const double wanted = 2 * std::pow(mean_error(p - t, b, 0), 2) + 0.5 * std::pow(mean_error(p - t, b, 2), 2);
    EXPECT_TRUE(tests::close(got[b].item<double>(), wanted, kFp64, 64));
  }
  EXPECT_TRUE(tests::gradcheck([&](const std::vector<at::Tensor>& in) { return loss->per_sample(in[0], t); }, {p}));
}

// A ring that moves keeps its mean: no error there, though every point is off.
TEST(Conservation, DoesNotSeeWhatStandsElsewhere) {
  const LossPtr loss = term({.conservation = at::ones({3}, at::kDouble)});
  const at::Tensor t = fields(6);
  EXPECT_TRUE(tests::close(loss->per_sample(t.roll(2, 3), t) + 1, at::ones({2}, at::kDouble), at::kDouble, 64));
}

TEST(Conservation, AddsUpOverPartsAndLeavesOutPointsWithoutAValue) {
  const LossPtr loss = term({.conservation = at::ones({3}, at::kDouble), .holes = true});
  at::Tensor p = fields(5), t = fields(6);
  t.select(1, 1).narrow(1, 1, 2).fill_(std::numeric_limits<double>::quiet_NaN());
  t.select(0, 1).select(0, 2).fill_(std::numeric_limits<double>::quiet_NaN());
  const at::Tensor whole = loss->per_sample(p, t);
  const at::Tensor parts =
      loss->partial_from(0, p.narrow(2, 0, 1), t.narrow(2, 0, 1)) + loss->partial_from(1, p.narrow(2, 1, 3), t.narrow(2, 1, 3));
  EXPECT_TRUE(tests::close(loss->finish(parts), whole, at::kDouble, 64));
  const double wanted = std::pow(mean_error(p - t, 1, 0), 2) + std::pow(mean_error(p - t, 1, 1), 2);
  EXPECT_TRUE(tests::close(whole[1].item<double>(), wanted, kFp64, 64)) << "the third channel has no point";
}

// The transform as a sum.
double amplitude(const at::Tensor& fields, int64_t sample, int64_t channel, int64_t wavenumber) {
  double power = 0;
  for (int64_t i = 0; i < 4; ++i) {
    std::complex<double> sum = 0;
    for (int64_t j = 0; j < 6; ++j) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(wavenumber * j) / 6;
      sum += fields[sample][channel][i][j].item<double>() * std::polar(1.0, -angle);
    }
    const double times = wavenumber == 0 || wavenumber == 3 ? 1 : 2;
    power += rows()[i].item<double>() * times * std::norm(sum) / 36 / 4;
  }
  return std::sqrt(power);
}

TEST(SpectralError, ComparesAmplitudesOfWavenumbers) {
  const LossPtr loss = term({.spectral = 0.7});
  const at::Tensor p = fields(7), t = fields(8), got = loss->per_sample(p, t);
  for (int64_t b = 0; b < 2; ++b) {
    double wanted = 0;
    for (int64_t c = 0; c < 3; ++c) {
      for (int64_t m = 0; m <= 3; ++m) wanted += std::pow(amplitude(p, b, c, m) - amplitude(t, b, c, m), 2) / 3;
    }
    EXPECT_TRUE(tests::close(got[b].item<double>(), 0.7 * wanted, kFp64, 256));
  }
  EXPECT_TRUE(tests::gradcheck([&](const std::vector<at::Tensor>& in) { return loss->per_sample(in[0], t); }, {p}));
}

// Against nothing the sum over wavenumbers is the mean square (Parseval); of a wave that has moved there is no error.
TEST(SpectralError, IsTheMeanSquareAndBlindToPhase) {
  const LossPtr loss = term({.spectral = 1});
  const at::Tensor t = fields(8);
  const at::Tensor square = (t.square() * rows().view({1, 1, 4, 1})).flatten(2).mean(2).mean(1);
  EXPECT_TRUE(tests::close(loss->per_sample(t, at::zeros_like(t)), square, at::kFloat, 64)) << "but for the smallest amplitudes";
  EXPECT_TRUE(tests::close(loss->per_sample(t.roll(1, 3), t) + 1, at::ones({2}, at::kDouble), at::kDouble, 64));
}

TEST(LossTerms, ComeOnTopOfTheLoss) {
  LossTerms terms{.conservation = at::ones({3}, at::kDouble), .spectral = 0.5, .rows = rows()};
  const at::Tensor p = fields(5), t = fields(6);
  const at::Tensor both = mean_square()->per_sample(p, t) + term({.conservation = terms.conservation})->per_sample(p, t) +
                          term({.spectral = 0.5})->per_sample(p, t);
  EXPECT_TRUE(tests::close(with_terms(mean_square(), terms)->per_sample(p, t), both, at::kDouble, 256));
}

TEST(LossTerms, FollowTheKeys) {
  data::SampleSpec spec;
  spec.target = {{"t500", "t850", "tp"}, {}, {3, 4, 6}};
  config::RunConfig config;
  EXPECT_FALSE(loss_terms(config, spec, at::kCPU).any());
  config.loss.conservation = {"t*=0.25"};
  config.loss.spectral_weight = 2;
  const LossTerms terms = loss_terms(config, spec, at::kCPU);
  EXPECT_TRUE(terms.conservation.equal(at::tensor({0.25, 0.25, 0.25}, at::kDouble)));
  EXPECT_EQ(terms.spectral, 2);
  config.loss.conservation = {"tp=-1"};
  EXPECT_THAT([&] { loss_terms(config, spec, at::kCPU); },
              ThrowsMessage<ConfigError>("[loss] a negative weight: key=conservation, channel=tp, weight=-1. Give a weight of at "
                                         "least 0."));
  config.loss.conservation = {"q=1"};
  EXPECT_THAT([&] { loss_terms(config, spec, at::kCPU); }, ThrowsMessage<ConfigError>(HasSubstr("conservation")));
}

}  // namespace
}  // namespace welkin::train
