// SPDX-License-Identifier: Apache-2.0
#include "data/ingest/box/box.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "core/error.h"
#include "core/text.h"
#include "data/formats/hdf5/hdf5_file.h"
#include "data/ingest/box/volume.h"
#include "data/ingest/part_statistics.h"
#include "data/ingest/provenance.h"
#include "data/ingest/source/inventory.h"
#include "data/ingest/staging.h"

namespace welkin::data::ingest {
namespace {

using Shape = std::array<int64_t, 3>;

struct BoxChannel {
  std::string source, name, units;
  bool log = false, component = false;  // component of the vector
  float floor = 0;                      // log: the value for zero
  double offset = 0, scale = 1;
  ChannelStatistics statistics;  // of transform(x) over the training part
};

// A box without the cells at or beyond `cut` along an axis, or only those.
struct Part3 {
  Shape begin{0, 0, 0}, extent{0, 0, 0};
};

template <typename Body>
void for_each_row(const Shape& whole, const Part3& part, Body&& body) {
  for (int64_t d = part.begin[0]; d < part.begin[0] + part.extent[0]; ++d) {
    for (int64_t h = part.begin[1]; h < part.begin[1] + part.extent[1]; ++h) {
      body(static_cast<size_t>((d * whole[1] + h) * whole[2] + part.begin[2]), static_cast<size_t>(part.extent[2]));
    }
  }
}

class BoxIngestion {
 public:
  explicit BoxIngestion(const BoxOptions& options)
      : options_(options),
        staging_(options.out),
        found_(find_inputs(options.inputs, options.recursive ? Subfolders::Read : Subfolders::Skip)),
        files_(found_.files),
        reader_(files_, options.component, options.helper, options.cells) {
    report_.lines = found_.warnings;
    for (const auto& choice : options.input) inputs_.push_back(channel_of(choice));
    for (const auto& choice : options.target) targets_.push_back(channel_of(choice));
  }

  Report run() {
    require_names();
    for (auto* group : {&inputs_, &targets_}) {
      for (BoxChannel& channel : *group) survey(channel);
    }
    settle_scales(inputs_, 1.0);
    settle_scales(targets_, options_.target_deviations);
    write_all(staging_.path());
    staging_.publish();
    report_.lines.insert(report_.lines.end(), staging_.notes().begin(), staging_.notes().end());
    return std::move(report_);
  }

 private:
  BoxChannel channel_of(const VariableChoice& choice) const {
    BoxChannel channel;
    channel.source = choice.source;
    channel.name = choice.name.empty() ? choice.source.substr(choice.source.find_last_of('/') + 1) : choice.name;
    channel.log = std::ranges::find(options_.log, channel.name) != options_.log.end();
    channel.component = std::ranges::find(options_.vector, channel.name) != options_.vector.end();
    return channel;
  }

  void require_names() const {
    if (inputs_.empty() || targets_.empty())
      throw ConfigError("ingest", "a box needs fields on both sides", "Give --input and --target");
    for (const auto* list : {&options_.log, &options_.vector}) {
      for (const auto& name : *list) {
        const auto is_it = [&](const BoxChannel& channel) { return channel.name == name; };
        if (std::ranges::any_of(inputs_, is_it) || std::ranges::any_of(targets_, is_it)) continue;
        throw DataError("ingest", cat("no such channel: name=", name),
                        "Use the names of --input and --target in --log and --vector");
      }
    }
  }

  Volume load(const BoxChannel& channel) {
    Volume volume = reader_.read(channel.source, options_.shape);
    if (!shape_) {
      shape_ = volume.shape;
      cut_parts();
    }
    if (volume.shape != *shape_) {
      throw DataError("ingest",
                      cat("the boxes have different shapes: field=", channel.source, ", shape=", join(volume.shape, "x"),
                          ", first=", join(*shape_, "x")),
                      "Choose fields of one grid");
    }
    return volume;
  }

  void cut_parts() {
    train_.extent = *shape_;
    const auto axis = static_cast<size_t>(options_.valid_axis);
    if (options_.valid_axis < 0 || options_.valid_axis > 2)
      throw ConfigError("ingest", cat("no such axis: valid_axis=", options_.valid_axis), "Choose 0, 1 or 2");
    if (options_.valid_fraction == 0) return;
    const auto held = static_cast<int64_t>(std::ceil(options_.valid_fraction * static_cast<double>((*shape_)[axis])));
    if (!(options_.valid_fraction > 0) || held >= (*shape_)[axis]) {
      throw DataError("ingest",
                      cat("nothing is left for training: valid_fraction=", options_.valid_fraction, ", extent=", (*shape_)[axis]),
                      "Choose a --valid_fraction between 0 and 1");
    }
    train_.extent[axis] -= held;
    valid_ = Part3{{0, 0, 0}, *shape_};
    valid_->begin[axis] = train_.extent[axis];
    valid_->extent[axis] = held;
  }

  void survey(BoxChannel& channel) {
    Volume volume = load(channel);
    report_.lines.insert(report_.lines.end(), volume.notes.begin(), volume.notes.end());
    channel.units = channel.log ? cat("log10(", volume.units.empty() ? "1" : volume.units, ")") : volume.units;
    if (channel.log) find_floor(channel, volume);
    transform(channel, volume);
    for_each_row(*shape_, train_,
                 [&](size_t first, size_t count) { channel.statistics.add(std::span(volume.values).subspan(first, count)); });
    if (channel.statistics.is_constant()) report_.lines.push_back(cat("constant in the training part: channel=", channel.name));
  }

  void find_floor(BoxChannel& channel, const Volume& volume) {
    channel.floor = std::numeric_limits<float>::infinity();
    for (const float value : volume.values) {
      if (value < 0)
        throw DataError("ingest", cat("a negative value has no logarithm: channel=", channel.name, ", value=", value),
                        "Leave it out of --log");
      if (value > 0) channel.floor = std::min(channel.floor, value);
    }
    const auto zeros = std::ranges::count(volume.values, 0.0f);
    if (zeros == static_cast<std::ptrdiff_t>(volume.values.size())) {
      throw DataError("ingest", cat("no value has a logarithm: channel=", channel.name, ", zeros=", zeros),
                      "Leave it out of --log");
    }
    if (zeros == 0) return;
    report_.lines.push_back(cat("zeros have no logarithm and became the smallest positive value: channel=", channel.name,
                                ", cells=", zeros, " of ", volume.values.size(), ", value=", channel.floor));
  }

  static void transform(const BoxChannel& channel, Volume& volume) {
    if (!channel.log) return;
    for (float& value : volume.values) value = std::log10(std::max(value, channel.floor));
  }

  // Mean and deviation; one scale and no offset for the components of a vector, since rotations mix them.
  static void settle_scales(std::vector<BoxChannel>& group, double deviations) {
    double squares = 0, count = 0;
    for (const BoxChannel& channel : group) {
      const auto& s = channel.statistics;
      if (!channel.component) continue;
      squares += s.squares + static_cast<double>(s.count) * s.mean * s.mean;
      count += static_cast<double>(s.count);
    }
    for (BoxChannel& channel : group) {
      channel.offset = channel.component ? 0.0 : channel.statistics.mean;
      channel.scale = channel.component ? std::sqrt(squares / count) : channel.statistics.deviation();
      if (channel.statistics.is_constant() && !channel.component) channel.scale = 1.0;
      if (!(channel.scale > 0)) channel.scale = 1.0;
      channel.scale *= deviations;
    }
  }

  void write_all(const std::filesystem::path& folder) {
    for (const auto* group : {&inputs_, &targets_}) {
      for (const auto& channel : *group) {
        report_.lines.push_back(cat(group == &inputs_ ? "input " : "target ", channel.name, ": from ", channel.source,
                                    ", offset=", channel.offset, ", scale=", channel.scale, channel.log ? ", log10" : ""));
      }
    }
    report_.lines.push_back(cat("box=", join(*shape_, "x"), ", train=", join(train_.extent, "x"),
                                valid_ ? cat(", valid=", join(valid_->extent, "x")) : ""));
    write_file(folder / "train.h5", train_);
    if (valid_) write_file(folder / "valid.h5", *valid_);
  }

  void write_file(const std::filesystem::path& path, const Part3& part) {
    Hdf5File file = Hdf5File::create(path);
    write_group(file, "Nbody", inputs_, part);
    write_group(file, "Hydro", targets_, part);
    file.set_string("/", "provenance",
                    provenance_json(files_, {}, "HDF5, or the GRIB and netCDF component", options_.command, report_.lines));
    const std::string licence = licence_text(files_, options_.licence);
    if (!licence.empty()) file.set_string("/", "licence", licence);
    file.close();
  }

  void write_group(Hdf5File& file, const char* name, const std::vector<BoxChannel>& group, const Part3& part) {
    const auto count = static_cast<int64_t>(group.size());
    file.create_dataset(
        name, {.type = Hdf5Type::Float32, .shape = {count, part.extent[0], part.extent[1], part.extent[2]}, .chunk = {}});
    std::vector<float> row;
    for (int64_t c = 0; c < count; ++c) {
      const BoxChannel& channel = group[static_cast<size_t>(c)];
      Volume volume = load(channel);
      transform(channel, volume);
      row.clear();
      for_each_row(*shape_, part, [&](size_t first, size_t length) {
        for (size_t i = first; i < first + length; ++i)
          row.push_back(static_cast<float>((volume.values[i] - channel.offset) / channel.scale));
      });
      file.write(name, {c, 0, 0, 0}, {1, part.extent[0], part.extent[1], part.extent[2]}, std::span<const float>(row));
    }
    describe(file, name, group, part);
  }

  void describe(Hdf5File& file, const char* name, const std::vector<BoxChannel>& group, const Part3& part) const {
    std::vector<std::string> channels, units, transforms, offsets, scales, periodic, vector_places;
    for (size_t c = 0; c < group.size(); ++c) {
      channels.push_back(group[c].name);
      units.push_back(group[c].units);
      transforms.push_back(group[c].log ? "log10" : "identity");
      offsets.push_back(cat(group[c].offset));
      scales.push_back(cat(group[c].scale));
    }
    for (size_t axis = 0; axis < 3; ++axis)
      periodic.push_back(options_.periodic && part.extent[axis] == (*shape_)[axis] ? "1" : "0");
    for (const auto& component : options_.vector) {
      const auto found = std::ranges::find(channels, component);
      if (found != channels.end()) vector_places.push_back(cat(found - channels.begin()));
    }
    file.set_strings(name, "channels", channels);
    file.set_strings(name, "units", units);
    file.set_strings(name, "transform", transforms);
    file.set_strings(name, "offset", offsets);
    file.set_strings(name, "scale", scales);
    file.set_strings(name, "periodic", periodic);
    if (!vector_places.empty()) file.set_strings(name, "vector_channels", vector_places);
  }

  const BoxOptions& options_;
  StagingFolder staging_;  // first, so that an output that cannot be made is known before anything is read
  Inputs found_;
  const std::vector<InputFile>& files_;
  VolumeReader reader_;
  std::vector<BoxChannel> inputs_, targets_;
  std::optional<Shape> shape_;
  Part3 train_;
  std::optional<Part3> valid_;
  Report report_;
};

}  // namespace

Report ingest_box(const BoxOptions& options) { return BoxIngestion(options).run(); }

}  // namespace welkin::data::ingest
