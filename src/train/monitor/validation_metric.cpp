// SPDX-License-Identifier: Apache-2.0
#include "train/monitor/validation_metric.h"

#include <set>

#include "config/schema/early_stopping.h"
#include "core/error.h"
#include "core/text.h"

namespace welkin::train {
namespace {

std::string channel_text(const data::SampleSpec& spec, int64_t channel) {
  const auto index = static_cast<size_t>(channel);
  const auto& names = spec.target.channels;
  return index < names.size() && !names[index].empty() ? names[index] : cat("channel", channel);
}

// True if `text` is the metric's tag in metric_logger.h.
bool is_tag_of(const std::string& text, const ValidationMetric& metric, const data::SampleSpec& spec) {
  if (!metric.channel) return text == "Loss/valid";
  return text == cat("RMSE(", channel_text(spec, *metric.channel), ")/valid");
}

}  // namespace

std::vector<ValidationMetric> validation_metrics(const data::SampleSpec& spec) {
  std::vector<ValidationMetric> metrics(1);
  if (spec.target.shape.size() != 3) return metrics;  // boxes have no RMSE
  for (int64_t channel = 0; channel < spec.target.shape[0]; ++channel) {
    metrics.push_back({.name = cat("val_rmse_", channel_text(spec, channel)), .channel = channel});
  }
  return metrics;
}

ValidationMetric find_metric(const data::SampleSpec& spec, std::string_view key, const std::string& name) {
  const std::vector<ValidationMetric> metrics = validation_metrics(spec);
  std::vector<std::string> names;
  for (const ValidationMetric& metric : metrics) {
    if (metric.name == name || is_tag_of(name, metric, spec)) return metric;
    names.push_back(metric.name);
  }
  const auto near = nearest(name, names);
  throw ConfigError("train", cat("unknown metric: ", key, "=", name),
                    cat(near.empty() ? "" : cat("Nearest: ", join(near, ", "), ". "), "A validation of these data reports ",
                        join(names, ", ")));
}

ValidationMetric best_metric(const config::RunConfig& config, const data::SampleSpec& spec) {
  return find_metric(spec, "best_metric", config.loop.best_metric);
}

std::optional<ValidationMetric> early_stopping_metric(const config::RunConfig& config, const data::SampleSpec& spec) {
  std::string problem;
  const auto rule = config::parse_early_stopping(config.loop.early_stopping, problem);
  if (!rule) return {};
  return find_metric(spec, "early_stopping", rule->metric);
}

std::vector<int64_t> watched_channels(const config::RunConfig& config, const data::SampleSpec& spec) {
  std::set<int64_t> channels;
  if (const auto best = best_metric(config, spec); best.channel) channels.insert(*best.channel);
  if (const auto stopping = early_stopping_metric(config, spec); stopping && stopping->channel)
    channels.insert(*stopping->channel);
  channels.erase(0);
  return {channels.begin(), channels.end()};
}

}  // namespace welkin::train
