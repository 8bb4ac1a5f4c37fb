// SPDX-License-Identifier: Apache-2.0
#include "data/ingest/ingest.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"
#include "data/formats/npy_file.h"
#include "data/ingest/channels.h"
#include "data/ingest/feed_reader.h"
#include "data/ingest/output.h"
#include "data/ingest/part_statistics.h"
#include "data/ingest/provenance.h"
#include "data/ingest/sequences.h"
#include "data/ingest/source/inventory.h"
#include "data/ingest/split.h"
#include "data/ingest/staging.h"

namespace welkin::data::ingest {
namespace {

class Ingestion {
 public:
  Ingestion(const Component& component, const Options& options, const Progress& progress)
      : options_(options),
        progress_(progress),
        staging_(options.out),
        component_(component),
        inputs_(find_inputs(options.inputs, options.recursive ? Subfolders::Read : Subfolders::Skip)),
        inventory_(take_inventory(component_, inputs_.files)),
        plan_(plan_channels(inventory_, options)),
        sequences_(sort_sequences(inventory_, plan_, options)),
        output_(plan_output(sequences_, plan_.calendar, options)),
        crop_(resolve_crop(grid(), options.crop, options.patch)),
        reader_(component_, inventory_, plan_, crop_),
        channels_(plan_.channels) {}

  Report run() {
    report_input();
    survey();
    settle_channels();
    write_all(staging_.path());
    staging_.publish();
    report_.lines.insert(report_.lines.end(), staging_.notes().begin(), staging_.notes().end());
    return std::move(report_);
  }

 private:
  const Grid& grid() const { return inventory_.grids[static_cast<size_t>(plan_.grid)]; }
  void note(std::string line) { report_.lines.push_back(std::move(line)); }
  std::string date(int64_t time) const { return format_date(plan_.calendar, time); }

  std::span<const int64_t> fields_at(const OutputFile& file, int64_t i) const {
    const auto feeds = plan_.feeds.size();
    return std::span(sequences_.members[file.sequence].fields).subspan(static_cast<size_t>(i) * feeds, feeds);
  }
  int64_t time_at(const OutputFile& file, int64_t i) const {
    return sequences_.members[file.sequence].times[static_cast<size_t>(i)];
  }

  // Calls body(file, time index) for every time that will be written, and the user's progress.
  template <typename Body>
  void for_each_time(const OutputFile& file, Body&& body) {
    for (int64_t i = file.begin; i < file.end; ++i) {
      body(i);
      ++done_;
      if (progress_) progress_(done_, 2 * total_times());
    }
  }
  int64_t total_times() const {
    int64_t total = 0;
    for (const OutputFile& file : output_.files) total += file.end - file.begin;
    return total;
  }

  void report_input() {
    note(cat("files=", inventory_.files.size(), ", fields=", inventory_.fields.size(), ", read with ", component_.versions()));
    for (const auto* notes : {&inputs_.warnings, &inventory_.notes, &plan_.notes, &sequences_.notes, &output_.notes}) {
      for (const auto& line : *notes) note(line);
    }
    const auto& times = sequences_.members.front().times;
    note(cat("times=", times.size(), ", first=", date(times.front()), ", last=", date(times.back()),
             ", step=", describe(output_.step), ", calendar=", name_of(plan_.calendar), ", members=", sequences_.members.size()));
    note(cat("grid=", grid().latitude.size(), "x", grid().longitude.size(), ", written=", crop_.height, "x", crop_.width,
             " from ", latitude().front(), " N ", longitude().front(), " E, north first, eastward"));
  }

  std::vector<double> latitude() const {
    return {grid().latitude.begin() + crop_.top, grid().latitude.begin() + crop_.top + crop_.height};
  }
  std::vector<double> longitude() const {
    return {grid().longitude.begin() + crop_.left, grid().longitude.begin() + crop_.left + crop_.width};
  }

  // The first pass: every value is looked at, the training part is summed up.
  void survey() {
    const auto count = static_cast<int64_t>(channels_.size());
    statistics_.emplace(count, reader_.num_points());
    missing_.assign(channels_.size(), 0);
    std::vector<float> values(static_cast<size_t>(count * reader_.num_points()));
    for (const OutputFile& file : output_.files) {
      for_each_time(file, [&](int64_t i) {
        reader_.read(fields_at(file, i), channels_, values);
        for (int64_t c = 0; c < count; ++c) survey_channel(file, i, c, slice(values, c));
      });
    }
  }

  std::span<float> slice(std::vector<float>& values, int64_t channel) const {
    const auto points = static_cast<size_t>(reader_.num_points());
    return std::span(values).subspan(static_cast<size_t>(channel) * points, points);
  }

  void survey_channel(const OutputFile& file, int64_t i, int64_t c, std::span<const float> values) {
    const auto& channel = channels_[static_cast<size_t>(c)];
    const auto count = std::ranges::count_if(values, [](float v) { return std::isnan(v); });
    if (count > 0 && options_.missing == MissingPolicy::Error) {
      throw DataError("ingest",
                      cat("points without a value: channel=", channel.name, ", time=", date(time_at(file, i)), ", points=", count,
                          " of ", values.size()),
                      "Choose with --missing mean, mask or nan, or crop them away");
    }
    if (std::ranges::any_of(values, [](float v) { return std::isinf(v); })) {
      throw DataError("ingest", cat("an infinite value: channel=", channel.name, ", time=", date(time_at(file, i))),
                      "Repair the input");
    }
    missing_[static_cast<size_t>(c)] += count;
    if (file.part == Part::Train) statistics_->add(c, values);
  }

  // What only the values tell: which channels are constant, which need a mask, what fills the gaps.
  void settle_channels() {
    std::vector<Channel> kept, masks;
    std::vector<int64_t> origin;
    for (size_t c = 0; c < channels_.size(); ++c) {
      const Channel& channel = channels_[c];
      const auto& statistics = statistics_->channel(static_cast<int64_t>(c));
      if (statistics.count == 0) {
        throw DataError("ingest", cat("a channel has no value in the training part: channel=", channel.name),
                        "Leave it out with --variables");
      }
      if (missing_[c] > 0) note(cat("without a value: channel=", channel.name, ", points=", missing_[c]));
      if (statistics.is_constant()) {
        const bool dropped = options_.constant == ConstantPolicy::Drop;
        note(cat("constant in the training part: channel=", channel.name, ", value=", statistics.lowest,
                 dropped ? ", dropped" : ", deviation written as 1 (--constant drop leaves it out)"));
        if (dropped) continue;
      }
      kept.push_back(channel);
      origin.push_back(static_cast<int64_t>(c));
      if (options_.missing == MissingPolicy::Mask && missing_[c] > 0)
        masks.push_back({channel.name + "_mask", "1", channel.feed, Derivation::Mask});
    }
    if (kept.empty()) throw DataError("ingest", "every channel is constant", "Keep them with --constant keep");
    origin_ = std::move(origin);
    masks_from_ = kept.size();
    kept.insert(kept.end(), masks.begin(), masks.end());
    channels_ = std::move(kept);
  }

  // A mask is 0 or 1: its mean 0 and deviation 1 leave it as it is.
  double mean_of(size_t c) const { return c < masks_from_ ? statistics_->channel(origin_[c]).mean : 0.0; }
  double deviation_of(size_t c) const {
    if (c >= masks_from_ || statistics_->channel(origin_[c]).is_constant()) return 1.0;
    return statistics_->channel(origin_[c]).deviation();
  }

  void write_all(const std::filesystem::path& folder) {
    const FieldHeader header = make_header();
    for (const OutputFile& file : output_.files) write_part(folder, file, header);
    write_statistics(folder / "stats");
    write_file_atomically(folder / "ingest.json", header.provenance);
    note(cat("channels=", channels_.size(), ": ", join(header.channels, " ")));
  }

  FieldHeader make_header() const {
    FieldHeader header{
        .channels = {},
        .units = {},
        .latitude = latitude(),
        .longitude = longitude(),
        .calendar = plan_.calendar,
        .step = describe(output_.step),
        .provenance = provenance_json(inventory_.files, channels_, component_.versions(), options_.command, report_.lines),
        .licence = licence_text(inventory_.files, options_.licence)};
    for (const Channel& channel : channels_) {
      header.channels.push_back(channel.name);
      header.units.push_back(channel.units);
    }
    return header;
  }

  void write_part(const std::filesystem::path& folder, const OutputFile& file, const FieldHeader& header) {
    const auto path = folder / name_of(file.part) / file.name;
    make_folders(path.parent_path());
    FieldOutput output(path, header, sequences_.members[file.sequence].member, file.end - file.begin);
    std::vector<float> values(channels_.size() * static_cast<size_t>(reader_.num_points()));
    for_each_time(file, [&](int64_t i) {
      reader_.read(fields_at(file, i), channels_, values);
      if (options_.missing != MissingPolicy::Nan) fill_gaps(values);
      output.append(time_at(file, i), values);
    });
    output.close();
    note(cat("wrote ", name_of(file.part), "/", file.name, ": times=", file.end - file.begin,
             ", first=", date(time_at(file, file.begin)), ", last=", date(time_at(file, file.end - 1))));
  }

  void fill_gaps(std::vector<float>& values) const {
    for (size_t c = 0; c < channels_.size(); ++c) {
      const auto mean = static_cast<float>(mean_of(c));
      std::ranges::replace_if(
          slice(values, static_cast<int64_t>(c)), [](float v) { return std::isnan(v); }, mean);
    }
  }

  void write_statistics(const std::filesystem::path& folder) {
    make_folders(folder);
    const auto count = static_cast<int64_t>(channels_.size());
    std::vector<float> means, deviations, maps;
    for (size_t c = 0; c < channels_.size(); ++c) {
      means.push_back(static_cast<float>(mean_of(c)));
      deviations.push_back(static_cast<float>(deviation_of(c)));
      const auto map = c < masks_from_ ? statistics_->time_mean(origin_[c])
                                       : std::vector<float>(static_cast<size_t>(reader_.num_points()), 1.0f);
      maps.insert(maps.end(), map.begin(), map.end());
    }
    write_npy(folder / "global_means.npy", {1, count, 1, 1}, means);
    write_npy(folder / "global_stds.npy", {1, count, 1, 1}, deviations);
    write_npy(folder / "time_means.npy", {1, count, crop_.height, crop_.width}, maps);
  }

  const Options& options_;
  const Progress& progress_;
  StagingFolder staging_;  // first, so that an output that cannot be made is known before anything is read
  Report report_;
  const Component& component_;
  Inputs inputs_;
  Inventory inventory_;
  ChannelPlan plan_;
  Sequences sequences_;
  OutputPlan output_;
  Crop crop_;
  FeedReader reader_;
  std::vector<Channel> channels_;             // those of the plan; after settle_channels() those that are written
  std::optional<PartStatistics> statistics_;  // of the plan's channels
  std::vector<int64_t> missing_;              // points without a value, all parts
  std::vector<int64_t> origin_;               // written channel -> channel of the plan
  size_t masks_from_ = 0;                     // written channels from here on are masks
  int64_t done_ = 0;
};

}  // namespace

Report ingest(const Component& component, const Options& options, const Progress& progress) {
  return Ingestion(component, options, progress).run();
}

}  // namespace welkin::data::ingest
