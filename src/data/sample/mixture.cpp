// SPDX-License-Identifier: Apache-2.0
#include "data/sample/mixture.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "core/text.h"
#include "data/sample/likeness.h"

namespace welkin::data {
namespace {

// The difference that keeps one model from both samples; empty where there is none.
std::string unlike(const SampleSpec& one, const SampleSpec& other) {
  if (std::string difference = difference_of_samples(one, other); !difference.empty()) return difference;
  if (one.input_mean != other.input_mean || one.input_std != other.input_std || one.target_mean != other.target_mean ||
      one.target_std != other.target_std || one.input_fill != other.input_fill) {
    return "normalisation";
  }
  if (!one.calendar.empty() && !other.calendar.empty() && one.calendar != other.calendar) {
    return cat("calendars: ", one.calendar, " and ", other.calendar);
  }
  if (one.known_input != other.known_input || one.earlier_target != other.earlier_target) return "roles";
  if (one.has_holes != other.has_holes || one.has_missing != other.has_missing) return "points without a value";
  return {};
}

}  // namespace

std::vector<int64_t> mixture_shares(int64_t total, const std::vector<double>& weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<int64_t> shares;
  std::vector<double> rest;
  for (const double weight : weights) {
    const double wanted = static_cast<double>(total) * weight / sum;
    shares.push_back(static_cast<int64_t>(std::floor(wanted)));
    rest.push_back(wanted - std::floor(wanted));
  }
  int64_t missing = total - std::accumulate(shares.begin(), shares.end(), int64_t{0});
  for (; missing > 0; --missing) {
    const auto largest = static_cast<size_t>(std::ranges::max_element(rest) - rest.begin());
    ++shares[largest];
    rest[largest] = -1;
  }
  return shares;
}

Mixture::Mixture(std::vector<MixturePart> parts, Order order, int64_t limit)
    : parts_(std::move(parts)), order_(order), limit_(limit), first_{0} {
  WELKIN_CHECK(!parts_.empty(), "a mixture of nothing");
  check_alike();
  int64_t total = 0;
  std::vector<double> weights;
  for (const MixturePart& part : parts_) total += part.dataset->size(), weights.push_back(part.weight);
  if (order_ == Order::EverySample) {
    for (const MixturePart& part : parts_) first_.push_back(first_.back() + part.dataset->size());
    return;
  }
  for (const int64_t share : mixture_shares(limit > 0 ? std::min(limit, total) : total, weights)) {
    first_.push_back(first_.back() + share);
  }
}

void Mixture::check_alike() const {
  for (const MixturePart& part : parts_) {
    if (part.dataset->size() == 0) {
      throw DataError("data", cat("a data set of a mixture has no samples: dataset=", part.name), "Leave it out");
    }
    const std::string difference = unlike(spec(), part.dataset->spec());
    if (difference.empty()) continue;
    throw DataError(
        "data",
        cat("the data sets of a mixture differ: dataset=", parts_.front().name, ", dataset=", part.name, ", in=", difference),
        "Choose the same channels of each with in_channels, and bring them onto one grid and into one unit with welkin "
        "data ingest");
  }
}

size_t Mixture::part_of(int64_t index) const {
  return static_cast<size_t>(std::ranges::upper_bound(first_, index) - first_.begin()) - 1;
}

SamplePlan Mixture::plan(SampleKey key, const Region& wanted) const {
  const size_t number = part_of(key.index);
  const Dataset& dataset = *parts_[number].dataset;
  const int64_t share = first_[number + 1] - first_[number], place = key.index - first_[number];
  const int64_t in_turn = share / dataset.size() * dataset.size();  // each sample equally often
  const bool is_drawn = order_ == Order::Drawn && place >= in_turn;
  const int64_t index =
      is_drawn ? static_cast<int64_t>(key.draw % static_cast<uint64_t>(dataset.size())) : place % dataset.size();
  SamplePlan plan = dataset.plan({index, key.draw}, wanted);
  plan.part = static_cast<int32_t>(number);
  return plan;
}

void Mixture::read(const SamplePlan& plan, SampleView out) const {
  parts_[static_cast<size_t>(plan.part)].dataset->read(plan, out);
}

// Drawn samples have no order in time.
std::optional<int64_t> Mixture::following(int64_t index) const {
  if (order_ == Order::Drawn) return {};
  const size_t number = part_of(index);
  const auto next = parts_[number].dataset->following(index - first_[number]);
  return next ? std::optional(*next + first_[number]) : std::nullopt;
}

std::unique_ptr<Dataset> Mixture::of_steps(int64_t steps, int64_t longest) const {
  std::vector<MixturePart> parts;
  for (const MixturePart& part : parts_) {
    parts.push_back({.name = part.name, .weight = part.weight, .dataset = part.dataset->of_steps(steps, longest)});
  }
  return std::make_unique<Mixture>(std::move(parts), order_, limit_);
}

std::vector<std::string> Mixture::describe() const {
  std::vector<std::string> lines;
  for (size_t i = 0; i < parts_.size(); ++i) {
    std::ranges::copy(parts_[i].dataset->describe(), std::back_inserter(lines));
    lines.push_back(cat("Data set ", parts_[i].name, ": ", first_[i + 1] - first_[i], " of ", size(),
                        " samples of an epoch, has ", parts_[i].dataset->size()));
  }
  return lines;
}

std::vector<const Dataset*> Mixture::datasets() const {
  std::vector<const Dataset*> datasets;
  for (const MixturePart& part : parts_) datasets.push_back(part.dataset.get());
  return datasets;
}

std::vector<std::string> Mixture::warnings() const { return warnings_of(datasets()); }
std::vector<std::string> Mixture::notes() const { return notes_of(datasets()); }

bool Mixture::transforms() const {
  return std::ranges::all_of(parts_, [](const MixturePart& part) { return part.dataset->transforms(); });
}

std::string Mixture::location(const SamplePlan& plan) const {
  const MixturePart& part = parts_[static_cast<size_t>(plan.part)];
  return cat("dataset=", part.name, ", ", part.dataset->location(plan));
}

uint64_t Mixture::bytes_requested() const {
  uint64_t bytes = 0;
  for (const MixturePart& part : parts_) bytes += part.dataset->bytes_requested();
  return bytes;
}

// Files of two data sets may have one name.
std::vector<FileFingerprint> Mixture::fingerprints() const {
  std::vector<FileFingerprint> all;
  for (const MixturePart& part : parts_) {
    for (FileFingerprint print : part.dataset->fingerprints()) {
      print.name = cat(part.name, "/", print.name);
      all.push_back(std::move(print));
    }
  }
  return all;
}

}  // namespace welkin::data
