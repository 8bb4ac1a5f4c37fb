// SPDX-License-Identifier: Apache-2.0
#include "data/statistics.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"
#include "data/field_file.h"
#include "data/npy_file.h"

namespace welkin::data {
namespace {

void check_same_shape(const FieldFacts& facts, const FieldFacts& first) {
  if (facts.channels == first.channels && facts.height == first.height && facts.width == first.width) return;
  throw DataError("data", cat("files of one folder differ in shape: path=", facts.path.string(), ", first=", first.path.string()),
                  "Put files of one kind into one folder");
}

void add_field(const FieldFacts& facts, int64_t step, std::span<const float> values, FolderStatistics& statistics) {
  const size_t plane = values.size() / statistics.moments.size();
  for (size_t c = 0; c < statistics.moments.size(); ++c) {
    RunningMoments moments;
    moments.add(values.subspan(c * plane, plane));
    if (moments.num_nonfinite() > 0) {
      throw DataError("data",
                      cat("values that are not finite: path=", facts.path.string(), ", step=", step,
                          ", channel=", statistics.channels[c], ", values=", moments.num_nonfinite()),
                      "Fill or mask them: welkin data ingest --missing mean");
    }
    statistics.moments[c].join(moments);
  }
  for (size_t i = 0; i < values.size(); ++i) statistics.time_mean[i] += static_cast<double>(values[i]);
  ++statistics.steps;
}

FolderStatistics empty_statistics(const FieldFacts& facts) {
  FolderStatistics statistics;
  statistics.channels = facts.channel_names;
  for (auto c = static_cast<int64_t>(statistics.channels.size()); c < facts.channels; ++c) {
    statistics.channels.push_back(std::to_string(c));
  }
  statistics.moments.resize(statistics.channels.size());
  statistics.height = facts.height;
  statistics.width = facts.width;
  statistics.time_mean.resize(static_cast<size_t>(facts.channels * facts.height * facts.width));
  return statistics;
}

std::vector<float> to_floats(const std::vector<double>& values) { return {values.begin(), values.end()}; }

}  // namespace

void RunningMoments::add(std::span<const float> values) {
  RunningMoments piece;
  double sum = 0;
  for (const float value : values) {
    if (!std::isfinite(value)) {
      ++piece.num_nonfinite_;
      continue;
    }
    piece.min_ = piece.count_ == 0 ? value : std::min(piece.min_, value);
    piece.max_ = piece.count_ == 0 ? value : std::max(piece.max_, value);
    ++piece.count_;
    sum += static_cast<double>(value);
  }
  if (piece.count_ > 0) piece.mean_ = sum / static_cast<double>(piece.count_);
  for (const float value : values) {
    const double deviation = static_cast<double>(value) - piece.mean_;
    if (std::isfinite(value)) piece.squares_ += deviation * deviation;
  }
  join(piece);
}

void RunningMoments::join(const RunningMoments& other) {
  num_nonfinite_ += other.num_nonfinite_;
  if (other.count_ == 0) return;
  min_ = count_ == 0 ? other.min_ : std::min(min_, other.min_);
  max_ = count_ == 0 ? other.max_ : std::max(max_, other.max_);
  const auto a = static_cast<double>(count_), b = static_cast<double>(other.count_);
  const double step = other.mean_ - mean_;
  mean_ += step * (b / (a + b));
  squares_ += other.squares_ + step * step * (a * b / (a + b));
  count_ += other.count_;
}

double RunningMoments::std() const { return count_ == 0 ? 0.0 : std::sqrt(squares_ / static_cast<double>(count_)); }

FolderStatistics compute_statistics(const std::filesystem::path& folder) {
  FolderStatistics statistics;
  FieldFacts first;
  for (const auto& path : list_field_files(folder)) {
    const FieldFile file(path);
    const FieldFacts& facts = file.facts();
    if (statistics.num_files == 0) {
      first = facts;
      statistics = empty_statistics(facts);
    }
    check_same_shape(facts, first);
    std::vector<float> values(statistics.time_mean.size());
    for (int64_t step = 0; step < facts.steps; ++step) {
      file.read(step, facts.channels, {0, 0, facts.height, facts.width}, values);
      add_field(facts, step, values, statistics);
    }
    ++statistics.num_files;
  }
  for (double& value : statistics.time_mean) value /= static_cast<double>(statistics.steps);
  return statistics;
}

void write_statistics(const FolderStatistics& statistics, const std::filesystem::path& folder, bool allow_constant) {
  const auto channels = static_cast<int64_t>(statistics.moments.size());
  std::vector<float> means, stds;
  for (size_t c = 0; c < statistics.moments.size(); ++c) {
    const auto std = static_cast<float>(statistics.moments[c].std());
    if (!(std > 0) && !allow_constant) {
      throw DataError(
          "data", cat("a channel that never changes: channel=", statistics.channels[c], ", value=", statistics.moments[c].mean()),
          "Leave it out, or keep it with --allow-constant (its standard deviation is then written as 1)");
    }
    means.push_back(static_cast<float>(statistics.moments[c].mean()));
    stds.push_back(std > 0 ? std : 1.0f);
  }
  make_folders(folder);
  write_npy(folder / "global_means.npy", {1, channels, 1, 1}, means);
  write_npy(folder / "global_stds.npy", {1, channels, 1, 1}, stds);
  write_npy(folder / "time_means.npy", {1, channels, statistics.height, statistics.width}, to_floats(statistics.time_mean));
}

}  // namespace welkin::data
