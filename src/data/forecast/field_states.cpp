// SPDX-License-Identifier: Apache-2.0
#include "data/forecast/field_states.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/error.h"
#include "core/text.h"

namespace welkin::data {
namespace {

Era5Options state_options(const config::RunConfig& config, Split split, const std::string& folder) {
  if (config.data.dataset != "era5" || config.data.data_loader_config == config::Loader::Synthetic) {
    throw ConfigError("forecast", cat("these data are no states in time: dataset=", config.data.dataset),
                      "A forecast begins with fields in time (dataset era5) that are read from files");
  }
  Era5Options options = fields_options(config, split);
  if (!folder.empty()) options.folder = folder;
  options.lead = 0;  // a state is its own target, which nobody reads
  options.limit = std::nullopt;
  options.hold = false;
  options.rules = Rules::Corrected;
  return options;
}

bool same_degrees(const std::vector<double>& one, const std::vector<double>& other) {
  return std::ranges::equal(one, other, [](double a, double b) { return std::abs(a - b) < 1e-4; });
}

// A crop of another grid would be taken for that of the run. Training files that are gone cannot be asked.
void check_like_training(const config::RunConfig& config, const SampleSpec& spec, const FieldFacts& states) {
  std::error_code error;
  if (!std::filesystem::is_directory(config.data.train_data_path, error)) return;
  const GridFacts trained = read_grid_facts(fields_options(config, Split::Train));
  const bool same_grid = same_degrees(trained.latitude, spec.latitude) && same_degrees(trained.longitude, spec.longitude);
  if (same_grid && trained.calendar == states.calendar) return;
  throw DataError("forecast",
                  cat("the states have another ", same_grid ? "calendar" : "grid", " than the run's training data: path=",
                      states.path.string(), ", calendar=", states.calendar, ", trained=", config.data.train_data_path),
                  "Give states of the grid and calendar that the model was trained on");
}

// What a state of the files lacks between two steps: channels that nobody predicts, and values at holes.
void check_predictable(const config::RunConfig& config, const SampleSpec& spec) {
  if (!spec.known_input.empty()) {
    throw ConfigError("forecast",
                      cat("channels of the files that are forcing or static are not read by a forecast yet: channel=",
                          spec.input.channels[static_cast<size_t>(spec.known_input.front())]),
                      "welkin evaluate and welkin predict with --rollout_steps take them from files that hold the truth");
  }
  if (spec.has_holes || config.data.nan_policy == config::NanPolicy::Hole) {
    throw ConfigError(
        "forecast",
        cat("states with points without a value are not filled by a forecast yet: folder=", config.data.train_data_path),
        "welkin evaluate and welkin predict with --rollout_steps fill them");
  }
}

}  // namespace

FieldStates::FieldStates(const config::RunConfig& config, Split split, const std::string& folder,
                         const std::optional<TimeStep>& step)
    : lead_(config.data.dt) {
  const Era5Options options = state_options(config, split, folder);
  states_ = std::make_unique<Era5Dataset>(options);
  for (int64_t i = 0; i < states_->num_files(); ++i) need_times(states_->file(i), "a forecast", "the forecast");
  calendar_ = parse_calendar(states_->file(0).calendar);
  find_times(options.folder.string());
  if (step) step_ = *step;
  if (!step_.is_known()) {
    throw ConfigError("forecast", cat("one state does not say how long a step is: folder=", options.folder.string()),
                      "Give the step of the run's data, for instance --time_step 6h");
  }
  spec_ = states_->spec();
  check_predictable(config, spec_);
  check_like_training(config, spec_, states_->file(0));
  add_computed(config);
}

void FieldStates::find_times(const std::string& folder) {
  for (int64_t i = 0; i < states_->num_files() && !step_.is_known(); ++i) {
    step_ = time_step_of(states_->file(i).time, calendar_, states_->file(i).path.string());
  }
  const Region nothing{};
  for (int64_t i = 0; i < states_->size(); ++i) {
    const SamplePlan plan = states_->plan({.index = i}, nothing);
    times_.push_back(states_->file(plan.file).time[static_cast<size_t>(plan.time)]);
  }
  const auto twice = std::ranges::adjacent_find(times_, std::ranges::greater_equal());
  if (twice == times_.end()) return;
  throw DataError("forecast",
                  cat("the files of a folder do not follow each other in time: folder=", folder,
                      ", time=", format_date(calendar_, *(twice + 1))),
                  "Name the files in the order of their times");
}

void FieldStates::add_computed(const config::RunConfig& config) {
  if (config.data.forcing.empty()) return;
  computed_ = std::make_unique<ForcingChannels>(config.data.forcing, spec_.latitude, spec_.longitude, calendar_);
  std::ranges::copy(computed_->names(), std::back_inserter(spec_.input.channels));
  const size_t channels = spec_.input.channels.size();
  spec_.input.units.resize(channels);
  spec_.input.shape[0] = static_cast<int64_t>(channels);
  if (!spec_.input_mean.empty()) spec_.input_mean.resize(channels, 0.0), spec_.input_std.resize(channels, 1.0);
  const ArrayTransform transform = input_transform(spec_);
  if (transform.is_identity()) return;
  const auto ops = channel_ops(transform, static_cast<int64_t>(channels), "input");
  computed_ops_.assign(ops.end() - static_cast<std::ptrdiff_t>(computed_->count()), ops.end());
}

std::optional<int64_t> FieldStates::index_of(int64_t seconds) const {
  const auto found = std::ranges::lower_bound(times_, seconds);
  if (found == times_.end() || *found != seconds) return {};
  return found - times_.begin();
}

void FieldStates::fill_computed(int64_t seconds, std::span<float> out) const {
  if (!computed_) return;
  computed_->fill(seconds, whole(spec_), out);
  const auto plane = static_cast<int64_t>(out.size()) / num_computed();
  for (size_t c = 0; c < computed_ops_.size(); ++c) {
    apply(computed_ops_[c], out.data() + static_cast<int64_t>(c) * plane, plane);
  }
}

void FieldStates::read_truth(int64_t index, int64_t channel, std::span<float> out) const {
  states_->read_target(states_->plan({.index = index}, whole(spec_)), channel, out);
}

void FieldStates::read(const SamplePlan& plan, SampleView out) const {
  if (out.input.empty()) return;
  WELKIN_CHECK(out.transformed, "states are read normalised");
  const size_t plane = out.input.size() / spec_.input.channels.size();
  const size_t states = out.input.size() - static_cast<size_t>(num_computed()) * plane;
  states_->read(plan, {.input = out.input.first(states), .target = {}, .transformed = true});
  fill_computed(valid_time(times_[static_cast<size_t>(plan.index)], 1), out.input.subspan(states));
}

}  // namespace welkin::data
