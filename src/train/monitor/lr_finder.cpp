// SPDX-License-Identifier: Apache-2.0
#include "train/monitor/lr_finder.h"

#include <cmath>
#include <cstdlib>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "core/process/signals.h"
#include "core/text.h"

namespace welkin::train {
namespace {

// The factor by which `scaling` changes the key lr.
double rate_factor(config::RunConfig config) {
  config.schedule.start_lr = config.optimizer.lr = 1;
  return peak_lr(config);
}

double two_digits(double value) {
  const double unit = std::pow(10.0, std::floor(std::log10(value)) - 1);
  return std::strtod(cat(std::round(value / unit), "e", std::lround(std::log10(unit))).c_str(), nullptr);
}

bool is_asked_to_stop(const StepRecord& record, bool own) {
  return record.requests.defined() ? record.requests.cpu().const_data_ptr<double>()[0] > 0 : own;
}

LrSuggestion suggestion_of(const LrRange& range) {
  if (const auto found = range.suggestion()) return *found;
  throw ConfigError("train", cat("the loss falls at none of the rates that were tried: steps=", range.points().size()),
                    "Look at lr_find.svg; take more steps or another range: --find_lr=low=1e-7,high=10,steps=300");
}

}  // namespace

LrRange find_lr(LrFinderParts parts, const LrRangeOptions& options) {
  const LrSchedulePtr schedule = rising_schedule(options);
  parts.setup.lr_table = std::make_unique<LrTable>(*schedule, options.steps, parts.step.device, config::RateRule::Iterations);
  const std::unique_ptr<Step> step = make_step(parts.setup, parts.config, std::move(parts.step));
  LrRange range;
  for (int64_t i = 0; i < options.steps; ++i) {
    const bool stop = parts.stop_requested();
    const StepRecord record = step->run(parts.next, stop ? 1 : 0);
    if (is_asked_to_stop(record, stop)) {
      throw Interrupted("train", cat("interrupted in the test of learning rates: step=", i + 1), "Start it again");
    }
    if (!range.add(schedule->rate(i), record.loss.item<double>())) break;
  }
  return range;
}

void write_lr_range(const LrRange& range, const std::filesystem::path& folder) {
  write_file_atomically(folder / "lr_find.csv", range.csv());
  write_file_atomically(folder / "lr_find.svg", range.svg());
}

double suggested_lr(const LrRange& range, const config::RunConfig& config) {
  return two_digits(suggestion_of(range).steepest / rate_factor(config));
}

std::string describe_lr(const LrRange& range, const config::RunConfig& config) {
  const LrSuggestion found = suggestion_of(range);
  const double factor = rate_factor(config);
  std::string text =
      cat("Learning rates from ", two_digits(range.points().front().rate), " to ", two_digits(range.points().back().rate), " in ",
          range.points().size(), " steps: the loss falls fastest at ", two_digits(found.steepest), " and is smallest at ",
          two_digits(found.minimum), ", of which a tenth is ", two_digits(found.minimum / 10),
          ". Start with --set lr=", two_digits(found.steepest / factor));
  if (factor != 1) text += cat(" (scaling multiplies it by ", factor, ")");
  return text;
}

}  // namespace welkin::train
