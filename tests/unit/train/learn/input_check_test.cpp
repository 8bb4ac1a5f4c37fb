// SPDX-License-Identifier: Apache-2.0
#include "train/learn/input_check.h"

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>

#include <limits>

#include "core/error.h"

namespace welkin::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

data::SampleSpec field_of_two() {
  data::SampleSpec spec;
  spec.input = {{"u10", "t2m"}, {"", ""}, {2, 4, 6}};
  spec.input_mean = {0, 1};
  spec.input_std = {1, 2};
  return spec;
}

TEST(InputCheck, InputFarFromItsMeanIsRefused) {
  data::SampleSpec spec = field_of_two();
  at::Tensor input = at::ones({3, 2, 4, 6});
  EXPECT_NO_THROW(check_normalised(input, spec));
  input.select(1, 1).fill_(-140.0f);
  EXPECT_THAT(
      [&] { check_normalised(input, spec); },
      ThrowsMessage<DataError>(HasSubstr("[train] the input is not normalised by these statistics: channel=t2m, mean distance "
                                         "in standard deviations=140, mean=1, std=2. Compute global_means_path")));
  spec.input_mean.clear(), spec.input_std.clear();
  EXPECT_NO_THROW(check_normalised(input, spec)) << "no statistics, no scale";
}

TEST(InputCheck, AFewExtremesAndNanPass) {
  at::Tensor input = at::ones({3, 2, 4, 6});
  input[0][1][0][0] = 1000.0f;
  EXPECT_NO_THROW(check_normalised(input, field_of_two()));
  input[0][1][0][0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_NO_THROW(check_normalised(input, field_of_two())) << "has an event of its own";
  input[0][1][0][0] = std::numeric_limits<float>::infinity();
  EXPECT_NO_THROW(check_normalised(input, field_of_two()));
}

std::vector<double> evenly(double from, double step, size_t count) {
  std::vector<double> values;
  for (size_t i = 0; i < count; ++i) values.push_back(from + static_cast<double>(i) * step);
  return values;
}

TEST(InputCheck, AModelOfTheGlobeWantsOne) {
  config::ModelConfig config;
  config.model = "swin";
  data::SampleSpec spec = field_of_two();
  spec.longitude = evenly(-12, 0.25, 48), spec.latitude = evenly(60, -0.25, 33);
  EXPECT_THAT(doubtful_grid(config, "windows", spec),
              ::testing::ElementsAre("model=swin takes the eastern edge for the neighbour of the western one (windows), and the "
                                     "longitudes do not go around the globe: from=-12, to=-0.25. A model of a region is vit"));
  EXPECT_TRUE(doubtful_grid(config, "", spec).empty());
  spec.longitude = evenly(-180, 0.25, 1440);
  EXPECT_TRUE(doubtful_grid(config, "windows", spec).empty());
  config.model = "sfno";
  spec.latitude = evenly(87.5, -5, 36);
  EXPECT_THAT(
      doubtful_grid(config, "spherical transform", spec),
      ::testing::ElementsAre(::testing::HasSubstr("takes the first row for a pole, which it is not: latitude=87.5, step=5")));
  config.model_grid_type = config::GridType::LegendreGauss;
  EXPECT_TRUE(doubtful_grid(config, "spherical transform", spec).empty());
  config.model_grid_type = config::GridType::Equiangular;
  spec.latitude = evenly(90, -0.25, 720);
  EXPECT_TRUE(doubtful_grid(config, "spherical transform", spec).empty()) << "ERA5 without its last row";
  spec.longitude.clear(), spec.latitude.clear();
  EXPECT_TRUE(doubtful_grid(config, "spherical transform", spec).empty()) << "nobody knows";
}

TEST(InputCheck, RatesThatLookWrong) {
  config::RunConfig config;
  config.schedule.schedule = "cosine";
  config.schedule.start_lr = 1e-3;
  config.schedule.warmup_steps = 10;
  EXPECT_THAT(doubtful_rates(config, 100), IsEmpty());
  EXPECT_THAT(doubtful_rates(config, 10), IsEmpty());
  EXPECT_THAT(doubtful_rates(config, 5), ElementsAre("the warm-up does not end within the run: warmup=10, steps=5"));
  config.schedule.end_lr = 1e-2;
  EXPECT_THAT(doubtful_rates(config, 100), ElementsAre("the learning rate rises to its end: end_lr=0.01, lr=0.001"));
  config.schedule.schedule = "constant";
  config.schedule.start_lr = 0.05, config.schedule.scaling = config::RateScaling::Linear;
  config.loop.global_batch_size = 256, config.loop.base_batch_size = 64;
  EXPECT_THAT(doubtful_rates(config, 100),
              ElementsAre("the learning rate looks too large: lr=0.05, scaled=0.2, optimizer=Adam, usual=at most 0.1"));
  config.optimizer.optimizer = "SGD";
  EXPECT_THAT(doubtful_rates(config, 100), IsEmpty());
}

}  // namespace
}  // namespace welkin::train
