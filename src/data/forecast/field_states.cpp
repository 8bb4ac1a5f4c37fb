// SPDX-License-Identifier: Apache-2.0
#include "data/forecast/field_states.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/error.h"
#include "core/text.h"
#include "data/pipeline/sample_check.h"
#include "data/sample/likeness.h"

namespace welkin::data {
namespace {

constexpr double kFewestHoursOfMonth = 28 * 24;

// The channels of the run's training files, in whose order statistics and roles are; nothing where they are gone.
std::optional<FieldFacts> training_channels(const config::RunConfig& config) {
  if (config.data.train_data_path.empty() && config.data.datasets.empty()) return {};
  const Era5Options training = fields_options(config, Split::Train);
  std::error_code error;
  if (!std::filesystem::exists(training.folder, error)) return {};
  return open_first_field_file(training.source())->facts();
}

// The step of the run's training files; unknown where they are gone, and where they are not evenly spaced.
TimeStep training_step(const config::RunConfig& config) {
  const auto training = training_channels(config);
  if (!training || training->time.empty()) return {};
  try {
    return time_step_of(training->time, parse_calendar(training->calendar), training->path.string());
  } catch (const DataError&) {
    return {};
  }
}

Era5Options state_options(const config::RunConfig& config, Split split, const std::string& folder) {
  if (config.data.dataset != "era5" || config.data.data_loader_config == config::Loader::Synthetic) {
    throw ConfigError("forecast", cat("these data are no states in time: dataset=", config.data.dataset),
                      "A forecast begins with fields in time (dataset era5) that are read from files");
  }
  Era5Options options = fields_options(config, split);
  if (!folder.empty()) {
    options.folder = folder, options.times.clear();  // all that is there
    if (options.variables.empty()) options.like = training_channels(config);
  }
  options.lead = 0;  // a state is its own target, which is not read
  options.limit = std::nullopt;
  options.hold = false;
  options.rules = Rules::Corrected;
  return options;
}

// A crop of another grid would be taken for that of the run. Training files that are gone cannot be asked.
void check_like_training(const config::RunConfig& config, const SampleSpec& spec, const FieldFacts& states) {
  std::error_code error;
  if (!std::filesystem::exists(config.data.train_data_path, error)) return;
  const GridFacts trained = read_grid_facts(fields_options(config, Split::Train));
  const bool same_grid = are_same_places(trained.latitude, spec.latitude) && are_same_places(trained.longitude, spec.longitude);
  if (same_grid && trained.calendar == states.calendar) return;
  throw DataError("forecast",
                  cat("the states have another ", same_grid ? "calendar" : "grid", " than the run's training data: path=",
                      states.path.string(), ", calendar=", states.calendar, ", trained=", config.data.train_data_path),
                  "Give states of the grid and calendar that the model was trained on");
}

// Times and samples of files in the order of their times.
std::map<int64_t, int64_t> samples_by_time(const Era5Dataset& dataset) {
  std::map<int64_t, int64_t> samples;
  for (int64_t i = 0; i < dataset.size(); ++i) {
    const SamplePlan plan = dataset.plan({.index = i}, {});
    samples[dataset.file(plan.file).time[static_cast<size_t>(plan.time)]] = i;
  }
  return samples;
}

}  // namespace

FieldStates::FieldStates(const config::RunConfig& config, Split split, const std::string& folder,
                         const std::optional<TimeStep>& step, const std::string& forcings)
    : lead_(config.data.dt) {
  const Era5Options options = state_options(config, split, folder);
  states_ = std::make_unique<Era5Dataset>(options);
  for (int64_t i = 0; i < states_->num_files(); ++i) need_times(states_->file(i), "a forecast", "the forecast");
  calendar_ = parse_calendar(states_->file(0).calendar);
  find_times(options.folder.string());
  find_step(config, step);
  if (!step_.is_known()) {
    throw ConfigError("forecast", cat("one state does not say how long a step is: folder=", options.folder.string()),
                      "Give the step of the run's data, for instance --time_step 6h");
  }
  spec_ = states_->spec();
  spec_.lead_hours = static_cast<double>(lead_) * hours_of(step_);
  has_holes_ = nan_policy_for(spec_, config.data.nan_policy) == NanPolicy::Hole;
  check_like_training(config, spec_, states_->file(0));
  add_computed(config);
  find_known(config, forcings);
}

const std::string& FieldStates::channel_name(const Known& known) const {
  return spec_.input.channels[static_cast<size_t>(spec_.newest_input_channel + known.channel)];
}

void FieldStates::find_known(const config::RunConfig& config, const std::string& forcings) {
  const int64_t first = spec_.newest_input_channel, channels = state_channels();
  const ArrayTransform transform = input_transform(spec_);
  std::vector<ChannelOp> ops;
  if (!transform.is_identity()) ops = channel_ops(transform, static_cast<int64_t>(spec_.input.channels.size()), "input");
  for (const int64_t channel : spec_.known_input) {
    if (channel >= first + channels) continue;
    Known known{.channel = channel - first, .op = {}, .fixed = {}, .is_mask = states_->is_mask(channel - first)};
    if (!ops.empty()) known.op = ops[static_cast<size_t>(channel)];
    if (known.is_mask) kept_.push_back(known_.size());
    known_.push_back(std::move(known));
  }
  find_fixed();
  const size_t plane = static_cast<size_t>(spec_.input.shape[1] * spec_.input.shape[2]);
  const size_t begin = static_cast<size_t>(first + channels) * plane, count = states_->spec().input.channels.size() * plane;
  if (begin < count) {
    std::vector<float> input(count);
    states_->read(states_->plan({.index = 0}, whole(spec_)), {.input = input, .target = {}, .transformed = true});
    statics_.assign(input.begin() + static_cast<std::ptrdiff_t>(begin), input.end());
  }
  if (!forcings.empty()) open_forcings(config, forcings);
  if (std::ranges::any_of(known_, &Known::is_read)) forcing_times_ = samples_by_time(forcings_ ? *forcings_ : *states_);
}

// Channels are static by their role: the data set has checked that they are the same at all times.
void FieldStates::find_fixed() {
  for (Known& known : known_) {
    if (states_->role_of_input(known.channel) != ChannelRole::Static) continue;
    std::vector<float> field(static_cast<size_t>(spec_.input.shape[1] * spec_.input.shape[2]));
    read_known(*states_, states_->plan({.index = 0}, whole(spec_)), known.channel, known, field);
    known.fixed = std::move(field);
  }
}

void FieldStates::read_known(const Era5Dataset& files, const SamplePlan& plan, int64_t channel, const Known& known,
                             std::span<float> out) const {
  files.read_input(plan, channel, out);
  if (known.op) apply(*known.op, out.data(), static_cast<int64_t>(out.size()));
  const auto place = static_cast<size_t>(spec_.newest_input_channel + known.channel);
  if (has_holes_) fill_holes(out, 1, {spec_.input_fill.empty() ? 0.0 : spec_.input_fill[place]});
}

// Files with the forcing channels alone will do. They are normalised here: their statistics are those of the run.
void FieldStates::open_forcings(const config::RunConfig& config, const std::string& folder) {
  if (std::ranges::none_of(known_, &Known::is_read)) {
    throw ConfigError("forecast", cat("the model takes no forcing from files: forcings=", folder),
                      "Leave --forcings out, or train with roles: [NAME=forcing]");
  }
  Era5Options options = state_options(config, Split::Train, folder);
  options.history = 1;
  options.means.clear(), options.stds.clear();
  options.in_channels = options.out_channels = 0;
  options.in_names.clear(), options.roles.clear(), options.channel_names.clear();
  options.normalization.clear(), options.hole_fill.clear();
  options.input_clip.clear(), options.target_clip.clear(), options.input_log.clear(), options.target_log.clear();
  options.like.reset();
  std::vector<std::string> units;
  for (const Known& known : known_) {
    if (!known.is_read()) continue;
    options.in_names.push_back(channel_name(known));
    options.roles.push_back(options.in_names.back() + "=prognostic");
    units.push_back(spec_.input.units[static_cast<size_t>(spec_.newest_input_channel + known.channel)]);
  }
  options.out_names = options.in_names;
  forcings_ = std::make_unique<Era5Dataset>(options);
  for (int64_t i = 0; i < forcings_->num_files(); ++i) need_times(forcings_->file(i), "forcing", "--forcings");
  const SampleSpec& spec = forcings_->spec();
  std::string difference = difference_of_units(spec.input.channels, units, spec.input.units);
  if (difference.empty()) difference = difference_of_places("latitudes", spec_.latitude, spec.latitude);
  if (difference.empty()) difference = difference_of_places("longitudes", spec_.longitude, spec.longitude);
  const std::string& calendar = forcings_->file(0).calendar;
  if (difference.empty() && parse_calendar(calendar) != calendar_)
    difference = cat("calendars: ", states_->file(0).calendar, " and ", calendar);
  if (difference.empty()) return;
  throw DataError("forecast", cat("the forcing differs from the states: forcings=", folder, ", difference in ", difference),
                  "Give forcing in the units, on the grid and in the calendar of the states");
}

bool FieldStates::has_forcing(int64_t seconds) const {
  return std::ranges::none_of(known_, &Known::is_read) || forcing_times_.contains(seconds);
}

void FieldStates::need_forcing(int64_t seconds) const {
  if (has_forcing(seconds)) return;
  throw DataError("forecast",
                  cat("no file has the forcing of a time that the forecast goes through: time=", format_date(calendar_, seconds),
                      ", channel=", channel_name(*std::ranges::find_if(known_, &Known::is_read)),
                      forcing_times_.empty() ? "" : cat(", newest=", format_date(calendar_, forcing_times_.rbegin()->first))),
                  "Ask for fewer --steps, or give files that go on with --forcings FOLDER");
}

void FieldStates::read_forcing(int64_t seconds, std::span<float> out) const {
  need_forcing(seconds);
  const auto first = std::ranges::find_if(known_, &Known::is_read);
  const auto found = forcing_times_.find(seconds);
  const Era5Dataset& files = forcings_ ? *forcings_ : *states_;
  const SamplePlan plan = first == known_.end() ? SamplePlan() : files.plan({.index = found->second}, whole(spec_));
  const size_t plane = out.size() / known_.size();
  int64_t of_forcings = 0;  // channel of the files of forcing alone
  for (size_t c = 0; c < known_.size(); ++c) {
    const Known& known = known_[c];
    const auto field = out.subspan(c * plane, plane);
    if (known.is_mask) {
      std::ranges::fill(field, 0.0f);
    } else if (!known.fixed.empty()) {
      std::ranges::copy(known.fixed, field.begin());
    } else {
      read_known(files, plan, forcings_ ? of_forcings++ : known.channel, known, field);
    }
  }
}

void FieldStates::fill_known(int64_t seconds, std::span<float> out) const {
  if (out.empty()) return;
  const size_t plane = out.size() / spec_.known_input.size(), of_state = known_.size() * plane;
  if (of_state > 0) read_forcing(seconds, out.first(of_state));
  std::ranges::copy(statics_, out.begin() + static_cast<std::ptrdiff_t>(of_state));
  fill_computed(valid_time(seconds, 1), out.subspan(of_state + statics_.size()));
}

void FieldStates::need_truth(const std::string& purpose) const {
  for (size_t channel = 0; channel < spec_.target.channels.size(); ++channel) {
    if (has_truth(static_cast<int64_t>(channel))) continue;
    throw DataError("forecast",
                    cat(purpose, " needs every channel that the model predicts: channel=", spec_.target.channels[channel],
                        ", path=", states_->file(0).path.string()),
                    "Give files that have it");
  }
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
  for (int64_t i = 1; i < states_->num_files(); ++i) {
    if (states_->file(i).member == states_->file(0).member) continue;
    throw DataError("forecast",
                    cat("the files of a folder are of several members of an ensemble: folder=", folder,
                        ", member=", states_->file(0).member, ", other=", states_->file(i).member),
                    "Give a folder with the files of one member: --states FOLDER");
  }
  throw DataError("forecast",
                  cat("the files of a folder do not follow each other in time: folder=", folder,
                      ", time=", format_date(calendar_, *(twice + 1))),
                  "Name the files in the order of their times");
}

// One state has no step, and a few do not tell months from days, nor where in its month a time lies: the run's training files do.
void FieldStates::find_step(const config::RunConfig& config, const std::optional<TimeStep>& given) {
  if (step_.is_known() && hours_of(step_) < kFewestHoursOfMonth) return;
  const TimeStep trained = training_step(config);
  if (trained.months != 0) step_ = trained;
  if (!step_.is_known() && given) step_ = trained.is_known() ? trained : *given;
}

void FieldStates::add_computed(const config::RunConfig& config) {
  if (config.data.forcing.empty()) return;
  computed_ = std::make_unique<ForcingChannels>(config.data.forcing, spec_.latitude, spec_.longitude, calendar_);
  std::ranges::copy(computed_->names(), std::back_inserter(spec_.input.channels));
  const size_t channels = spec_.input.channels.size();
  spec_.input.units.resize(channels);
  spec_.input.shape[0] = static_cast<int64_t>(channels);
  if (!spec_.input_mean.empty()) spec_.input_mean.resize(channels, 0.0), spec_.input_std.resize(channels, 1.0);
  if (!spec_.input_spread.empty()) spec_.input_spread.resize(channels, 1.0);
  if (!spec_.input_fill.empty()) spec_.input_fill.resize(channels, 0.0);
  for (size_t c = channels - static_cast<size_t>(computed_->count()); c < channels; ++c) {
    spec_.known_input.push_back(static_cast<int64_t>(c));
  }
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
