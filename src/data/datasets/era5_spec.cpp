// SPDX-License-Identifier: Apache-2.0
// The specification of an Era5Dataset: channels by their roles, coordinates, normalisation, the fill of points without a
// value.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "config/draft/channel_settings.h"
#include "core/error.h"
#include "core/text.h"
#include "data/datasets/crop_range.h"
#include "data/datasets/era5_dataset.h"

namespace welkin::data {
namespace {

std::vector<double> range_of(const std::vector<double>& values, int64_t begin, int64_t extent) {
  if (values.empty()) return {};
  return {values.begin() + begin, values.begin() + begin + extent};
}

template <typename T>
void append_at(std::vector<T>& to, const std::vector<T>& from, const std::vector<int64_t>& places) {
  for (const int64_t place : places) to.push_back(from[static_cast<size_t>(place)]);
}

// Channels of a sample whose logarithm is taken.
struct Logarithms {
  std::vector<int64_t> channels;
  std::vector<double> eps;

  void add(int64_t channel, double value) {
    if (std::ranges::count(channels, channel) > 0) {
      throw ConfigError("data", cat("the logarithm of a channel would be taken twice: channel=", channel),
                        "Leave it out of log_channels_in, log_channels_out or normalization");
    }
    channels.push_back(channel);
    eps.push_back(value);
  }
};

}  // namespace

void Era5Dataset::make_spec() {
  const FieldFacts& facts = files_.front()->facts();
  const FieldWindow& window = selection_.window;
  const std::vector<std::string> names = file_channel_names(facts, options_);
  std::vector<std::string> units = facts.units;
  units.resize(names.size());
  spec_.geometry = Geometry::Sphere;
  spec_.has_missing = std::ranges::any_of(files_, [](const auto& file) { return file->facts().missing != Missing::None; });
  spec_.has_holes = std::ranges::any_of(files_, [](const auto& file) { return file->facts().has_holes; });
  spec_.latitude = range_of(facts.latitude, window.row, window.height);
  spec_.longitude = longitudes_of(facts, window);
  if (!facts.time.empty()) spec_.calendar = facts.calendar;
  spec_.first_cell = {window.row, window.column};
  for (size_t i = 0; i < files_.size() && spec_.lead_hours == 0; ++i) {
    spec_.lead_hours = static_cast<double>(options_.lead) * hours_between_steps(files_[i]->facts());
  }
  if (window.column + window.width > facts.width) spec_.columns_around = facts.width;
  spec_.target_of_file = selection_.target;
  append_at(spec_.target.channels, names, selection_.target);
  append_at(spec_.target.units, units, selection_.target);
  spec_.target.shape = {options_.out_channels, options_.height, options_.width};
  add_input_spec(names, units);
  add_earlier_target();
  add_known_input();
  add_statistics(names);
  make_ops();
  add_fill();
}

void Era5Dataset::add_input_spec(const std::vector<std::string>& names, const std::vector<std::string>& units) {
  for (int64_t age = options_.history - 1; age >= 0; --age) {
    for (const int64_t channel : selection_.input) {
      spec_.input.channels.push_back(names[static_cast<size_t>(channel)] + (age == 0 ? "" : cat("[-", age, "]")));
    }
    append_at(spec_.input.units, units, selection_.input);
  }
  spec_.newest_input_channel = (options_.history - 1) * options_.in_channels;
  for (const auto& extra : extras_) std::ranges::copy(extra->names(), std::back_inserter(spec_.input.channels));
  if (statics_) std::ranges::copy(statics_->fields().units, std::back_inserter(spec_.input.units));
  spec_.input.units.resize(spec_.input.channels.size());
  spec_.input.shape = {static_cast<int64_t>(spec_.input.channels.size()), options_.height, options_.width};
}

void Era5Dataset::add_earlier_target() {
  for (const int64_t channel : selection_.target) {
    const auto found = std::ranges::find(selection_.input, channel);
    const bool is_input = found != selection_.input.end();
    spec_.earlier_target.push_back(is_input ? spec_.newest_input_channel + (found - selection_.input.begin()) : -1);
  }
}

void Era5Dataset::add_known_input() {
  const auto is_known = [&](int64_t channel) {
    if (selection_.roles.empty()) return false;
    const ChannelRole role = selection_.roles[static_cast<size_t>(channel)];
    return role == ChannelRole::Forcing || role == ChannelRole::Static;
  };
  for (size_t c = 0; c < selection_.input.size(); ++c) {
    if (is_known(selection_.input[c])) spec_.known_input.push_back(spec_.newest_input_channel + static_cast<int64_t>(c));
  }
  for (auto c = first_extra(); c < spec_.input.shape.front(); ++c) spec_.known_input.push_back(c);
}

void Era5Dataset::add_statistics(const std::vector<std::string>& names) {
  if (options_.means.empty() && options_.stds.empty()) return;
  const int64_t channels = files_.front()->facts().channels;
  statistics_ = load_channel_statistics(options_.means, options_.stds, channels, names);
  normalizations_ = normalizations(statistics_, options_.means, names, options_.normalization);
  add_normalization(selection_.target, spec_.target_mean, spec_.target_std);
  for (int64_t step = 0; step < options_.history; ++step) add_normalization(selection_.input, spec_.input_mean, spec_.input_std);
  if (statics_) {
    std::ranges::copy(statics_->fields().mean, std::back_inserter(spec_.input_mean));
    std::ranges::copy(statics_->fields().std, std::back_inserter(spec_.input_std));
  }
  spec_.input_mean.resize(spec_.input.channels.size(), 0.0);  // computed channels are of order one already
  spec_.input_std.resize(spec_.input.channels.size(), 1.0);
  add_spread();
}

// The spread is 1 where it does not follow from the statistics, as under a logarithm (log_channels_in, or normalization log).
void Era5Dataset::add_spread() {
  std::vector<double> spread(spec_.input.channels.size(), 1.0);
  for (int64_t c = 0; c < first_extra(); ++c) {
    const int64_t of_step = c % options_.in_channels;
    const auto of_file = static_cast<size_t>(selection_.input[static_cast<size_t>(of_step)]);
    if (std::ranges::count(options_.input_log, of_step) > 0) continue;
    spread[static_cast<size_t>(c)] = spread_of(normalizations_[of_file], statistics_.std[of_file]).value_or(1);
  }
  if (std::ranges::any_of(spread, [](double value) { return value != 1; })) spec_.input_spread = std::move(spread);
}

void Era5Dataset::add_normalization(const std::vector<int64_t>& channels, std::vector<double>& mean,
                                    std::vector<double>& std) const {
  for (const int64_t channel : channels) {
    const Normalization& normalization = normalizations_[static_cast<size_t>(channel)];
    mean.push_back(normalization.offset);
    std.push_back(normalization.scale);
  }
}

// Makes ops for the file's channels in every input step. Computed channels stay as they are.
void Era5Dataset::make_ops() {
  spec_.input_clip = options_.input_clip, spec_.target_clip = options_.target_clip;
  Logarithms input_logs{.channels = {}, .eps = {}}, target_logs{.channels = {}, .eps = {}};
  const auto eps_of = [&](int64_t channel) {
    return normalizations_.empty() ? 0.0 : normalizations_[static_cast<size_t>(channel)].eps;
  };
  for (const int64_t channel : options_.target_log) target_logs.add(channel, 1);
  for (size_t c = 0; c < selection_.target.size(); ++c) {
    if (eps_of(selection_.target[c]) != 0) target_logs.add(static_cast<int64_t>(c), eps_of(selection_.target[c]));
  }
  for (int64_t step = 0; step < options_.history; ++step) {
    const int64_t first = step * options_.in_channels;
    for (const int64_t channel : options_.input_log) input_logs.add(first + channel, 1);
    for (size_t c = 0; c < selection_.input.size(); ++c) {
      const double eps = eps_of(selection_.input[c]);
      if (eps != 0) input_logs.add(first + static_cast<int64_t>(c), eps);
    }
  }
  spec_.input_log = input_logs.channels, spec_.input_log_eps = input_logs.eps;
  spec_.target_log = target_logs.channels, spec_.target_log_eps = target_logs.eps;
  const ArrayTransform input = input_transform(spec_), target = target_transform(spec_);
  if (!input.is_identity()) input_ops_ = channel_ops(input, static_cast<int64_t>(spec_.input.channels.size()), "input");
  if (!target.is_identity()) target_ops_ = channel_ops(target, options_.out_channels, "target");
}

// The fill is the value of the key hole_fill, else the channel's mean: 0 where the channel is normalised by it.
void Era5Dataset::add_fill() {
  if (normalizations_.empty() && options_.hole_fill.empty()) return;
  const std::vector<std::string> names(spec_.input.channels.begin() + spec_.newest_input_channel,
                                       spec_.input.channels.begin() + first_extra());
  const auto wanted = config::number_settings_of(options_.hole_fill, "hole_fill", names);
  std::vector<double> fill(spec_.input.channels.size(), 0.0);
  for (int64_t c = 0; c < first_extra(); ++c) {
    const auto of_step = static_cast<size_t>(c % options_.in_channels);
    const auto of_file = static_cast<size_t>(selection_.input[of_step]);
    const bool is_centred = normalizations_.empty() || normalizations_[of_file].is_standard(statistics_, of_file);
    if (!wanted[of_step] && is_centred) continue;
    auto value = static_cast<float>(wanted[of_step] ? *wanted[of_step] : statistics_.mean[of_file]);
    if (!input_ops_.empty()) apply(input_ops_[static_cast<size_t>(c)], &value, 1);
    fill[static_cast<size_t>(c)] = value;
  }
  if (std::ranges::any_of(fill, [](double value) { return value != 0; })) spec_.input_fill = std::move(fill);
}

// Only inputs are checked. Targets may be absent: a run may not read them.
void Era5Dataset::check_inputs_are_here() const {
  for (const auto& file : files_) {
    for (const int64_t channel : selection_.input) {
      if (file->has_channel(channel)) continue;
      throw DataError("data",
                      cat("a channel that the model takes is not in these files: channel=",
                          file->facts().channel_names[static_cast<size_t>(channel)], ", path=", file->facts().path.string()),
                      "Give files with this channel under this name; those that are only predicted may be absent");
    }
  }
}

ChannelRole Era5Dataset::role_of_input(int64_t channel) const {
  if (selection_.roles.empty()) return ChannelRole::Prognostic;
  return selection_.roles[static_cast<size_t>(selection_.input[static_cast<size_t>(channel)])];
}

bool Era5Dataset::is_mask(int64_t channel) const {
  const auto& mask_of = file(0).mask_of;
  return !mask_of.empty() && !mask_of[static_cast<size_t>(selection_.input[static_cast<size_t>(channel)])].empty();
}

// A channel is static by its role alone, so the first and the last time are compared.
void Era5Dataset::check_statics_stay() const {
  const FieldWindow& window = selection_.window;
  const auto plane = static_cast<size_t>(window.height * window.width);
  std::vector<float> first(plane), last(plane);
  for (int64_t channel = 0; channel < options_.in_channels; ++channel) {
    if (role_of_input(channel) != ChannelRole::Static) continue;
    const ChannelRun run{selection_.input[static_cast<size_t>(channel)], 1};
    read_step(*files_.front(), 0, {run}, window, first, nullptr);
    read_step(*files_.back(), files_.back()->facts().steps - 1, {run}, window, last, nullptr);
    const auto is_same = [](float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); };
    if (std::ranges::equal(first, last, is_same)) continue;
    throw DataError("data",
                    cat("a static channel is not the same at the first and the last time: channel=",
                        file_channel_names(file(0), options_)[static_cast<size_t>(run.first)],
                        ", first=", files_.front()->facts().path.string(), ", last=", files_.back()->facts().path.string()),
                    "Give it the role forcing, which is read at each time: roles: [NAME=forcing]");
  }
}

}  // namespace welkin::data
