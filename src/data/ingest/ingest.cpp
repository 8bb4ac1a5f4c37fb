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
#include "data/ingest/masks.h"
#include "data/ingest/output.h"
#include "data/ingest/part_statistics.h"
#include "data/ingest/provenance.h"
#include "data/ingest/sequences.h"
#include "data/ingest/source/inventory.h"
#include "data/ingest/split.h"
#include "data/ingest/staging.h"
#include "data/sample/channels/channel_roles.h"

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
        new_grid_(options.grid.height > 0 ? equiangular_grid(options.grid.height, options.grid.width) : Grid()),
        crop_(resolve_crop(grid(), options.crop, options.patch)),
        reader_(component_, inventory_, grid(), options.grid.method, crop_),
        channels_(plan_.channels) {
    settle_roles();
  }

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
  const Grid& input_grid() const { return inventory_.grids[static_cast<size_t>(plan_.grid)]; }
  const Grid& grid() const { return options_.grid.height > 0 ? new_grid_ : input_grid(); }
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
    if (options_.grid.height > 0) {
      note(cat("regridded: from=", input_grid().latitude.size(), "x", input_grid().longitude.size(),
               ", method=", options_.grid.method == RegridMethod::Conservative ? "conservative, first order" : "bilinear"));
    }
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
    missing_.resize(channels_.size());
    first_values_.resize(channels_.size());
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
    if (options_.missing != MissingPolicy::Error) missing_[static_cast<size_t>(c)].add(values);
    if (roles_[static_cast<size_t>(c)] == ChannelRole::Static) check_static(file, i, c, values);
    if (file.part == Part::Train) statistics_->add(c, values);
  }

  // A static channel is written once, so it may not change.
  void check_static(const OutputFile& file, int64_t i, int64_t c, std::span<const float> values) {
    std::vector<float>& first = first_values_[static_cast<size_t>(c)];
    if (first.empty()) first.assign(values.begin(), values.end());
    const auto same = [](float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); };
    if (std::ranges::equal(first, values, same)) return;
    throw DataError(
        "ingest",
        cat("a static channel changes: channel=", channels_[static_cast<size_t>(c)].name, ", time=", date(time_at(file, i))),
        "Give it another role, such as forcing");
  }

  // A field without a time is static, unless the user says otherwise.
  void settle_roles() {
    std::vector<std::string> names, stored;
    for (const Channel& channel : channels_) {
      const Feed& feed = plan_.feeds[static_cast<size_t>(channel.feed)];
      const bool has_time = inventory_.variables[static_cast<size_t>(feed.variable)].has_time;
      names.push_back(channel.name);
      stored.emplace_back(name_of(has_time ? ChannelRole::Prognostic : ChannelRole::Static));
    }
    roles_ = channel_roles(names, stored, options_.roles);
  }

  // Adds a static channel, which is not kept in `fields`.
  void add_static(const Channel& channel, std::vector<float> values) {
    statics_.channels.push_back(channel.name);
    statics_.units.push_back(channel.units);
    statics_.values.insert(statics_.values.end(), values.begin(), values.end());
    written_.push_back(channel);
  }

  // One mask for all channels that share it: static where it is the same at all times, else an input channel.
  void add_masks(std::vector<Channel>& kept) {
    std::vector<const MissingPoints*> points;
    std::vector<std::string> names;
    for (size_t c = 0; c < kept.size(); ++c) {
      points.push_back(&missing_[static_cast<size_t>(origin_[c])]);
      names.push_back(kept[c].name);
    }
    for (const MaskGroup& group : group_masks(points, names)) {
      const MissingPoints& missing = *points[group.channels.front()];
      const Channel mask{group.name, "1", kept[group.channels.front()].feed, Derivation::Mask};
      std::vector<std::string> sharing;
      for (const size_t c : group.channels) sharing.push_back(names[c]);
      note(cat("mask ", group.name, ": channels=", join(sharing, " "), ", without a value=", missing.first_count(), " of ",
               reader_.num_points(), " points",
               missing.is_constant() ? " at all times" : " at the first time, others at other times"));
      if (missing.is_constant()) {
        add_static(mask, missing.first_mask());
      } else {
        kept.push_back(mask);
        kept_roles_.push_back(ChannelRole::Forcing);
        mask_of_.push_back(join(sharing, " "));
      }
    }
    has_holes_ = std::ranges::any_of(points, [](const MissingPoints* missing) { return missing->count() > 0; });
  }

  // Settles from the values which channels are constant, which need a mask, and what fills the gaps.
  void settle_channels() {
    std::vector<Channel> kept;
    for (size_t c = 0; c < channels_.size(); ++c) {
      const Channel& channel = channels_[c];
      const auto& statistics = statistics_->channel(static_cast<int64_t>(c));
      if (statistics.count == 0) {
        throw DataError("ingest", cat("a channel has no value in the training part: channel=", channel.name),
                        "Leave it out with --variables");
      }
      const int64_t missing = missing_[c].count();
      if (missing > 0) note(cat("without a value: channel=", channel.name, ", points=", missing));
      for (const float value : {statistics.lowest, statistics.highest}) {
        if (is_usual_fill(value)) note(cat("warning: ", undeclared_fill_line(channel.name, value)));
      }
      if (roles_[c] == ChannelRole::Static) {
        if (options_.missing == MissingPolicy::Mean) fill(first_values_[c], statistics.mean);
        add_static(channel, first_values_[c]);
        continue;
      }
      if (statistics.is_constant()) {
        const bool dropped = options_.constant == ConstantPolicy::Drop;
        note(cat("constant in the training part: channel=", channel.name, ", value=", statistics.lowest,
                 dropped ? ", dropped" : ", deviation written as 1 (--constant drop leaves it out)"));
        if (dropped) continue;
      }
      kept.push_back(channel);
      kept_roles_.push_back(roles_[c]);
      origin_.push_back(static_cast<int64_t>(c));
    }
    if (kept.empty()) throw DataError("ingest", "every channel is constant", "Keep them with --constant keep");
    masks_from_ = kept.size();
    if (options_.missing == MissingPolicy::Mask) add_masks(kept);
    channels_ = std::move(kept);
    written_.insert(written_.begin(), channels_.begin(), channels_.end());
  }

  static void fill(std::span<float> values, double mean) {
    std::ranges::replace_if(
        values, [](float v) { return std::isnan(v); }, static_cast<float>(mean));
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
    if (!header.roles.empty()) note(cat("roles: ", roles_text(header.channels, kept_roles_)));
    if (!statics_.channels.empty()) note(cat("static channels=", statics_.channels.size(), ": ", join(statics_.channels, " ")));
  }

  FieldHeader make_header() const {
    FieldHeader header{
        .channels = {},
        .units = {},
        .roles = {},
        .mask_of = {},
        .statics = statics_,
        .has_holes = has_holes_,
        .latitude = latitude(),
        .longitude = longitude(),
        .calendar = plan_.calendar,
        .step = describe(output_.step),
        .provenance = provenance_json(inventory_.files, written_, component_.versions(), options_.command, report_.lines),
        .licence = licence_text(inventory_.files, options_.licence)};
    for (const Channel& channel : channels_) {
      header.channels.push_back(channel.name);
      header.units.push_back(channel.units);
    }
    if (std::ranges::any_of(kept_roles_, [](ChannelRole role) { return role != ChannelRole::Prognostic; })) {
      for (const ChannelRole role : kept_roles_) header.roles.emplace_back(name_of(role));
    }
    if (!mask_of_.empty()) {
      header.mask_of.assign(masks_from_, "");
      header.mask_of.insert(header.mask_of.end(), mask_of_.begin(), mask_of_.end());
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
      if (options_.missing == MissingPolicy::Mean) fill_gaps(values);
      output.append(time_at(file, i), values);
    });
    output.close();
    note(cat("wrote ", name_of(file.part), "/", file.name, ": times=", file.end - file.begin,
             ", first=", date(time_at(file, file.begin)), ", last=", date(time_at(file, file.end - 1))));
  }

  void fill_gaps(std::vector<float>& values) const {
    for (size_t c = 0; c < channels_.size(); ++c) fill(slice(values, static_cast<int64_t>(c)), mean_of(c));
  }

  void write_statistics(const std::filesystem::path& folder) {
    make_folders(folder);
    const auto count = static_cast<int64_t>(channels_.size());
    std::vector<float> means, deviations, lows, highs, maps;
    for (size_t c = 0; c < channels_.size(); ++c) {
      means.push_back(static_cast<float>(mean_of(c)));
      deviations.push_back(static_cast<float>(deviation_of(c)));
      lows.push_back(c < masks_from_ ? statistics_->channel(origin_[c]).lowest : 0.0f);
      highs.push_back(c < masks_from_ ? statistics_->channel(origin_[c]).highest : 1.0f);
      const auto map = c < masks_from_ ? statistics_->time_mean(origin_[c])
                                       : std::vector<float>(static_cast<size_t>(reader_.num_points()), 1.0f);
      maps.insert(maps.end(), map.begin(), map.end());
    }
    write_npy(folder / "global_means.npy", {1, count, 1, 1}, means);
    write_npy(folder / "global_stds.npy", {1, count, 1, 1}, deviations);
    write_npy(folder / "global_mins.npy", {1, count, 1, 1}, lows);
    write_npy(folder / "global_maxs.npy", {1, count, 1, 1}, highs);
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
  Grid new_grid_;
  Crop crop_;
  FeedReader reader_;
  std::vector<Channel> channels_;                 // those of the plan; after settle_channels() those that are written
  std::optional<PartStatistics> statistics_;      // of the plan's channels
  std::vector<ChannelRole> roles_;                // of the plan's channels
  std::vector<MissingPoints> missing_;            // of the plan's channels, all parts
  std::vector<std::vector<float>> first_values_;  // of the plan's static channels
  std::vector<int64_t> origin_;                   // written channel -> channel of the plan
  std::vector<ChannelRole> kept_roles_;           // of the written channels, masks included
  StaticPlanes statics_;
  std::vector<Channel> written_;  // those of `fields`, then the static ones
  bool has_holes_ = false;
  std::vector<std::string> mask_of_;  // of the masks that change with time: the channels that share each
  size_t masks_from_ = 0;             // written channels from here on are masks
  int64_t done_ = 0;
};

}  // namespace

Report ingest(const Component& component, const Options& options, const Progress& progress) {
  return Ingestion(component, options, progress).run();
}

}  // namespace welkin::data::ingest
