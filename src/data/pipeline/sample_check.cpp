// SPDX-License-Identifier: Apache-2.0
#include "data/pipeline/sample_check.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"
#include "core/philox.h"
#include "core/text.h"

namespace welkin::data {
namespace {

constexpr int64_t kMostSkips = 16;

// Has no branches, so that it runs at the speed of memory: x - x is 0 for finite x and NaN otherwise.
bool all_finite(std::span<const float> values) {
  float sum = 0;
  for (const float value : values) sum += value - value;
  return sum == 0;
}

void mask_channel(std::span<float> values, float mean) {
  for (float& value : values) {
    if (!std::isfinite(value)) value = mean;
  }
}

// Counts values that are not finite. Under Hole NaN is no fault.
int64_t count_faults(std::span<const float> values, NanPolicy policy) {
  int64_t count = 0;
  for (const float value : values) count += std::isfinite(value) || (policy == NanPolicy::Hole && std::isnan(value)) ? 0 : 1;
  return count;
}

struct CheckedSide {
  const char* name;
  std::span<float> values;
  const ArraySpec& spec;
  const std::vector<double>& mean;
  bool transformed;
};

std::string nan_text(const CheckedSide& side, size_t channel, int64_t count, const std::string& where) {
  return cat("values that are not finite: ", where, ", ", side.name, "_channel=", channel, " (", side.spec.channels[channel],
             "), values=", count);
}

void check_side(const CheckedSide& side, NanPolicy policy, const std::string& where, SampleOutcome& outcome) {
  if (side.values.empty() || all_finite(side.values)) return;
  const size_t channels = static_cast<size_t>(side.spec.shape.front());
  const size_t plane = side.values.size() / channels;
  for (size_t c = 0; c < channels; ++c) {
    const std::span<float> values = side.values.subspan(c * plane, plane);
    const int64_t count = count_faults(values, policy);
    if (count == 0) continue;
    std::string text = nan_text(side, c, count, where);
    if (policy == NanPolicy::Hole) throw DataError("data", text, "Infinity is no missing value: repair the files");
    if (policy == NanPolicy::Error) {
      throw DataError("data", text,
                      "Fill them (welkin data ingest --missing mean), or set nan_policy to mask (the mean) or hole (no weight)");
    }
    if (policy == NanPolicy::Report) {
      outcome.notes.push_back(std::move(text));
      continue;
    }
    mask_channel(values, side.transformed || side.mean.empty() ? 0.0f : static_cast<float>(side.mean[c]));
    outcome.masked.add({std::move(text), count, 0, {cat(side.name, " ", side.spec.channels[c])}});
  }
}

void read_once(const Dataset& dataset, const SampleKey& key, const Region& region, NanPolicy policy, SampleView out,
               SampleOutcome& outcome) {
  const SamplePlan plan = dataset.plan(key, region);
  dataset.read(plan, out);
  outcome.index = key.index;
  outcome.orientation = out.turned ? 0 : plan.orientation;
  if (policy == NanPolicy::Off) return;
  const SampleSpec& spec = dataset.spec();
  if (all_finite(out.input) && all_finite(out.target)) return;
  const std::string where = dataset.location(plan);
  check_side({"input", out.input, spec.input, spec.input_mean, out.transformed}, policy, where, outcome);
  check_side({"target", out.target, spec.target, spec.target_mean, out.transformed}, policy, where, outcome);
  if (outcome.masked.values > 0) outcome.masked.samples = 1;
}

// A crop is a function of the draw alone: with the old one every substitute would be the same bad crop.
SampleKey after_skips(const Dataset& dataset, const SampleKey& key, int64_t skips) {
  if (skips == 0) return key;
  const PhiloxBlock draw = philox(key.draw, static_cast<uint64_t>(skips), 0);
  return {(key.index + skips) % dataset.size(), (uint64_t{draw[1]} << 32) | draw[0]};
}

// "row=12, column=40, latitude=..., longitude=..." of the file's grid, or the cell of a box's crop.
std::string place_text(const SampleSpec& spec, const Region& region, size_t place) {
  const bool is_field = spec.input.shape.size() == 3;
  std::array<int64_t, 3> at{};
  auto rest = static_cast<int64_t>(place);
  for (size_t d = is_field ? 2 : 3; d-- > 0;) {
    at[d] = region.begin[d] + rest % region.extent[d];
    rest /= region.extent[d];
  }
  if (!is_field) return cat("cell_of_crop=(", join(at, ", "), ")");
  const int64_t column = spec.first_cell[1] + at[1];
  std::string text =
      cat("row=", spec.first_cell[0] + at[0], ", column=", spec.columns_around > 0 ? column % spec.columns_around : column);
  if (!spec.latitude.empty()) text += cat(", latitude=", spec.latitude[static_cast<size_t>(at[0])]);
  if (!spec.longitude.empty()) text += cat(", longitude=", spec.longitude[static_cast<size_t>(at[1])]);
  return text;
}

std::string value_text(float value) { return std::isnan(value) ? "nan" : cat(value); }  // whatever its sign

struct SearchedSide {
  const char* name;
  std::vector<float>& values;
  const ArraySpec& array;
  ArrayTransform transform;
  NanPolicy policy;
};

// The first value that is not finite, before the transform or after it.
std::string search_side(const SearchedSide& side, const SampleSpec& spec, const Region& region) {
  const auto channels = static_cast<size_t>(side.array.shape.front());
  const size_t plane = side.values.size() / channels;
  const std::vector<ChannelOp> ops = channel_ops(side.transform, static_cast<int64_t>(channels), side.name);
  const auto is_bad = [&](float value) {
    return !std::isfinite(value) && !(side.policy == NanPolicy::Hole && std::isnan(value));
  };
  for (size_t c = 0; c < channels; ++c) {
    const std::span<float> values = std::span(side.values).subspan(c * plane, plane);
    const std::vector<float> stored(values.begin(), values.end());
    const auto place_in = [&](const auto& found) {
      return static_cast<size_t>(std::ranges::find_if(found, is_bad) - found.begin());
    };
    const size_t raw = place_in(stored);
    apply(ops[c], values.data(), static_cast<int64_t>(plane));
    for (size_t i = 0; side.policy == NanPolicy::Hole && i < plane; ++i) values[i] = std::isnan(stored[i]) ? 0 : values[i];
    const size_t place = raw < plane ? raw : place_in(values);
    if (place == plane) continue;
    return cat(side.name, "_channel=", c, " (", side.array.channels[c], "), ", place_text(spec, region, place),
               ", value=", value_text(stored[place]),
               raw < plane ? "" : cat(", after clip, log and normalisation=", value_text(values[place])));
  }
  return {};
}

}  // namespace

NanPolicy nan_policy_for(const SampleSpec& spec, NanPolicy wanted) {
  if (wanted != NanPolicy::Off) return wanted;
  if (spec.has_holes) return NanPolicy::Hole;
  return spec.has_missing ? NanPolicy::Error : wanted;
}

void fill_holes(std::span<float> input, int64_t channels, const std::vector<double>& fill) {
  const size_t plane = input.size() / static_cast<size_t>(channels);
  for (size_t i = 0; i < input.size(); ++i) {
    if (std::isnan(input[i])) input[i] = fill.empty() ? 0.0f : static_cast<float>(fill[i / plane]);
  }
}

void MaskedValues::add(const MaskedValues& more) {
  if (first.empty()) first = more.first;
  values += more.values;
  samples += more.samples;
  channels.insert(more.channels.begin(), more.channels.end());
}

std::string first_nonfinite(const Dataset& dataset, const SampleKey& key, const Region& region, const SampleRules& rules) {
  const SampleSpec& spec = dataset.spec();
  const auto cells = static_cast<size_t>(region.extent[0] * region.extent[1] * region.extent[2]);
  std::vector<float> input(static_cast<size_t>(spec.input.shape.front()) * cells);
  std::vector<float> target(static_cast<size_t>(spec.target.shape.front()) * cells);
  SampleOutcome outcome;
  read_checked(dataset, key, region, rules, {.input = input, .target = target}, outcome);
  std::string found = search_side({"input", input, spec.input, input_transform(spec), rules.nan}, spec, region);
  if (found.empty()) found = search_side({"target", target, spec.target, target_transform(spec), rules.nan}, spec, region);
  if (found.empty()) return {};
  return cat(dataset.location(dataset.plan(after_skips(dataset, key, outcome.skips), region)), ", ", found);
}

void read_checked(const Dataset& dataset, const SampleKey& key, const Region& region, const SampleRules& rules, SampleView out,
                  SampleOutcome& outcome, int64_t passed) {
  for (int64_t skips = passed;; ++skips) {
    const SampleKey wanted = after_skips(dataset, key, skips);
    try {
      outcome.skips = skips;
      return read_once(dataset, wanted, region, rules.nan, out, outcome);
    } catch (const DataError& error) {
      if (rules.bad_sample == BadSample::Error) throw;
      if (skips >= kMostSkips) {
        throw DataError("data", cat(kMostSkips, " bad samples in a row, and the next one is bad too: index=", wanted.index),
                        cat("Repair the data: few samples are usable. Last error: ", error.what()));
      }
      outcome.notes.push_back(cat("a sample was skipped: index=", wanted.index, ", reason=", error.what()));
    }
  }
}

}  // namespace welkin::data
