// SPDX-License-Identifier: Apache-2.0
// Learning rates of the tutorials and the corrected ones, step by step.
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/text.h"
#include "train/learn/lr_schedule.h"
#include "verify/cases/table_cases.h"

namespace welkin::verify {
namespace schedule_case {

using Json = nlohmann::json;

struct Table {
  config::RunConfig config;
  train::RunLength length;
  bool is_unet = false;
};

// Refuses sizes that no run has: they are divided by and multiplied.
int64_t read_size(const Json& c, const char* key, int64_t least) {
  const auto value = c.at(key).get<int64_t>();
  if (value >= least && value <= 1'000'000'000) return value;
  throw DataError("reference", cat("a size is out of range: ", key, "=", value, ", least=", least), "Correct the case's table");
}

config::RateScaling read_scaling(const Json& c) {
  const auto name = c.at("scaling").get<std::string>();
  if (const auto scaling = config::choice_named<config::RateScaling>(name)) return *scaling;
  throw DataError("reference", cat("a scaling is unknown: scaling=", name), "Correct the case's table");
}

Table read_unet(const Json& c) {
  Table table;
  table.is_unet = true;
  table.config.tutorial = config::Tutorial::Sc22;
  table.config.schedule.scaling = read_scaling(c);
  table.config.schedule.start_lr = c.at("start_lr").get<double>();
  table.config.schedule.end_lr = c.at("end_lr").get<double>();
  table.config.schedule.warmup_steps = read_size(c, "warmup_steps", 0);
  table.config.loop.global_batch_size = read_size(c, "global_bs", 1);
  table.config.loop.base_batch_size = read_size(c, "base_bs", 1);
  table.config.loop.num_epochs = read_size(c, "num_epochs", 0);
  table.length.samples = read_size(c, "Nsamples", 0);
  table.length.total_steps = read_size(c, "tot_steps", 0);
  return table;
}

Table read_vit(const Json& c) {
  Table table;
  table.config.tutorial = config::Tutorial::Dl4sci25;
  table.config.loop.global_batch_size = table.config.loop.base_batch_size = 16;
  table.config.schedule.start_lr = c.at("lr").get<double>();
  table.config.schedule.warmup_steps = read_size(c, "warmup", 0);
  table.length.total_steps = table.config.loop.num_iters = read_size(c, "num_iters", 0);
  return table;
}

struct Tolerance {
  double relative = 0, absolute = 0;
};

ComparisonRow compare_rates(const std::string& name, const train::LrSchedule& schedule, int64_t first,
                            const std::vector<double>& wanted, const Tolerance& tolerance) {
  std::vector<double> got;
  double worst = 0;  // in units of the bound
  int64_t worst_step = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    got.push_back(schedule.rate(first + static_cast<int64_t>(i)));
    const double used = std::abs(got[i] - wanted[i]) / (tolerance.relative * std::abs(wanted[i]) + tolerance.absolute);
    if (!(used <= worst)) worst = used, worst_step = first + static_cast<int64_t>(i);
  }
  ComparisonRow row = compare_values(name, at::tensor(got, at::kDouble), at::tensor(wanted, at::kDouble), {});
  row.tolerance_rel_l2 = tolerance.relative;
  row.verdict = worst <= 1 ? Verdict::Pass : Verdict::Fail;
  if (row.verdict == Verdict::Fail) row.reason = cat("first worst at step ", worst_step, ": ", worst, " bounds");
  return row;
}

void verify_table(const Json& entry, size_t number, const Tolerance& tolerance, Rows& rows) {
  const Json& c = entry.at("config");
  const bool is_unet = c.contains("start_lr");
  const Table table = is_unet ? read_unet(c) : read_vit(c);
  const std::string name = cat("table ", number, " (", is_unet ? "SC22" : "SC23, DL4SCI25", ") ");
  const train::LrSchedulePtr tutorial = is_unet ? train::unet_tutorial_schedule(table.config, table.length)
                                                : train::vit_tutorial_schedule(table.config, table.length);
  const auto steps = static_cast<size_t>(std::max<int64_t>(0, table.length.total_steps));
  for (const char* column : {"lr_tutorial", "lr_corrected"}) {
    if (!entry.contains(column)) continue;
    const auto wanted = entry.at(column).get<std::vector<double>>();
    if (wanted.size() != steps) {
      rows.push_back(failed(name + column, cat("wrong shape: rates=", wanted.size(), ", steps of the run=", steps)));
      continue;
    }
    const bool ours = std::string(column) == "lr_corrected";
    const train::LrSchedulePtr corrected = train::cosine_schedule(table.config, table.length);
    rows.push_back(
        compare_rates((ours ? name : "tutorial " + name) + column, ours ? *corrected : *tutorial, 0, wanted, tolerance));
  }
  if (!entry.contains("lr_after_last_step")) return;
  rows.push_back(compare_rates("tutorial " + name + "lr_after_last_step", *tutorial, table.length.total_steps,
                               {entry.at("lr_after_last_step").get<double>()}, tolerance));
}

}  // namespace schedule_case

Rows verify_schedules(const CaseFolder& folder, const VerifyOptions& /*options*/) {
  Rows rows;
  const auto tables = folder.json(folder.meta().value("file", std::string("lr.json")));
  const schedule_case::Tolerance tolerance{tables.at("tolerance").at("rel").get<double>(),
                                           tables.at("tolerance").at("abs").get<double>()};
  size_t number = 0;
  for (const auto& entry : tables.at("tables")) schedule_case::verify_table(entry, number++, tolerance, rows);
  if (folder.meta().contains("count")) {
    rows.push_back(compare_number("number of tables", static_cast<double>(number), folder.meta().at("count").get<double>(), 0));
  }
  return rows;
}

}  // namespace welkin::verify
