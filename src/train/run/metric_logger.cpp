// SPDX-License-Identifier: Apache-2.0
#include "train/run/metric_logger.h"

#include <cmath>
#include <cstdio>

#include "config/print/print.h"
#include "config/yaml/yaml_scalar.h"
#include "core/error.h"
#include "core/text.h"
#include "observe/image/png.h"
#include "train/learn/nonfinite_text.h"

namespace welkin::train {
namespace {

constexpr int64_t kPictureChannel = 2;  // t2m in the tutorials' 20-channel layout

std::string shortest(double value) { return std::isfinite(value) ? config::float_text(value) : nonfinite_text(value); }

std::string fixed6(double value) {
  if (!std::isfinite(value)) return nonfinite_text(value);
  char text[64];
  std::snprintf(text, sizeof text, "%f", value);
  return text;
}

double per_second(int64_t count, double seconds) { return seconds > 0 ? static_cast<double>(count) / seconds : 0; }

}  // namespace

void log_configuration(observe::RunLog& log, const config::Resolved& resolved) {
  log.info("------------------ Configuration ------------------");
  log.info(cat("Configuration file: ", resolved.config.yaml_config));
  log.info(cat("Configuration name: ", resolved.config.config));
  for (const std::string& line : config::dump_lines(resolved)) log.info(line);
  log.info(std::string(51, '-'));
}

MetricLogger::MetricLogger(observe::RunLog& log, const config::RunConfig& config, const data::SampleSpec& spec,
                           const ScalarFiles& files, std::optional<int64_t> resume_from)
    : log_(log),
      spec_(spec),
      is_unet_(config.model.model == "unet3d"),
      is_field_(spec.target.shape.size() == 3),
      nan_policy_(config.data.nan_policy) {
  if (files.events) events_.emplace(*files.events, observe::EventWriterOptions{.purge_from_step = resume_from, .wall_time = {}});
  if (files.csv) csv_.emplace(*files.csv, resume_from);
}

int64_t MetricLogger::picture_channel() const { return spec_.target.shape[0] > kPictureChannel ? kPictureChannel : 0; }

// Data sets call channels without a name "channel0", "channel1", ...: these get the tutorials' name.
std::string MetricLogger::channel_name(int64_t channel, const std::string& unnamed) const {
  const auto& names = spec_.target.channels;
  const auto index = static_cast<size_t>(channel);
  const bool has_name = index < names.size() && !names[index].empty() && names[index] != cat("channel", channel);
  return has_name ? names[index] : unnamed;
}

void MetricLogger::scalar(const std::string& tag, double value, int64_t step) {
  if (events_) events_->scalar(tag, static_cast<float>(value), step);
  if (csv_) csv_->add(tag, value, step, epoch_);
}

void MetricLogger::initial(const EpochReport& train, const ValidationReport& valid) {
  scalar("Loss/train", train.loss, 0);
  validation(valid, 0);
}

void MetricLogger::epoch(const EpochReport& report) {
  epoch_ = report.epoch;
  const double rate = per_second(report.samples, report.seconds);
  const auto number = [this](double value) { return is_unet_ ? shortest(value) : fixed6(value); };
  log_.info(
      cat("Time taken for epoch ", report.epoch, " is ", number(report.seconds), " sec, avg ", number(rate), " samples/sec"));
  log_.info(cat("  Avg train loss=", fixed6(report.loss)));
  if (report.skipped > 0) log_.info(cat("  Skipped updates=", report.skipped));
  if (!report.throughput.empty()) log_.info(cat("  ", report.throughput));
  scalar("Loss/train", report.loss, report.iterations);
  scalar("Learning Rate", is_unet_ ? report.last_lr : report.next_lr, report.iterations);
  scalar("Avg iters per sec", per_second(report.steps, report.seconds), report.iterations);
  if (!is_unet_) scalar("Avg samples per sec", rate, report.iterations);
}

void MetricLogger::step(const std::string& line, const StepReport& report, int64_t step, int64_t epoch) {
  epoch_ = epoch;
  log_.info(line);
  scalar("Loss/train_step", report.loss, step);
  scalar("Gradient norm", report.gradient_norm, step);
  scalar("Memory [GiB]", report.memory_gib, step);
  flush();
}

void MetricLogger::picture(const ForecastPair& pair, int64_t step) {
  if (!events_) return;
  const observe::image::Raster raster = draw_forecast_pair(pair);
  const std::string tag = cat("Visualization, ", channel_name(picture_channel(), "t2m"));
  events_->png_image(tag, observe::image::encode_png(raster), raster.width(), raster.height(), step);
}

void MetricLogger::validation(const ValidationReport& report, int64_t step) {
  if (step > 0) log_validation(report);
  warn_of_nonfinite(report, step);
  scalar("Loss/valid", report.loss, step);
  if (report.first_channel_rmse) {
    scalar(cat("RMSE(", channel_name(0, "u10m"), ")/valid"), *report.first_channel_rmse, step);
  }
  for (const auto& [channel, rmse] : report.watched_rmse) {
    scalar(cat("RMSE(", channel_name(channel, cat("channel", channel)), ")/valid"), rmse, step);
  }
  flush();
}

void MetricLogger::flush() {
  if (events_) try_to_write([this] { events_->flush(); });
  if (csv_) try_to_write([this] { csv_->flush(); });
}

void MetricLogger::try_to_write(const std::function<void()>& write) {
  try {
    write();
  } catch (const DataError& error) {
    log_.error(error.what());
  }
}

void MetricLogger::log_validation(const ValidationReport& report) {
  log_.info(cat("  Avg val loss=", is_unet_ ? fixed6(report.loss) : shortest(report.loss)));
  log_.info(cat("  Total validation time: ", shortest(report.seconds), " sec"));
}

// Warns once: every later epoch would say the same. A batch without any point has no loss, so none that is not finite.
void MetricLogger::warn_of_nonfinite(const ValidationReport& report, int64_t step) {
  if (std::isfinite(report.loss) || warned_of_nonfinite_ || (std::isnan(report.loss) && report.nonfinite == 0)) return;
  warned_of_nonfinite_ = true;
  log_.warning(cat("[train] the validation loss is not finite: iteration=", step, ", samples=", report.nonfinite,
                   ", nan_policy=", name_of(nan_policy_),
                   ". No best checkpoint can be chosen from it. Look for NaN in the validation data with nan_policy report."));
}

}  // namespace welkin::train
