// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/box_dataset.h"

#include <algorithm>
#include <functional>

#include "core/error.h"
#include "core/philox.h"
#include "core/text.h"
#include "data/storage/fingerprint.h"

namespace welkin::data {
namespace {

std::string extent_text(const std::array<int64_t, 3>& extent) { return cat("(", join(extent, ", "), ")"); }

void check_vectors(const std::vector<int64_t>& vectors, int64_t channels, const std::string& source) {
  const bool in_range = std::ranges::all_of(vectors, [&](int64_t channel) { return channel >= 0 && channel < channels; });
  if (vectors.size() % 3 == 0 && in_range) return;
  throw DataError(
      "data",
      cat("vector channels that the box does not have: source=", source, ", channels_of_vectors=[", join(vectors, ", "),
          "], channels=", channels),
      "Give vector_channels_in and vector_channels_out as triples of channel numbers, components along axes 0, 1 and 2");
}

int64_t used_channels(const BoxArray& box, int64_t wanted, const std::string& source) {
  const int64_t held = box.shape().channels;
  if (wanted <= held) return wanted == 0 ? held : wanted;
  throw DataError("data", cat("the box has too few channels: source=", source, ", channels=", held, ", wanted=", wanted),
                  "Set N_in_channels and N_out_channels to what the file holds");
}

std::vector<std::string> channel_names_or_numbers(std::vector<std::string> names, int64_t count, std::string_view prefix) {
  for (auto c = static_cast<int64_t>(names.size()); c < count; ++c) names.push_back(cat(prefix, c));
  names.resize(static_cast<size_t>(count));
  return names;
}

// The options of one side (input or target): its names, and the file's facts about all its channels.
struct SideOptions {
  std::string_view prefix, key;
  int64_t count = 0;
  const std::vector<std::string>& wanted;
  const std::vector<std::string>& names;
  const std::vector<std::string>& units;
  const std::vector<ChannelScaling>& scaling;
};

SideOptions input_side(const BoxOptions& o) {
  return {"input", "in_channels", o.in_channels, o.in_names, o.input_channels, o.input_units, o.input_scaling};
}
SideOptions target_side(const BoxOptions& o) {
  return {"target", "out_channels", o.out_channels, o.out_names, o.target_channels, o.target_units, o.target_scaling};
}

// The channel of the box for each channel of the sample.
std::vector<int64_t> chosen_channels(const BoxArray& box, const SideOptions& side, const std::string& source) {
  std::vector<int64_t> channels;
  if (side.wanted.empty()) {
    for (int64_t c = 0; c < used_channels(box, side.count, source); ++c) channels.push_back(c);
    return channels;
  }
  const auto names = channel_names_or_numbers(side.names, box.shape().channels, side.prefix);
  for (const std::string& name : side.wanted) {
    const auto found = std::ranges::find(names, name);
    if (found == names.end()) {
      throw ConfigError("data", cat("the file has no such channel: ", side.key, "=", name, ", path=", source),
                        cat("Choose from: ", join(names, ", ")));
    }
    channels.push_back(found - names.begin());
  }
  return channels;
}

ArraySpec box_array_spec(const std::vector<int64_t>& of_box, int64_t held, int64_t crop, const SideOptions& side) {
  const auto names = channel_names_or_numbers(side.names, held, side.prefix);
  const auto count = static_cast<int64_t>(of_box.size());
  ArraySpec spec;
  for (const int64_t channel : of_box) {
    const auto c = static_cast<size_t>(channel);
    spec.channels.push_back(names[c]);
    spec.units.push_back(c < side.units.size() ? side.units[c] : std::string());
    if (!side.scaling.empty()) spec.scaling.push_back(side.scaling.at(c));
  }
  spec.shape = {count, crop, crop, crop};
  return spec;
}

// A run of output cells along one axis that are consecutive cells of the box.
struct Run {
  int64_t out_begin = 0, extent = 0;  // relative to the region
  int64_t first = 0;                  // cell of the box
};

// A crop that wraps around the box has two runs on an axis, others one.
struct Runs {
  std::array<Run, 2> run;
  size_t count = 0;
};

Runs runs_along(int64_t origin, int64_t crop, bool flip, int64_t edge, int64_t begin, int64_t extent) {
  Runs runs;
  for (int64_t done = 0; done < extent && runs.count < runs.run.size();) {
    const int64_t i = begin + done;
    const int64_t cell = (origin + (flip ? crop - 1 - i : i)) % edge;
    const int64_t length = std::min(extent - done, flip ? cell + 1 : edge - cell);
    runs.run[runs.count++] = {done, length, cell};
    done += length;
  }
  return runs;
}

}  // namespace

BoxDataset::BoxDataset(BoxArrayPtr input, BoxArrayPtr target, BoxOptions options) : options_(std::move(options)) {
  const auto of_input = chosen_channels(*input, input_side(options_), options_.source);
  const auto of_target = chosen_channels(*target, target_side(options_), options_.source);
  input_ = make_side(std::move(input), of_input, options_.input_vectors);
  target_ = make_side(std::move(target), of_target, options_.target_vectors);
  check_boxes();
  spec_.input_clip = options_.input_clip, spec_.target_clip = options_.target_clip;
  spec_.input_log = options_.input_log, spec_.target_log = options_.target_log;
  spec_.input_vectors = options_.input_vectors, spec_.target_vectors = options_.target_vectors;
  add_transform(input_, input_transform(spec_), "input");
  add_transform(target_, target_transform(spec_), "target");
  spec_.has_missing = options_.missing != Missing::None;
  const bool wraps = std::ranges::all_of(options_.periodic, std::identity{});
  spec_.geometry = wraps ? Geometry::PeriodicBox : Geometry::Plane;
  spec_.input = box_array_spec(input_.of_box, input_.box->shape().channels, options_.crop, input_side(options_));
  spec_.target = box_array_spec(target_.of_box, target_.box->shape().channels, options_.crop, target_side(options_));
}

BoxDataset::Side BoxDataset::make_side(BoxArrayPtr box, const std::vector<int64_t>& of_box,
                                       const std::vector<int64_t>& vectors) const {
  Side side;
  side.channels = static_cast<int64_t>(of_box.size());
  side.of_box = of_box;
  side.box = std::move(box);
  check_vectors(vectors, side.channels, options_.source);
  for (int32_t index = 0; index < kNumOrientations; ++index) {
    const Orientation& turn = orientation(index);
    ChannelTurn turned;
    turned.from = of_box;
    turned.turned.resize(turned.from.size());
    for (size_t i = 0; i < vectors.size(); ++i) {
      const size_t component = i % 3, triple = i - component;
      const int64_t source = vectors[triple + static_cast<size_t>(turn.axis[component])];
      turned.from[static_cast<size_t>(vectors[i])] = of_box[static_cast<size_t>(source)];
      turned.turned[static_cast<size_t>(vectors[i])].negated = turn.flip[component];
    }
    side.turns.push_back(std::move(turned));
  }
  return side;
}

void BoxDataset::add_transform(Side& side, const ArrayTransform& transform, const char* name) {
  const std::vector<ChannelOp> ops = channel_ops(transform, side.channels, name);
  for (ChannelTurn& turn : side.turns) {
    turn.transformed = ops;
    for (size_t c = 0; c < ops.size(); ++c) turn.transformed[c].negated = turn.turned[c].negated;
  }
}

void BoxDataset::check_boxes() const {
  const auto& edges = input_.box->shape().extent;
  if (edges != target_.box->shape().extent) {
    throw DataError("data",
                    cat("input and target boxes differ: source=", options_.source, ", input=", extent_text(edges),
                        ", target=", extent_text(target_.box->shape().extent)),
                    "Give two arrays over the same cells");
  }
  const bool wraps = std::ranges::any_of(options_.periodic, std::identity{});
  const bool exclusive = !options_.last_start && !wraps;
  const int64_t smallest = *std::ranges::min_element(edges);
  if (options_.crop < 1 || options_.crop > smallest || (exclusive && options_.crop == smallest)) {
    throw DataError("data",
                    cat("the crop does not fit in the box: source=", options_.source, ", data_size=", options_.crop,
                        ", box=", extent_text(edges)),
                    exclusive
                        ? "crop_rule exclusive needs a box larger than the crop: reduce data_size, or drop the rule or compat"
                        : "Reduce data_size");
  }
  if (options_.num_samples < 1) {
    throw DataError("data", cat("an epoch has no samples: samples=", options_.num_samples), "Raise Nsamples or Nsamples_val");
  }
}

std::array<int64_t, 3> BoxDataset::num_starts() const {
  std::array<int64_t, 3> starts{};
  for (size_t a = 0; a < 3; ++a) {
    const int64_t edge = input_.box->shape().extent[a];
    const bool wraps = options_.periodic[a];
    const int64_t inclusive = wraps ? edge : edge - options_.crop + 1;
    starts[a] = !options_.last_start && !wraps ? inclusive - 1 : inclusive;
  }
  return starts;
}

std::array<int64_t, 3> BoxDataset::cover_origin(int64_t index) const {
  std::array<int64_t, 3> starts{}, tiles{};
  for (size_t a = 0; a < 3; ++a) {
    const int64_t edge = input_.box->shape().extent[a];
    starts[a] = edge - options_.crop + 1;
    tiles[a] = (edge + options_.crop - 1) / options_.crop;
  }
  return cover_crop(index, options_.num_samples, starts, tiles);
}

SamplePlan BoxDataset::plan(SampleKey key, const Region& wanted) const {
  SamplePlan plan;
  plan.index = key.index;
  plan.region = wanted;
  if (!options_.drawn) {
    plan.origin = cover_origin(key.index);
    return plan;
  }
  const auto starts = num_starts();
  const PhiloxBlock a = philox(key.draw, 0, 0), b = philox(key.draw, 0, 1);
  const auto drawn = [](uint32_t high, uint32_t low, int64_t bound) {
    return static_cast<int64_t>(bounded(high, low, static_cast<uint64_t>(bound)));
  };
  plan.origin = {drawn(a[0], a[1], starts[0]), drawn(a[2], a[3], starts[1]), drawn(b[0], b[1], starts[2])};
  const auto turns = orientations_of(options_.augmentation);
  plan.orientation = turns[static_cast<size_t>(drawn(b[2], b[3], static_cast<int64_t>(turns.size())))];
  return plan;
}

void BoxDataset::read(const SamplePlan& wanted, SampleView out) const {
  SamplePlan plan = wanted;
  if (!out.turned) {
    WELKIN_CHECK(plan.region.extent == whole(spec_).extent, "only whole samples are read unturned");
    plan.orientation = 0;
  }
  if (!out.input.empty()) read_side(input_, plan, out.input, out.transformed);
  if (!out.target.empty()) read_side(target_, plan, out.target, out.transformed);
}

std::string BoxDataset::location(const SamplePlan& plan) const {
  return cat("path=", options_.source, ", first_cell=", extent_text(plan.origin), ", crop=", options_.crop,
             ", index=", plan.index);
}

std::vector<std::string> BoxDataset::warnings() const {
  std::vector<std::string> lines = options_.warnings;
  if (options_.missing == Missing::Declared) lines.push_back(missing_line());
  std::vector<std::string> parts;
  for (const auto* side : {&input_, &target_}) {
    const bool is_input = side == &input_;
    const int64_t held = side->box->shape().channels;
    const bool is_named = !(is_input ? options_.in_names : options_.out_names).empty();
    if (side->channels == held || is_named) continue;
    const std::vector<std::string> names = channel_names_or_numbers(is_input ? options_.input_channels : options_.target_channels,
                                                                    held, is_input ? "input" : "target");
    const std::vector<std::string> unused(names.begin() + side->channels, names.end());
    parts.push_back(cat(is_input ? "input" : "target", " channels=", unused.size(), " of ", held, " (", join(unused, ", "), ")"));
  }
  if (!parts.empty()) {
    lines.push_back(cat("part of the data is left out: ", join(parts, ", "),
                        ". To choose: N_in_channels and N_out_channels, or in_channels and out_channels"));
  }
  return lines;
}

uint64_t BoxDataset::bytes_requested() const {
  const uint64_t input = input_.box->bytes_requested();  // of the whole file
  return input_.box->path() == target_.box->path() ? input : input + target_.box->bytes_requested();
}

std::vector<FileFingerprint> BoxDataset::fingerprints() const {
  std::vector<FileFingerprint> prints;
  for (const std::filesystem::path& path : {input_.box->path(), target_.box->path()}) {
    if (path.empty() || (!prints.empty() && input_.box->path() == path)) continue;
    prints.push_back(fingerprint_of(path));
  }
  return prints;
}

std::vector<ResidentArray> BoxDataset::arrays() const {
  const auto& extent = input_.box->shape().extent;
  return {{.channels = input_.channels, .extent = extent}, {.channels = target_.channels, .extent = extent}};
}

void BoxDataset::read_plane(int64_t array, int64_t channel, int64_t index, std::span<float> out) const {
  const Side& side = array == 0 ? input_ : target_;
  const int64_t of_box = side.of_box.at(static_cast<size_t>(channel));
  const auto& edge = side.box->shape().extent;
  side.box->read({.first = {index, 0, 0},
                  .extent = {1, edge[1], edge[2]},
                  .turn = {},
                  .channels = &of_box,
                  .num_channels = 1,
                  .to = out.data(),
                  .to_stride = {edge[1] * edge[2], edge[1] * edge[2], edge[2], 1}});
}

std::string BoxDataset::plane_location(int64_t array, int64_t channel, int64_t index) const {
  const Side& side = array == 0 ? input_ : target_;
  const ArraySpec& spec = array == 0 ? spec_.input : spec_.target;
  const auto c = static_cast<size_t>(channel);
  return cat("path=", side.box->path().string(), ", ", array == 0 ? "input" : "target", "_channel=", side.of_box.at(c), " (",
             spec.channels.at(c), "), plane=", index);
}

ResidentCrop BoxDataset::crop_of(int64_t array, const SamplePlan& plan) const {
  const Orientation& turn = orientation(plan.orientation);
  ResidentCrop cut{.array = array, .extent = plan.region.extent, .orientation = plan.orientation};
  cut.num_channels = array == 0 ? input_.channels : target_.channels;
  for (size_t a = 0; a < 3; ++a) {
    const auto axis = static_cast<size_t>(turn.axis[a]);
    const int64_t along = turn.flip[a] ? options_.crop - 1 - plan.region.begin[a] : plan.region.begin[a];
    cut.first[axis] = (plan.origin[axis] + along) % input_.box->shape().extent[axis];
  }
  return cut;
}

ResidentSample BoxDataset::crops(const SamplePlan& plan) const {
  return {.input = {crop_of(0, plan)}, .target = {crop_of(1, plan)}};
}

void BoxDataset::read_side(const Side& side, const SamplePlan& plan, std::span<float> out, bool transformed) const {
  const Orientation& turn = orientation(plan.orientation);
  const ChannelTurn& channels = side.turns[static_cast<size_t>(plan.orientation)];
  const auto& size = plan.region.extent;
  const int64_t volume = size[0] * size[1] * size[2];
  WELKIN_CHECK(static_cast<int64_t>(out.size()) == volume * side.channels, "a view of the wrong size");
  BoxPiece piece;
  piece.turn = turn;
  piece.channels = channels.from.data();
  piece.num_channels = static_cast<int64_t>(channels.from.size());
  piece.ops = (transformed ? channels.transformed : channels.turned).data();
  piece.to_stride = {volume, size[1] * size[2], size[2], 1};
  std::array<Runs, 3> runs;
  for (size_t a = 0; a < 3; ++a) {
    const auto axis = static_cast<size_t>(turn.axis[a]);
    runs[a] =
        runs_along(plan.origin[axis], options_.crop, turn.flip[a], side.box->shape().extent[axis], plan.region.begin[a], size[a]);
  }
  for (size_t part = 0; part < runs[0].count * runs[1].count * runs[2].count; ++part) {
    const std::array<size_t, 3> which{part % runs[0].count, part / runs[0].count % runs[1].count,
                                      part / runs[0].count / runs[1].count};
    piece.to = out.data();
    for (size_t a = 0; a < 3; ++a) {
      const Run& run = runs[a].run[which[a]];
      piece.first[static_cast<size_t>(turn.axis[a])] = run.first;
      piece.extent[a] = run.extent;
      piece.to += run.out_begin * piece.to_stride[a + 1];
    }
    side.box->read(piece);
  }
}

}  // namespace welkin::data
