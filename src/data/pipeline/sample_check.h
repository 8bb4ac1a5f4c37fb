// SPDX-License-Identifier: Apache-2.0
// Handles samples that cannot be read and values that are not finite. Reads one sample; pure but for the data set: the same on
// every rank that reads the same region of it.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "config/schema/choices.h"
#include "data/sample/dataset.h"
#include "data/sample/sampler.h"

namespace welkin::data {

using config::BadSample;
using config::NanPolicy;  // Off: see nan_policy_for

struct SampleRules {
  BadSample bad_sample = BadSample::Error;
  NanPolicy nan = NanPolicy::Off;
};

// The policy for the samples. Where files declare missing values, Off becomes Error, since a run must not learn from them
// unseen. Where files say that such points have no weight, it is Hole.
NanPolicy nan_policy_for(const SampleSpec& spec, NanPolicy wanted);
// True if a policy accepts points without a value and fills them.
inline bool fills_points(NanPolicy policy) { return policy == NanPolicy::Hole || policy == NanPolicy::Mask; }

// The values that Mask replaced: the first place in words, and the numbers in all.
struct MaskedValues {
  std::string first;
  int64_t values = 0, samples = 0;
  std::set<std::string> channels;  // "input t2m"

  void add(const MaskedValues& more);
};

struct SampleOutcome {
  int64_t index = 0;        // the sample that was read: another one where the one asked for was skipped
  int64_t skips = 0;        // number of samples that were skipped
  int32_t orientation = 0;  // still to be applied to the sample: 0 where the view is turned
  std::vector<std::string> notes;
  MaskedValues masked;
};

// Reads the sample of `key` into `out`. Under Skip one that throws DataError is replaced by the next index with a draw of its
// own (a function of the key and of the number of skips, so that a drawn crop moves too), at most 16 times in a row. `passed`
// ones are not even tried: another rank could not read them. Under Mask a value that is not finite becomes its channel's mean
// (0 where the fields have none), so that it is 0 once normalised. Under Hole NaN stays, for fill_holes() and for the loss;
// infinity is an error. If it throws, the notes of `outcome` name the samples skipped before.
void read_checked(const Dataset& dataset, const SampleKey& key, const Region& region, const SampleRules& rules, SampleView out,
                  SampleOutcome& outcome, int64_t passed = 0);

// Fills points without a value in the transformed input of a sample, (channels, points), with `fill` of the channel, 0 where it
// is empty. For Hole; the target keeps its NaN, by which loss and scores know these points.
void fill_holes(std::span<float> input, int64_t channels, const std::vector<double>& fill);

// Reads the sample again, and finds its first NaN or infinity: file, time, channel, place, value. It looks at the stored values
// and, where these are finite, at those after clip, logarithm and normalisation. Empty: there is none. For messages.
std::string first_nonfinite(const Dataset& dataset, const SampleKey& key, const Region& region, const SampleRules& rules);

}  // namespace welkin::data
