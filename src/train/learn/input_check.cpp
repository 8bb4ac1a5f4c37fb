// SPDX-License-Identifier: Apache-2.0
#include "train/learn/input_check.h"

#include <ATen/ops/abs.h>
#include <ATen/ops/mean.h>

#include <cmath>

#include "core/error.h"
#include "core/text.h"
#include "train/learn/lr_schedule.h"

namespace welkin::train {
namespace {

constexpr double kMostDeviations = 20;

// Above the rates in use, with room: Adam's are 1e-5 to 1e-2, those of gradient descent up to 1.
double most_rate(const std::string& optimizer) { return optimizer.starts_with("Adam") ? 0.1 : 10; }

}  // namespace

void check_normalised(const at::Tensor& input, const data::SampleSpec& spec) {
  if (spec.input_mean.empty()) return;
  const at::Tensor sizes = at::abs(input.detach()).transpose(0, 1).flatten(1).mean(1, false, at::kDouble).cpu();
  for (int64_t c = 0; c < sizes.size(0); ++c) {
    const double size = sizes[c].item<double>();
    const auto channel = static_cast<size_t>(c);
    if (!(size > kMostDeviations) || std::isinf(size)) continue;  // NaN and infinity have an event of their own
    throw DataError("train",
                    cat("the input is not normalised by these statistics: channel=", spec.input.channels[channel],
                        ", mean distance in standard deviations=", size, ", mean=", spec.input_mean[channel],
                        ", std=", spec.input_std[channel]),
                    "Compute global_means_path and global_stds_path of these data with welkin data stats, or set "
                    "allow_unnormalized to true");
  }
}

std::vector<std::string> doubtful_rates(const config::RunConfig& config, int64_t total_steps) {
  std::vector<std::string> lines;
  if (config.schedule.schedule == "table") return lines;
  const double start = config.schedule.start_lr, peak = peak_lr(config), most = most_rate(config.optimizer.optimizer);
  if (peak > most) {
    lines.push_back(cat("the learning rate looks too large: lr=", start, peak == start ? "" : cat(", scaled=", peak),
                        ", optimizer=", config.optimizer.optimizer, ", usual=at most ", most));
  }
  if (const int64_t ramp = ramp_steps(config); ramp > total_steps) {
    lines.push_back(cat("the warm-up does not end within the run: warmup=", ramp, ", steps=", total_steps));
  }
  const bool has_end = config.schedule.schedule != "constant" && config.schedule.schedule != "vit_tutorial";
  if (has_end && config.schedule.end_lr > peak) {
    lines.push_back(cat("the learning rate rises to its end: end_lr=", config.schedule.end_lr, ", lr=", peak));
  }
  return lines;
}

std::vector<std::string> doubtful_grid(const config::ModelConfig& config, const std::string& around_globe,
                                       const data::SampleSpec& spec) {
  constexpr double kGlobe = 360, kPole = 90, kShare = 0.25;  // kShare: by which part of a step a grid may be off
  std::vector<std::string> lines;
  if (around_globe.empty()) return lines;
  if (const std::vector<double>& east = spec.longitude; east.size() > 1) {
    const double step = (east.back() - east.front()) / static_cast<double>(east.size() - 1);
    if (const double span = step * static_cast<double>(east.size()); std::abs(span - kGlobe) > kShare * step) {
      lines.push_back(cat("model=", config.model, " takes the eastern edge for the neighbour of the western one (", around_globe,
                          "), and the longitudes do not go around the globe: from=", east.front(), ", to=", east.back(),
                          ". A model of a region is vit"));
    }
  }
  const bool has_poles = config.model == "sfno" && config.model_grid_type == config::GridType::Equiangular;
  if (const std::vector<double>& north = spec.latitude; has_poles && north.size() > 1) {
    const double step = std::abs(north[1] - north[0]);
    if (std::abs(kPole - std::abs(north.front())) > kShare * step) {
      lines.push_back(cat(
          "model=sfno with model_grid_type=equiangular takes the first row for a pole, which it is not: latitude=", north.front(),
          ", step=", step));
    }
  }
  return lines;
}

}  // namespace welkin::train
