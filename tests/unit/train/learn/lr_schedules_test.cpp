// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/file.h"
#include "golden_folder.h"
#include "number_close.h"
#include "train/learn/lr_schedule.h"

namespace welkin::train {
namespace {

using nlohmann::json;

struct ScheduleCase {
  config::RunConfig config;
  RunLength length;
};

ScheduleCase unet_case(const json& table) {
  const json& c = table.at("config");
  ScheduleCase made;
  made.config.tutorial = config::Tutorial::Sc22;
  made.config.schedule.scaling = config::choice_named<config::RateScaling>(c.at("scaling").get<std::string>()).value();
  made.config.schedule.start_lr = c.at("start_lr").get<double>();
  made.config.schedule.end_lr = c.at("end_lr").get<double>();
  made.config.schedule.warmup_steps = c.at("warmup_steps").get<int64_t>();
  made.config.loop.global_batch_size = c.at("global_bs").get<int64_t>();
  made.config.loop.base_batch_size = c.at("base_bs").get<int64_t>();
  made.config.loop.num_epochs = c.at("num_epochs").get<int64_t>();
  made.length.samples = c.at("Nsamples").get<int64_t>();
  made.length.total_steps = c.at("tot_steps").get<int64_t>();
  return made;
}

ScheduleCase vit_case(const json& table) {
  const json& c = table.at("config");
  ScheduleCase made;
  made.config.tutorial = config::Tutorial::Dl4sci25;
  made.config.loop.global_batch_size = made.config.loop.base_batch_size = 16;
  made.config.schedule.start_lr = c.at("lr").get<double>();
  made.config.schedule.warmup_steps = c.at("warmup").get<int64_t>();
  made.length.total_steps = made.config.loop.num_iters = c.at("num_iters").get<int64_t>();
  return made;
}

// The tables state their own tolerance.
void expect_rates(const LrSchedule& schedule, const json& rates, const json& tolerance, const std::string& what) {
  const double relative = tolerance.at("rel").get<double>(), absolute = tolerance.at("abs").get<double>();
  for (size_t step = 0; step < rates.size(); ++step) {
    const double wanted = rates[step].get<double>();
    EXPECT_TRUE(tests::within(schedule.rate(static_cast<int64_t>(step)), wanted,
                              {relative * std::abs(wanted) + absolute, "what the table states"}))
        << what << " step " << step;
  }
}

TEST(Schedules, EqualTheReferenceTablesWithAndWithoutTheDefect) {
  const auto path = golden_folder("lr_tables") / "lr.json";
  WELKIN_NEED_GOLDEN(path);
  const json file = json::parse(read_file(path, 1 << 24));
  const json& tables = file.at("tables");
  const json& tolerance = file.at("tolerance");
  ASSERT_EQ(tables.size(), 7u);
  for (const json& table : tables) {
    const bool is_unet = table.at("tutorial") == "SC22";
    const auto [config, length] = is_unet ? unet_case(table) : vit_case(table);
    const auto tutorial = is_unet ? unet_tutorial_schedule : vit_tutorial_schedule;
    expect_rates(*tutorial(config, length), table.at("lr_tutorial"), tolerance, "tutorial " + table.at("config").dump());
    expect_rates(*cosine_schedule(config, length), table.at("lr_corrected"), tolerance, "corrected " + table.at("config").dump());
    if (table.contains("lr_after_last_step")) {
      EXPECT_TRUE(tests::within(tutorial(config, length)->rate(length.total_steps), table.at("lr_after_last_step").get<double>(),
                                {tolerance.at("abs").get<double>(), "what the table states"}));
    }
  }
}

config::RunConfig plain(double peak, double end, int64_t warmup) {
  config::RunConfig config;
  config.loop.global_batch_size = 32;
  config.loop.base_batch_size = 8;
  config.schedule.start_lr = peak;
  config.schedule.end_lr = end;
  config.schedule.warmup_steps = warmup;
  return config;
}

TEST(Schedules, ConstantAndLinearRampFirst) {
  const config::RunConfig config = plain(1.0, 0.2, 4);
  const RunLength length{.total_steps = 12, .steps_per_epoch = 6};
  const LrSchedulePtr constant = constant_schedule(config, length);
  const LrSchedulePtr linear = linear_schedule(config, length);
  EXPECT_DOUBLE_EQ(constant->rate(0), 0.25);
  EXPECT_DOUBLE_EQ(constant->rate(3), 1.0);
  EXPECT_DOUBLE_EQ(constant->rate(11), 1.0);
  EXPECT_DOUBLE_EQ(linear->rate(3), 1.0);
  EXPECT_DOUBLE_EQ(linear->rate(8), 0.6);
  EXPECT_DOUBLE_EQ(linear->rate(12), 0.2);
  EXPECT_DOUBLE_EQ(linear->rate(99), 0.2);
}

TEST(Schedules, ScalingFollowsTheBatch) {
  config::RunConfig config = plain(0.1, 0, 0);
  EXPECT_DOUBLE_EQ(peak_lr(config), 0.1);
  config.schedule.scaling = config::RateScaling::Sqrt;
  EXPECT_DOUBLE_EQ(peak_lr(config), 0.2);
  config.schedule.scaling = config::RateScaling::Linear;
  EXPECT_DOUBLE_EQ(peak_lr(config), 0.4);
}

TEST(Schedules, OfTheUnetFilesRampOnlyAStretchedBatch) {
  config::RunConfig config = plain(1, 0, 5);
  EXPECT_EQ(ramp_steps(config), 5);
  config.tutorial = config::Tutorial::Sc21;
  EXPECT_EQ(ramp_steps(config), 0);  // scaling none
  config.schedule.scaling = config::RateScaling::Sqrt;
  EXPECT_EQ(ramp_steps(config), 5);
  config.loop.global_batch_size = 8;
  EXPECT_EQ(ramp_steps(config), 0);
}

TEST(Schedules, TableIsLinearInBetweenAndConstantOutside) {
  config::RunConfig config = plain(1, 0, 0);
  config.schedule.table = {10, 1.0, 20, 3.0, 40, 0.0};
  const LrSchedulePtr table = table_schedule(config, {});
  EXPECT_DOUBLE_EQ(table->rate(0), 1.0);
  EXPECT_DOUBLE_EQ(table->rate(15), 2.0);
  EXPECT_DOUBLE_EQ(table->rate(30), 1.5);
  EXPECT_DOUBLE_EQ(table->rate(99), 0.0);
}

std::string table_error(const std::vector<double>& table) {
  config::RunConfig config;
  config.schedule.table = table;
  try {
    table_schedule(config, {});
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Schedules, ABadTableIsRefusedByName) {
  EXPECT_EQ(
      table_error({1, 2, 3}),
      "[schedule] the table is empty or not made of pairs: lr_schedule.table has 3 numbers. Give pairs: step, rate, step, rate.");
  EXPECT_EQ(table_error({5, 1, 5, 2}),
            "[schedule] the steps of the table do not rise: step=5 after step=5. Sort lr_schedule.table by step.");
}

// DeepSpeed's WarmupLR and WarmupDecayLR (deepspeed/runtime/lr_schedules.py) after `iteration` calls of step(), the first of
// which has the number 0. Ours come one call earlier where the ramp is linear.
double deepspeed_rate(int64_t iteration, bool is_log, int64_t ramp, int64_t total, double low, double high) {
  const auto i = static_cast<double>(iteration), n = static_cast<double>(ramp);
  double gamma = 1;
  if (iteration < ramp) {
    gamma = is_log ? std::log(i + 1) / std::log(n) : i / n;
  } else if (total > 0) {
    gamma = std::max(0.0, (static_cast<double>(total) - i) / std::max(1.0, static_cast<double>(total) - n));
  }
  return low + (high - low) * gamma;
}

TEST(LrSchedules, RampsOfDeepSpeedsJson) {
  config::RunConfig config;
  config.loop.global_batch_size = config.loop.base_batch_size = 16;
  config.schedule.start_lr = 2e-3;
  config.schedule.warmup_start_lr = config.schedule.end_lr = 1e-4;
  config.schedule.warmup_steps = 20;
  constexpr int64_t kSteps = 100;
  for (const bool is_log : {true, false}) {
    config.schedule.warmup_form = is_log ? config::WarmupForm::Log : config::WarmupForm::Linear;
    const auto flat = constant_schedule(config, {.total_steps = kSteps});
    const auto falling = linear_schedule(config, {.total_steps = kSteps});
    for (int64_t k = 0; k < kSteps; ++k) {
      const int64_t earlier = !is_log && k < 20 ? 1 : 0;
      EXPECT_DOUBLE_EQ(flat->rate(k), deepspeed_rate(k + earlier, is_log, 20, 0, 1e-4, 2e-3)) << k;
      EXPECT_DOUBLE_EQ(falling->rate(k), deepspeed_rate(k + earlier, is_log, 20, kSteps, 1e-4, 2e-3)) << k;
    }
  }
}

}  // namespace
}  // namespace welkin::train
