// SPDX-License-Identifier: Apache-2.0
#include "data/tools/statistics.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/file.h"
#include "core/process/host.h"
#include "core/process/thread_pool.h"
#include "core/text.h"
#include "data/datasets/doubled_times.h"
#include "data/datasets/field_source.h"
#include "data/formats/npy_file.h"
#include "data/sample/calendar.h"

namespace welkin::data {
namespace {

void require_one_kind(const FieldFacts& facts, const FieldFacts& first) {
  const std::string difference = difference_between(first, facts, /*with_steps=*/false);
  if (difference.empty()) return;
  throw DataError("data",
                  cat("files of one folder differ: path=", facts.path.string(), ", first=", first.path.string(),
                      ", difference in ", difference),
                  "Put files of one kind into one folder; welkin data ingest makes them alike");
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

std::vector<OpenYear> open_years(const std::filesystem::path& folder, const StatisticsOptions& options) {
  std::vector<OpenYear> years;
  FieldFiles opened = open_field_files({.folder = folder,
                                        .variables = options.variables,
                                        .levels = options.levels,
                                        .times = options.times,
                                        .times_key = "--times",
                                        .time_keys = options.time});
  for (auto& file : opened.files) {
    OpenYear year{std::move(file), {}};
    const FieldFacts& facts = year.file->facts();
    if (options.climatology) need_times(facts, "a climatology", "--climatology");
    for (size_t t = 0; options.climatology && t < facts.time.size(); ++t) {
      year.months.push_back(to_date(parse_calendar(facts.calendar), facts.time[t]).month - 1);
    }
    years.push_back(std::move(year));
  }
  return years;
}

// Number of values of each point of the maps; used where files declare missing values.
struct MapCounts {
  int32_t* time = nullptr;
  int32_t* climatology = nullptr;
};

// Missing values are left out where the file declares them.
void check_finite(const std::vector<float>& values, const RunningMoments& moments, const FieldFacts& facts,
                  const std::string& where) {
  if (moments.num_nonfinite() == 0) return;
  if (facts.missing != Missing::None && std::ranges::none_of(values, [](float value) { return std::isinf(value); })) return;
  throw DataError(
      "data", cat("values that are not finite: path=", facts.path.string(), ", ", where, ", values=", moments.num_nonfinite()),
      "Fill or mask them: welkin data ingest --missing mean; or declare them: values equal to the attribute _FillValue are left "
      "out");
}

void add_map(const std::vector<float>& values, double* sum, int32_t* count) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) continue;
    sum[i] += static_cast<double>(values[i]);
    ++count[i];
  }
}

// Adds all times of one channel, in order: the result does not depend on how channels are divided among threads.
void add_channel(const std::vector<OpenYear>& years, int64_t channel, FolderStatistics& statistics, const MapCounts& counts) {
  const auto c = static_cast<size_t>(channel);
  const auto plane = static_cast<size_t>(statistics.height * statistics.width);
  const size_t maps = statistics.time_mean.size();
  std::vector<float> values(plane);
  for (const OpenYear& year : years) {
    for (int64_t step = 0; step < year.file->facts().steps; ++step) {
      year.file->read_channel(step, channel, {0, 0, statistics.height, statistics.width}, values);
      RunningMoments moments;
      moments.add(values);
      check_finite(values, moments, year.file->facts(), cat("step=", step, ", channel=", statistics.channels[c]));
      statistics.moments[c].join(moments);
      add_map(values, statistics.time_mean.data() + c * plane, counts.time + c * plane);
      if (year.months.empty()) continue;
      const size_t month = static_cast<size_t>(year.months[static_cast<size_t>(step)]) * maps + c * plane;
      add_map(values, statistics.climatology.data() + month, counts.climatology + month);
    }
  }
}

// A point that never has a value gets the channel's mean, one without a value in a month its time mean.
void finish_means(FolderStatistics& statistics, const std::vector<int32_t>& time, const std::vector<int32_t>& climatology) {
  const size_t maps = statistics.time_mean.size(), plane = maps / statistics.moments.size();
  for (size_t i = 0; i < maps; ++i) {
    double& mean = statistics.time_mean[i];
    mean = time[i] == 0 ? statistics.moments[i / plane].mean() : mean / static_cast<double>(time[i]);
  }
  for (size_t i = 0; i < statistics.climatology.size(); ++i) {
    double& mean = statistics.climatology[i];
    mean = climatology[i] == 0 ? statistics.time_mean[i % maps] : mean / static_cast<double>(climatology[i]);
  }
}

// A channel without a single value has no mean.
void check_any_values(const FolderStatistics& statistics, const std::filesystem::path& folder) {
  for (size_t c = 0; c < statistics.moments.size(); ++c) {
    if (statistics.moments[c].count() > 0) continue;
    throw DataError("data", cat("a channel of missing values only: path=", folder.string(), ", channel=", statistics.channels[c]),
                    "Leave it out, or check _FillValue, missing_value and valid_range of the fields");
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

std::vector<std::string> FolderStatistics::warnings() const {
  std::vector<std::string> lines;
  if (!doubled_times.empty()) lines.push_back(doubled_times);
  for (size_t c = 0; c < moments.size(); ++c) {
    for (const float value : {moments[c].min(), moments[c].max()}) {
      if (is_usual_fill(value)) lines.push_back(undeclared_fill_line(channels[c], value));
    }
  }
  return lines;
}

FolderStatistics compute_statistics(const std::filesystem::path& folder, const StatisticsOptions& options) {
  const std::vector<OpenYear> years = open_years(folder, options);
  const FieldFacts& facts = years.front().file->facts();
  FolderStatistics statistics = empty_statistics(facts);
  std::vector<const FieldFacts*> all;
  for (const OpenYear& year : years) all.push_back(&year.file->facts());
  statistics.doubled_times = doubled_times_text(all);
  for (const OpenYear& year : years) {
    require_one_kind(year.file->facts(), facts);
    statistics.steps += year.file->facts().steps;
    ++statistics.num_files;
    for (const int month : year.months) ++statistics.month_steps[static_cast<size_t>(month)];
  }
  if (options.climatology) statistics.climatology.resize(12 * statistics.time_mean.size());
  ThreadPool pool({.num_threads = options.num_threads > 0 ? options.num_threads : usable_cores(), .name = "stats"});
  std::vector<int32_t> time(statistics.time_mean.size()), climatology(statistics.climatology.size());
  pool.parallel_for(facts.channels, [&](int64_t channel) {
    add_channel(years, channel, statistics, {time.data(), climatology.data()});
  });
  check_any_values(statistics, folder);
  finish_means(statistics, time, climatology);
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
