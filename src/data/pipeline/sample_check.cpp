// SPDX-License-Identifier: Apache-2.0
#include "data/pipeline/sample_check.h"

#include <cmath>

#include "core/error.h"
#include "core/philox.h"
#include "core/text.h"

namespace welkin::data {
namespace {

constexpr int64_t kMostSkips = 16;

// Without branches, so that it runs at the speed of memory: x - x is 0 for finite x and NaN otherwise.
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

int64_t count_nonfinite(std::span<const float> values) {
  int64_t count = 0;
  for (const float value : values) count += std::isfinite(value) ? 0 : 1;
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
    const int64_t count = count_nonfinite(values);
    if (count == 0) continue;
    std::string text = nan_text(side, c, count, where);
    if (policy == NanPolicy::Error) {
      throw DataError("data", text, "Fill them (welkin data ingest --missing mean), or set nan_policy to mask");
    }
    if (policy == NanPolicy::Mask) {
      mask_channel(values, side.transformed || side.mean.empty() ? 0.0f : static_cast<float>(side.mean[c]));
      text += ", masked with the channel's mean";
    }
    outcome.notes.push_back(std::move(text));
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
}

// A crop is a function of the draw alone: with the old one every substitute would be the same bad crop.
SampleKey after_skips(const Dataset& dataset, const SampleKey& key, int64_t skips) {
  if (skips == 0) return key;
  const PhiloxBlock draw = philox(key.draw, static_cast<uint64_t>(skips), 0);
  return {(key.index + skips) % dataset.size(), (uint64_t{draw[1]} << 32) | draw[0]};
}

}  // namespace

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
