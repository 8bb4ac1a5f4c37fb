// SPDX-License-Identifier: Apache-2.0
#include "data/online/online_data.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "config/schema/builtin_models.h"
#include "core/error.h"
#include "core/process/host.h"
#include "core/text.h"
#include "data/online/held_pairs.h"
#include "data/storage/stored_array.h"

namespace welkin::data {
namespace {

constexpr int64_t kHeldOut = 32;           // where limit_nsamples_val is not given
constexpr int64_t kBatchesPerEpoch = 100;  // where limit_nsamples is not given

std::vector<int64_t> grid_of(const config::RunConfig& config) {
  if (config::takes_boxes(config.model.model)) return std::vector<int64_t>(3, config.data.data_size);
  return config.model.img_size;
}

void add_channels(ArraySpec& array, const std::vector<std::string>& names, const std::vector<int64_t>& grid,
                  const OnlineFacts& facts, std::vector<double>& mean, std::vector<double>& std) {
  array.channels = names;
  array.shape = {static_cast<int64_t>(names.size())};
  array.shape.insert(array.shape.end(), grid.begin(), grid.end());
  for (const std::string& name : names) {
    const auto found = facts.channels.find(name);
    const OnlineFacts::Channel channel = found == facts.channels.end() ? OnlineFacts::Channel() : found->second;
    array.units.push_back(channel.unit);
    mean.push_back(channel.std > 0 ? channel.mean : 0);
    std.push_back(channel.std > 0 ? channel.std : 1);
  }
}

void check_names(const SampleSpec& spec, const OnlineFacts& facts) {
  std::vector<std::string> known = spec.input.channels;
  known.insert(known.end(), spec.target.channels.begin(), spec.target.channels.end());
  for (const auto& [name, channel] : facts.channels) {
    if (std::ranges::find(known, name) != known.end()) continue;
    throw ConfigError("online", cat("the run has no such channel: channel=", name),
                      cat("It has: ", join(std::set<std::string>(known.begin(), known.end()), ", ")));
  }
}

void check_axis(const char* name, const std::vector<double>& places, int64_t length) {
  if (places.empty() || static_cast<int64_t>(places.size()) == length) return;
  throw ConfigError("online", cat("an axis has another length than the fields: ", name, "=", places.size(), ", wanted=", length),
                    "Give one place for each row or column of img_size");
}

void check_degrees(const char* name, const std::vector<double>& places, double low, double high) {
  const auto beyond = std::ranges::find_if(places, [&](double place) { return !(place >= low && place <= high); });  // NaN too
  if (beyond == places.end()) return;
  throw ConfigError(
      "online",
      cat("no place on the globe: ", name, "[", beyond - places.begin(), "]=", *beyond, ", allowed=", low, " to ", high),
      "Give degrees; a grid of other coordinates needs none");
}

// Mean and deviation of one channel over the first pairs, on the sides that have it. Fields are summed one by one and merged as
// in Chan, Golub and LeVeque (1979).
class ChannelMoments {
 public:
  void add(std::span<const float> field) {
    double count = 0, sum = 0, squares = 0;
    for (const float value : field) {
      const bool has_value = !std::isnan(value);
      count += has_value ? 1 : 0, sum += has_value ? static_cast<double>(value) : 0;
    }
    if (count == 0) return;
    const double mean = sum / count;
    for (const float value : field) {
      const double distance = std::isnan(value) ? 0 : static_cast<double>(value) - mean;
      squares += distance * distance;
    }
    const double shift = mean - mean_, total = count_ + count;
    squares_ += squares + shift * shift * count_ * count / total;
    mean_ += shift * count / total;
    count_ = total;
  }
  double mean() const { return mean_; }
  double std() const { return count_ > 0 ? std::sqrt(squares_ / count_) : 0; }

 private:
  double count_ = 0, mean_ = 0, squares_ = 0;
};

bool has_statistics(const OnlineFacts& facts, const std::string& channel) {
  const auto found = facts.channels.find(channel);
  return found != facts.channels.end() && found->second.std > 0;
}

// Adds values after clip and logarithm.
void add_moments(const ArraySpec& array, ArrayTransform transform, const std::vector<float>& values, const OnlineFacts& facts,
                 std::map<std::string, ChannelMoments>& moments) {
  transform.mean.clear(), transform.std.clear();
  const auto ops = channel_ops(transform, array.shape.front(), "pairs");
  const size_t plane = values.size() / array.channels.size();
  std::vector<float> channel(plane);
  for (size_t c = 0; c < array.channels.size(); ++c) {
    if (has_statistics(facts, array.channels[c])) continue;
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(c * plane), plane, channel.begin());
    apply(ops[c], channel.data(), static_cast<int64_t>(plane));
    moments[array.channels[c]].add(channel);
  }
}

void use_moments(const ArraySpec& array, const OnlineFacts& facts, const std::map<std::string, ChannelMoments>& moments,
                 std::vector<double>& mean, std::vector<double>& std) {
  for (size_t c = 0; c < array.channels.size(); ++c) {
    if (has_statistics(facts, array.channels[c])) continue;
    const ChannelMoments& found = moments.at(array.channels[c]);
    mean[c] = found.mean();
    std[c] = found.std() > 0 ? found.std() : 1;  // a constant becomes 0
  }
}

void add_statistics(SampleSpec& spec, const OnlineFacts& facts, const PairStream& stream) {
  std::map<std::string, ChannelMoments> moments;
  stream.visit_first([&](const StreamedPair& pair) {
    add_moments(spec.input, input_transform(spec), pair.input, facts, moments);
    add_moments(spec.target, target_transform(spec), pair.target, facts, moments);
  });
  if (stream.given() == 0) {
    throw DataError("online", "no pair was handed over before the end was announced", "Hand over pairs before");
  }
  use_moments(spec.input, facts, moments, spec.input_mean, spec.input_std);
  use_moments(spec.target, facts, moments, spec.target_mean, spec.target_std);
}

// Pairs that are kept were normalised once, and stand on one grid.
void check_like_held(const OnlineFacts& facts, const SampleSpec& held, const std::filesystem::path& file) {
  std::string difference;
  const auto compare = [&](const ArraySpec& array, const std::vector<double>& mean, const std::vector<double>& std) {
    for (size_t c = 0; c < array.channels.size(); ++c) {
      const auto given = facts.channels.find(array.channels[c]);
      if (given == facts.channels.end()) continue;
      const OnlineFacts::Channel& channel = given->second;
      if (channel.std > 0 && (channel.mean != mean[c] || channel.std != std[c])) {
        difference = cat("channel=", array.channels[c], ", mean=", mean[c], ", std=", std[c], ", given mean=", channel.mean,
                         ", std=", channel.std);
      }
      if (!may_be_same_unit(channel.unit, array.units[c]))
        difference = cat("channel=", array.channels[c], ", unit=", array.units[c], ", given unit=", channel.unit);
    }
  };
  compare(held.input, held.input_mean, held.input_std);
  compare(held.target, held.target_mean, held.target_std);
  if (!facts.latitude.empty() && facts.latitude != held.latitude) difference = "latitudes";
  if (!facts.longitude.empty() && facts.longitude != held.longitude) difference = "longitudes";
  if (difference.empty()) return;
  throw ConfigError("online", cat("the pairs held out by an earlier run are others: path=", file.string(), ", ", difference),
                    "Leave it out, or name another folder with valid_data_path");
}

class DrawnPairs : public Dataset {
 public:
  DrawnPairs(SampleSpec spec, std::shared_ptr<PairStream> stream, int64_t size)
      : spec_(std::move(spec)), stream_(std::move(stream)), size_(size) {}

  int64_t size() const override { return size_; }
  const SampleSpec& spec() const override { return spec_; }
  SamplePlan plan(SampleKey key, const Region& wanted) const override { return {.index = key.index, .region = wanted}; }
  void read(const SamplePlan& /*plan*/, SampleView out) const override { stream_->draw(out.input, out.target); }
  std::string location(const SamplePlan& plan) const override { return cat("draw=", plan.index); }
  std::vector<std::string> describe() const override {
    const PairStreamOptions& options = stream_->options();
    const auto floats =
        static_cast<uint64_t>(whole_region(spec_.input.shape).num_values() + whole_region(spec_.target.shape).num_values());
    const auto bytes = static_cast<uint64_t>(options.pairs + options.held_out) * floats * sizeof(float);
    return {cat("Pairs of another program: at most ", options.pairs, " in memory and ", options.held_out, " held out, ",
                format_bytes(bytes), ", each used ", options.uses, options.uses == 1 ? " time" : " times")};
  }

 private:
  SampleSpec spec_;
  std::shared_ptr<PairStream> stream_;
  int64_t size_;
};

}  // namespace

SampleSpec online_spec(const config::RunConfig& config, const OnlineFacts& facts) {
  const config::DataConfig& data = config.data;
  const std::vector<int64_t> grid = grid_of(config);
  SampleSpec spec;
  add_channels(spec.input, data.in_channels, grid, facts, spec.input_mean, spec.input_std);
  add_channels(spec.target, data.out_channels.empty() ? data.in_channels : data.out_channels, grid, facts, spec.target_mean,
               spec.target_std);
  check_names(spec, facts);
  check_axis("latitude", facts.latitude, grid.at(grid.size() - 2));
  check_axis("longitude", facts.longitude, grid.back());
  check_degrees("latitude", facts.latitude, -90, 90);
  check_degrees("longitude", facts.longitude, -360, 720);
  spec.latitude = facts.latitude, spec.longitude = facts.longitude;
  if (!spec.latitude.empty()) spec.geometry = Geometry::Sphere;
  spec.input_clip = data.clip_in, spec.target_clip = data.clip_out;
  spec.input_log = data.log_channels_in, spec.target_log = data.log_channels_out;
  spec.has_missing = data.nan_policy == config::NanPolicy::Hole || data.nan_policy == config::NanPolicy::Mask;
  for (const std::string& name : spec.target.channels) {
    const auto same = std::ranges::find(spec.input.channels, name);
    spec.earlier_target.push_back(same == spec.input.channels.end() ? -1 : std::distance(spec.input.channels.begin(), same));
  }
  for (size_t c = 0; c < spec.input.channels.size(); ++c) {
    const bool is_predicted = std::ranges::find(spec.target.channels, spec.input.channels[c]) != spec.target.channels.end();
    if (!is_predicted) spec.known_input.push_back(static_cast<int64_t>(c));
  }
  return spec;
}

std::filesystem::path held_out_file(const config::RunConfig& config) {
  const std::string& folder = config.data.valid_data_path;
  return folder.empty() ? std::filesystem::path() : std::filesystem::path(folder) / "pairs.h5";
}

PairStreamOptions stream_options(const config::RunConfig& config) {
  const std::filesystem::path file = held_out_file(config);
  const bool holds_out = file.empty() || !std::filesystem::exists(file);
  return {.pairs = config.data.online_pairs,
          .batch = config.loop.global_batch_size,
          .uses = config.data.online_uses,
          .held_out = holds_out ? config.data.limit_nsamples_val.value_or(kHeldOut) : 0,
          .seed = config.loop.seed};
}

std::unique_ptr<Dataset> open_online(const config::RunConfig& config, Split split, const OnlineFacts& facts,
                                     const std::shared_ptr<PairStream>& stream) {
  SampleSpec spec = online_spec(config, facts);
  const std::filesystem::path file = held_out_file(config);
  const bool has_file = !file.empty() && std::filesystem::exists(file);
  if (split != Split::Train && has_file) return std::make_unique<HeldPairs>(read_held_pairs(file, std::move(spec)));
  if (!stream) {
    throw ConfigError(
        "online",
        split == Split::Train
            ? "no program provides pairs: dataset=online"
            : cat("the pairs held out were not kept: valid_data_path=", config.data.valid_data_path, ", file=pairs.h5"),
        split == Split::Train ? "Such a run is started by a program, with welkin_train_open() (guide: coupling)"
                              : "Name a folder for them with valid_data_path before the run begins");
  }
  if (has_file) {
    spec = read_held_spec(file, std::move(spec));
    check_like_held(facts, spec, file);
  } else {
    stream->wait_for_first();
    add_statistics(spec, facts, *stream);
  }
  if (split == Split::Train) {
    const int64_t draws = config.data.limit_nsamples.value_or(kBatchesPerEpoch * config.loop.global_batch_size);
    return std::make_unique<DrawnPairs>(std::move(spec), stream, draws);
  }
  if (!file.empty()) {
    std::filesystem::create_directories(file.parent_path());
    write_held_pairs(file, spec, stream->held_out());
  }
  return std::make_unique<HeldPairs>(std::move(spec),
                                     std::shared_ptr<const std::vector<StreamedPair>>(stream, &stream->held_out()));
}

}  // namespace welkin::data
