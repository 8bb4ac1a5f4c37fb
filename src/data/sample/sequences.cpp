// SPDX-License-Identifier: Apache-2.0
#include "data/sample/sequences.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "core/text.h"

namespace welkin::data {
namespace {

// Scratch memory of this thread for the input of a later step. It keeps its size from sample to sample.
std::span<float> input_scratch(size_t count) {
  thread_local std::vector<float> scratch;
  if (scratch.size() < count) scratch.resize(count);
  return std::span(scratch).first(count);
}

template <typename T>
void append_picked(std::vector<T>& to, const std::vector<T>& from, const std::vector<int64_t>& places) {
  for (const int64_t place : places) to.push_back(from[static_cast<size_t>(place)]);
}

// Values by channel, or nothing at all.
void append_values(std::vector<double>& to, const std::vector<double>& from, const std::vector<int64_t>& channels) {
  if (!from.empty()) append_picked(to, from, channels);
}

// A list of channels with an eps each (1 where the list is empty): those of `channels` again, at their new places.
void append_logs(std::vector<int64_t>& to, std::vector<double>& to_eps, const SampleSpec& one, bool of_input,
                 const std::vector<int64_t>& channels, int64_t first) {
  const auto& logs = of_input ? one.input_log : one.target_log;
  const auto& eps = of_input ? one.input_log_eps : one.target_log_eps;
  for (size_t c = 0; c < channels.size(); ++c) {
    const auto found = std::ranges::find(logs, channels[c]);
    if (found == logs.end()) continue;
    to.push_back(first + static_cast<int64_t>(c));
    if (!eps.empty()) to_eps.push_back(eps[static_cast<size_t>(found - logs.begin())]);
  }
}

void append_names(ArraySpec& to, const ArraySpec& from, const std::vector<int64_t>& channels, int64_t lead) {
  for (const int64_t channel : channels) {
    const auto c = static_cast<size_t>(channel);
    to.channels.push_back(cat(from.channels[c], "[+", lead, "]"));
    if (!from.units.empty()) to.units.push_back(from.units[c]);
  }
  if (!from.scaling.empty()) append_picked(to.scaling, from.scaling, channels);
  to.shape.front() += static_cast<int64_t>(channels.size());
}

// The channels of one more step.
void append_step(SampleSpec& spec, const SampleSpec& one, const std::vector<int64_t>& known, int64_t lead) {
  std::vector<int64_t> all(static_cast<size_t>(one.target.shape.front()));
  std::iota(all.begin(), all.end(), int64_t{0});
  append_logs(spec.input_log, spec.input_log_eps, one, /*of_input=*/true, known, spec.input.shape.front());
  append_logs(spec.target_log, spec.target_log_eps, one, /*of_input=*/false, all, spec.target.shape.front());
  append_names(spec.input, one.input, known, lead);
  append_names(spec.target, one.target, all, lead);
  append_values(spec.input_mean, one.input_mean, known);
  append_values(spec.input_std, one.input_std, known);
  append_values(spec.input_spread, one.input_spread, known);
  append_values(spec.input_fill, one.input_fill, known);
  append_values(spec.target_mean, one.target_mean, all);
  append_values(spec.target_std, one.target_std, all);
  append_picked(spec.target_of_file, one.target_of_file, one.target_of_file.empty() ? std::vector<int64_t>() : all);
}

}  // namespace

std::vector<int64_t> earlier_channels(const SampleSpec& spec) {
  if (!spec.earlier_target.empty()) return spec.earlier_target;
  std::vector<int64_t> channels(static_cast<size_t>(spec.target.shape.at(0)));
  std::iota(channels.begin(), channels.end(), spec.newest_input_channel);
  return channels;
}

std::vector<int64_t> known_channels(const SampleSpec& spec) {
  if (!spec.known_input.empty() || !spec.earlier_target.empty()) return spec.known_input;
  std::vector<int64_t> channels;
  for (int64_t c = spec.newest_input_channel + spec.target.shape[0]; c < spec.input.shape[0]; ++c) channels.push_back(c);
  return channels;
}

bool is_state_of_target(const SampleSpec& spec) {
  const auto& input = spec.input.shape;
  const auto& target = spec.target.shape;
  const auto undefined = std::ranges::count(spec.earlier_target, -1);
  if (undefined > 0 && undefined == static_cast<std::ptrdiff_t>(spec.earlier_target.size())) return false;
  return spec.geometry != Geometry::PeriodicBox && input.size() == 3 &&
         (!spec.earlier_target.empty() || spec.newest_input_channel + target[0] <= input[0]);
}

SampleSpec sequence_spec(const SampleSpec& one, int64_t steps) {
  SampleSpec spec = one;
  const std::vector<int64_t> known = known_channels(one);
  for (int64_t lead = 2; lead <= steps; ++lead) append_step(spec, one, known, lead);
  return spec;
}

int64_t steps_after(const Dataset& dataset, int64_t index, int64_t most) {
  int64_t steps = 1;  // its own target
  for (auto next = dataset.following(index); next && steps < most; next = dataset.following(*next)) ++steps;
  return steps;
}

std::vector<int64_t> sequence_starts(const Dataset& one, int64_t steps) {
  std::vector<int64_t> starts;
  int64_t longest = 0;
  for (int64_t index = 0; index < one.size(); ++index) {
    const int64_t after = steps_after(one, index, steps);
    longest = std::max(longest, after);
    if (after >= steps) starts.push_back(index);
  }
  if (!starts.empty()) return starts;
  throw ConfigError("data", cat("no sample has so many steps of truth after it: multistep=", steps, ", longest=", longest),
                    "Ask for fewer steps, or give longer files");
}

Sequences::Sequences(const Dataset& one, int64_t steps, std::shared_ptr<const std::vector<int64_t>> starts)
    : one_(one),
      steps_(steps),
      starts_(std::move(starts)),
      known_(known_channels(one.spec())),
      spec_(sequence_spec(one.spec(), steps)) {}

SamplePlan Sequences::plan(SampleKey key, const Region& wanted) const {
  return one_.plan({(*starts_)[static_cast<size_t>(key.index)], key.draw}, wanted);
}

// Fields have neither a crop nor an orientation that is drawn.
SamplePlan Sequences::after(const SamplePlan& plan) const {
  const std::optional<int64_t> next = one_.following(plan.index);
  WELKIN_CHECK(next.has_value(), "a sequence of samples that do not follow each other");
  return one_.plan({*next, 0}, plan.region);
}

void Sequences::read(const SamplePlan& plan, SampleView out) const {
  const SampleSpec& one = one_.spec();
  const auto inputs = static_cast<size_t>(one.input.shape.front()), targets = static_cast<size_t>(one.target.shape.front());
  const size_t plane = std::max(out.input.size() / static_cast<size_t>(spec_.input.shape.front()),
                                out.target.size() / static_cast<size_t>(spec_.target.shape.front()));
  const bool wants_input = !out.input.empty(), wants_target = !out.target.empty();
  std::span<float> known = wants_input ? out.input.subspan(inputs * plane) : std::span<float>();
  SampleView step = out;
  if (wants_input) step.input = out.input.first(inputs * plane);
  SamplePlan at = plan;
  for (int64_t lead = 1; lead <= steps_; ++lead) {
    if (lead > 1) at = after(at);
    if (lead > 1) step.input = wants_input && !known_.empty() ? input_scratch(inputs * plane) : std::span<float>();
    if (wants_target) step.target = out.target.subspan(static_cast<size_t>(lead - 1) * targets * plane, targets * plane);
    one_.read(at, step);
    if (lead == 1 || step.input.empty()) continue;
    for (const int64_t channel : known_) {
      std::ranges::copy(step.input.subspan(static_cast<size_t>(channel) * plane, plane), known.begin());
      known = known.subspan(plane);
    }
  }
}

// Known channels of the files would be cut out of the middle of others.
const ResidentArrays* Sequences::resident() const {
  return one_.resident() != nullptr && (known_.empty() || steps_ == 1) ? &held_ : nullptr;
}

ResidentSample Sequences::Held::crops(const SamplePlan& plan) const {
  ResidentSample sample = held().crops(plan);
  const auto width = all_.one_.spec().target.shape.front();
  SamplePlan at = plan;
  for (int64_t lead = 2; lead <= all_.steps_; ++lead) {
    at = all_.after(at);
    for (ResidentCrop crop : held().crops(at).target) {
      crop.first_channel += (lead - 1) * width;
      sample.target.push_back(crop);
    }
  }
  return sample;
}

}  // namespace welkin::data
