// SPDX-License-Identifier: Apache-2.0
#include "data/tools/statistics.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/file.h"
#include "core/host.h"
#include "core/text.h"
#include "core/thread_pool.h"
#include "data/datasets/field_file.h"
#include "data/formats/npy_file.h"
#include "data/sample/calendar.h"

namespace welkin::data {
namespace {

void check_same_shape(const FieldFacts& facts, const FieldFacts& first) {
  if (facts.channels == first.channels && facts.height == first.height && facts.width == first.width) return;
  throw DataError("data", cat("files of one folder differ in shape: path=", facts.path.string(), ", first=", first.path.string()),
                  "Put files of one kind into one folder");
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

// One file, and the calendar month (0 to 11) of each step where they are wanted.
struct OpenYear {
  std::unique_ptr<const FieldFile> file;
  std::vector<int> months;
};

std::vector<OpenYear> open_years(const std::filesystem::path& folder, bool with_months) {
  std::vector<OpenYear> years;
  const auto cache = std::make_shared<ChunkCache>(kChunkCacheBytes);
  for (const auto& path : list_field_files(folder)) {
    OpenYear year{std::make_unique<FieldFile>(path, cache), {}};
    const FieldFacts& facts = year.file->facts();
    if (with_months && facts.time.empty()) {
      throw DataError("data", cat("a climatology needs the time of every step: path=", path.string(), ", dataset=time"),
                      "Make the file with welkin data ingest or simulate, or drop --climatology");
    }
    for (size_t t = 0; with_months && t < facts.time.size(); ++t) {
      year.months.push_back(to_date(parse_calendar(facts.calendar), facts.time[t]).month - 1);
    }
    years.push_back(std::move(year));
  }
  return years;
}

// All times of one channel, in order: the result does not depend on how channels are divided among threads.
void add_channel(const std::vector<OpenYear>& years, int64_t channel, FolderStatistics& statistics) {
  const auto c = static_cast<size_t>(channel);
  const auto plane = static_cast<size_t>(statistics.height * statistics.width);
  const size_t maps = statistics.time_mean.size();
  std::vector<float> values(plane);
  for (const OpenYear& year : years) {
    for (int64_t step = 0; step < year.file->facts().steps; ++step) {
      year.file->read_channel(step, channel, {0, 0, statistics.height, statistics.width}, values);
      RunningMoments moments;
      moments.add(values);
      if (moments.num_nonfinite() > 0) {
        throw DataError("data",
                        cat("values that are not finite: path=", year.file->facts().path.string(), ", step=", step,
                            ", channel=", statistics.channels[c], ", values=", moments.num_nonfinite()),
                        "Fill or mask them: welkin data ingest --missing mean");
      }
      statistics.moments[c].join(moments);
      double* sum = statistics.time_mean.data() + c * plane;
      for (size_t i = 0; i < plane; ++i) sum[i] += static_cast<double>(values[i]);
      if (year.months.empty()) continue;
      double* month =
          statistics.climatology.data() + static_cast<size_t>(year.months[static_cast<size_t>(step)]) * maps + c * plane;
      for (size_t i = 0; i < plane; ++i) month[i] += static_cast<double>(values[i]);
    }
  }
}

void finish_means(FolderStatistics& statistics) {
  const size_t maps = statistics.time_mean.size();
  for (double& value : statistics.time_mean) value /= static_cast<double>(statistics.steps);
  for (size_t i = 0; i < statistics.climatology.size(); ++i) {
    const int64_t steps = statistics.month_steps[i / maps];
    statistics.climatology[i] =
        steps == 0 ? statistics.time_mean[i % maps] : statistics.climatology[i] / static_cast<double>(steps);
  }
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

FolderStatistics compute_statistics(const std::filesystem::path& folder, const StatisticsOptions& options) {
  const std::vector<OpenYear> years = open_years(folder, options.climatology);
  const FieldFacts& facts = years.front().file->facts();
  FolderStatistics statistics = empty_statistics(facts);
  for (const OpenYear& year : years) {
    check_same_shape(year.file->facts(), facts);
    statistics.steps += year.file->facts().steps;
    ++statistics.num_files;
    for (const int month : year.months) ++statistics.month_steps[static_cast<size_t>(month)];
  }
  if (options.climatology) statistics.climatology.resize(12 * statistics.time_mean.size());
  ThreadPool pool({.num_threads = options.num_threads > 0 ? options.num_threads : usable_cores(), .name = "stats"});
  pool.parallel_for(facts.channels, [&](int64_t channel) { add_channel(years, channel, statistics); });
  finish_means(statistics);
  return statistics;
}

void write_statistics(const FolderStatistics& statistics, const std::filesystem::path& folder, bool allow_constant) {
  const auto channels = static_cast<int64_t>(statistics.moments.size());
  std::vector<float> means, stds, mins, maxs;
  for (size_t c = 0; c < statistics.moments.size(); ++c) {
    const auto std = static_cast<float>(statistics.moments[c].std());
    if (!(std > 0) && !allow_constant) {
      throw DataError(
          "data", cat("a channel that never changes: channel=", statistics.channels[c], ", value=", statistics.moments[c].mean()),
          "Leave it out, or keep it with --allow-constant (its standard deviation is then written as 1)");
    }
    means.push_back(static_cast<float>(statistics.moments[c].mean()));
    stds.push_back(std > 0 ? std : 1.0f);
    mins.push_back(statistics.moments[c].min());
    maxs.push_back(statistics.moments[c].max());
  }
  make_folders(folder);
  write_npy(folder / "global_means.npy", {1, channels, 1, 1}, means);
  write_npy(folder / "global_stds.npy", {1, channels, 1, 1}, stds);
  write_npy(folder / "global_mins.npy", {1, channels, 1, 1}, mins);
  write_npy(folder / "global_maxs.npy", {1, channels, 1, 1}, maxs);
  if (!statistics.climatology.empty()) {
    write_npy(folder / "climatology.npy", {12, channels, statistics.height, statistics.width}, to_floats(statistics.climatology));
  }
  write_npy(folder / "time_means.npy", {1, channels, statistics.height, statistics.width}, to_floats(statistics.time_mean));
}

}  // namespace welkin::data
