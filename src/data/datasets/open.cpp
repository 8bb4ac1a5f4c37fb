// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/open.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "config/draft/channel_settings.h"
#include "config/schema/builtin_models.h"
#include "core/error.h"
#include "core/philox.h"
#include "core/text.h"
#include "data/cf/time_span.h"
#include "data/datasets/box_dataset.h"
#include "data/datasets/channel_scaling.h"
#include "data/datasets/era5_dataset.h"
#include "data/datasets/field_source.h"
#include "data/datasets/synthetic_fields.h"
#include "data/formats/array_file.h"
#include "data/sample/channels/forcing.h"
#include "data/sample/mixture.h"

namespace welkin::data {
namespace {

bool is_synthetic(const config::RunConfig& config) { return config.data.data_loader_config == config::Loader::Synthetic; }

const std::string& need_path(const std::string& path, std::string_view key) {
  if (!path.empty()) return path;
  throw ConfigError("data", cat("no path is given: key=", key), cat("Give it in the file or with --set ", key, "=PATH"));
}

// First and last date of a split, and the key that gives them.
std::pair<const std::vector<std::string>*, const char*> times_of_split(const config::DataConfig& data, Split split) {
  switch (split) {
    case Split::Train:
      return {&data.train_times, "train_times"};
    case Split::Valid:
      return {&data.valid_times, "valid_times"};
    case Split::Test:
      break;
  }
  return {&data.test_times, "test_times"};
}

// The statistics of training are applied by the place of a channel, so files of another order would be wrong without an error.
// An absent folder of training files is not compared.
void check_like_training(const config::RunConfig& config, const Era5Options& options, Split split) {
  if (split == Split::Train || config.data.train_data_path.empty()) return;
  const Era5Options training = fields_options(config, Split::Train);
  std::error_code error;
  if (training.folder == options.folder || !std::filesystem::exists(training.folder, error)) return;
  const auto file = open_first_field_file(options.source()), first = open_first_field_file(training.source());
  const std::string difference = difference_between(first->facts(), file->facts());
  if (difference.empty()) return;
  throw DataError("data",
                  cat("these files differ from those of training: path=", file->facts().path.string(),
                      ", training=", first->facts().path.string(), ", difference in ", difference),
                  "Make both alike: welkin data ingest makes all parts at once");
}

bool is_given(const config::DataConfig& data, Split split) {
  if (!data.datasets.empty() || split == Split::Train)
    return split == Split::Train || !times_of_split(data, split).first->empty();
  return !times_of_split(data, split).first->empty() ||
         !(split == Split::Valid ? data.valid_data_path : data.inf_data_path).empty();
}

std::string times_text(const Era5Options& options) {
  return cat(options.times_key, "=", options.times.empty() ? "all" : cat("[", join(options.times, ", "), "]"));
}

// Only times tell the splits of one archive apart. A time in two of them would be trained on and then scored.
void check_apart(const config::RunConfig& config, const Era5Options& options, Split split, const FieldFacts& facts) {
  if (options.variables.empty()) return;
  const Calendar calendar = parse_calendar(facts.calendar);
  const TimeSpan span = time_span(options.times, calendar, options.times_key);
  for (const Split other : {Split::Train, Split::Valid, Split::Test}) {
    if (other == split || !is_given(config.data, other)) continue;
    const Era5Options theirs = fields_options(config, other);
    if (theirs.folder.lexically_normal() != options.folder.lexically_normal()) continue;
    const TimeSpan taken = time_span(theirs.times, calendar, theirs.times_key);
    if (span.begin >= taken.end || taken.begin >= span.end) continue;
    throw ConfigError("data",
                      cat("two parts of one archive have times in common: ", times_text(options), ", ", times_text(theirs),
                          ", archive=", options.folder.string()),
                      "Let one end before the other begins; each date stands for all of its year, month, day or hour");
  }
}

std::unique_ptr<Dataset> open_era5(const config::RunConfig& config, Split split) {
  const Era5Options options = fields_options(config, split);
  check_like_training(config, options, split);
  std::shared_ptr<const ExtraChannels> extra;
  if (!config.data.forcing.empty()) {
    GridFacts grid = read_grid_facts(options);
    extra = std::make_shared<ForcingChannels>(config.data.forcing, std::move(grid.latitude), std::move(grid.longitude),
                                              parse_calendar(grid.calendar));
  }
  auto dataset = std::make_unique<Era5Dataset>(options, std::move(extra));
  check_apart(config, options, split, dataset->file(0));
  return dataset;
}

// Samples of the tutorials' six-hourly year, when no limit is given.
constexpr int64_t kSyntheticSamples = 1460;

std::unique_ptr<Dataset> make_synthetic_fields(const config::RunConfig& config, Split split) {
  const auto& model = config.model;
  const int64_t height = model.img_size.at(0), width = model.img_size.at(1);
  if (model.n_in_channels == 0 || model.n_out_channels == 0) {
    throw ConfigError("data",
                      cat("no files say how many channels synthetic fields have: n_in_channels=", model.n_in_channels,
                          ", n_out_channels=", model.n_out_channels),
                      "Give both numbers");
  }
  const int64_t in_channels = config.data.history * model.n_in_channels;
  SampleSpec spec;
  spec.geometry = Geometry::Sphere;
  const auto name = [](const std::vector<std::string>& names, int64_t c) {
    return names.empty() ? cat("channel", c) : names[static_cast<size_t>(c) % names.size()];
  };
  for (int64_t c = 0; c < in_channels; ++c) spec.input.channels.push_back(name(config.data.in_channels, c));
  for (int64_t c = 0; c < model.n_out_channels; ++c) spec.target.channels.push_back(name(config.data.out_channels, c));
  spec.input.units.resize(spec.input.channels.size());
  spec.target.units.resize(spec.target.channels.size());
  spec.input.shape = {in_channels, height, width};
  spec.target.shape = {model.n_out_channels, height, width};
  spec.newest_input_channel = in_channels - model.n_in_channels;
  const auto& limit = split == Split::Train ? config.data.limit_nsamples : config.data.limit_nsamples_val;
  const uint64_t seed = config.loop.seed + (split == Split::Train ? 0 : 1);
  return std::make_unique<SyntheticFields>(std::move(spec), limit.value_or(kSyntheticSamples), seed);
}

struct BoxPair {
  BoxArrayPtr input, target;
};

// One flag for all axes, or one per axis; numbers or texts (welkin data ingest writes texts).
std::optional<std::array<bool, 3>> periodic_axes(const ArrayFile& file) {
  std::vector<bool> flags;
  for (const auto& text : file.texts("Nbody", "periodic")) flags.push_back(text == "1");
  for (const double value : file.numbers("Nbody", "periodic")) flags.push_back(value != 0);
  if (flags.empty()) return std::nullopt;
  if (flags.size() == 1) flags.resize(3, flags.front());
  if (flags.size() != 3) {
    throw DataError("data",
                    cat("an attribute of the wrong size: file=", file.path.string(),
                        ", dataset=Nbody, attribute=periodic, size=", flags.size()),
                    "Give one flag, or one per axis");
  }
  return std::array<bool, 3>{flags[0], flags[1], flags[2]};
}

void add_attributes(const ArrayFile& file, BoxOptions& options) {
  options.input_channels = file.texts("Nbody", "channels");
  options.target_channels = file.texts("Hydro", "channels");
  options.input_units = file.texts("Nbody", "units");
  options.target_units = file.texts("Hydro", "units");
  options.input_scaling = scaling_of(file, "Nbody");
  options.target_scaling = scaling_of(file, "Hydro");
  if (options.last_start) options.periodic = periodic_axes(file).value_or(options.periodic);
}

// Number of channels of the file, to tell its axes apart: as many as it names, else as many as are wanted.
int64_t num_channels(int64_t wanted, const std::vector<std::string>& names) {
  return names.empty() ? wanted : static_cast<int64_t>(names.size());
}

BoxPair open_box_file(const std::string& path, bool in_memory, BoxOptions& options) {
  options.source = path;
  const ArrayFile file = open_array_file(path);
  options.missing = std::max(file.array("Nbody")->facts().missing, file.array("Hydro")->facts().missing);
  add_attributes(file, options);
  BoxPair pair{open_box(file, "Nbody", ChannelAxis::First, num_channels(options.in_channels, options.input_channels)),
               open_box(file, "Hydro", ChannelAxis::First, num_channels(options.out_channels, options.target_channels))};
  if (in_memory) pair = {load_box(*pair.input), load_box(*pair.target)};
  return pair;
}

constexpr int64_t kSyntheticEdge = 128;

BoxPair make_normal_boxes(const config::RunConfig& config, bool train, BoxOptions& options) {
  options.source = "synthetic";
  options.input_channels = options.in_names, options.target_channels = options.out_names;
  // The box's edge does not change the shape of a sample. A small box avoids a wait for 40 GB of normals.
  const int64_t enough = std::max<int64_t>(kSyntheticEdge, 2 * config.data.data_size);
  const int64_t edge = std::min(enough, config.data.box_size.at(train ? 0 : 1));
  const uint64_t seed = 2 * config.loop.seed + (train ? 0 : 1);
  const std::array<int64_t, 3> extent{edge, edge, edge};
  return {make_normal_box({config.model.N_in_channels, extent}, stream_key(seed, "input")),
          make_normal_box({config.model.N_out_channels, extent}, stream_key(seed, "target"))};
}

BoxPair open_boxes(const config::RunConfig& config, bool train, BoxOptions& options) {
  const config::DataConfig& data = config.data;
  const std::optional<config::Loader> kind = data.data_loader_config;
  if (kind == config::Loader::Synthetic) return make_normal_boxes(config, train, options);
  if (kind == config::Loader::DaliLowMem) {
    options.source = train ? need_path(data.train_path_npy_data, "train_path_npy_data")
                           : need_path(data.val_path_npy_data, "val_path_npy_data");
    const std::string& label = train ? need_path(data.train_path_npy_label, "train_path_npy_label")
                                     : need_path(data.val_path_npy_label, "val_path_npy_label");
    const ArrayFile input = open_array_file(options.source), target = open_array_file(label);
    options.missing = std::max(input.array("Nbody")->facts().missing, target.array("Hydro")->facts().missing);
    BoxPair pair{open_box(input, "Nbody", ChannelAxis::Last, options.in_channels),
                 open_box(target, "Hydro", ChannelAxis::Last, options.out_channels)};
    if (data.resident != config::Residence::Host) return pair;
    return {load_box(*pair.input), load_box(*pair.target)};
  }
  const std::string& path = train ? need_path(data.train_path, "train_path") : need_path(data.val_path, "val_path");
  return open_box_file(path, kind == config::Loader::InMem || data.resident == config::Residence::Host, options);
}

// The file's edge counts. The key's defaults are the tutorials' 1024 and 512, so they are no contradiction.
std::string check_box_size(const config::DataConfig& data, bool train, const BoxArray& box, const std::string& source) {
  const int64_t edge = data.box_size.at(train ? 0 : 1);
  const auto& extent = box.shape().extent;
  const bool holds_crop = *std::ranges::min_element(extent) >= data.data_size;  // otherwise another error follows
  if (std::ranges::count(extent, edge) > 0 || !holds_crop) return {};
  const std::string what =
      cat("box_size=[", join(data.box_size, ", "), "], ", train ? "training" : "validation", " box=", join(extent, " x "));
  if (data.box_size == config::DataConfig{}.box_size)
    return cat("the box is not as large as box_size says: ", what, ". The file's edge holds");
  throw DataError("data", cat("box_size contradicts the file: ", what, ", path=", source),
                  cat("Set box_size to the edges of the training and the validation box, or leave it out"));
}

const char* folder_of_split(Split split) { return split == Split::Train ? "train" : split == Split::Valid ? "valid" : "test"; }

std::filesystem::path first_of_several(const config::DataConfig& data) {
  return config::parse_data_set(data.datasets.front()).value().folder;
}

// True if variables are named. Among several data sets, one with a folder `train` has training files nevertheless.
bool is_archive(const config::DataConfig& data) {
  if (data.variables.empty()) return false;
  return data.datasets.empty() || !std::filesystem::exists(first_of_several(data) / folder_of_split(Split::Train));
}

// An archive among several data sets holds the times of all splits, so only times tell the splits apart.
std::string archive_of_split(const config::DataConfig& data, Split split) {
  const auto& [times, key] = times_of_split(data, split);
  if (split == Split::Train || !times->empty()) return first_of_several(data).string();
  throw ConfigError(
      "data", cat("nothing says which times of an archive are of this split: key=", key, ", archive=", data.datasets.front()),
      cat("Give its first and last date, as in ", key, ": [2016, 2017]"));
}

// One archive has all times: it need not be named thrice. With several data sets, the path is that of the first one.
std::string path_of_split(const config::DataConfig& data, Split split) {
  if (!data.datasets.empty()) {
    return is_archive(data) ? archive_of_split(data, split) : (first_of_several(data) / folder_of_split(split)).string();
  }
  if (split == Split::Train) return need_path(data.train_data_path, "train_data_path");
  const std::string& own = split == Split::Valid ? data.valid_data_path : data.inf_data_path;
  const bool is_of_training = own.empty() && !times_of_split(data, split).first->empty();
  return is_of_training ? path_of_split(data, Split::Train)
                        : need_path(own, split == Split::Valid ? "valid_data_path" : "inf_data_path");
}

// What the edges of a field must be divisible by.
int64_t edge_multiple(const config::ModelConfig& model) {
  constexpr int64_t kUsualScales = 4;
  if (model.model == "unet2d") return int64_t{1} << (model.scales > 0 ? model.scales : kUsualScales);
  return config::is_one_of(model.model, "vit|afno|swin") ? model.patch_size : 1;
}

}  // namespace

Era5Options fields_options(const config::RunConfig& config, Split split) {
  const config::DataConfig& data = config.data;
  const auto& img_size = config.model.img_size;
  Era5Options options;
  options.folder = path_of_split(data, split);
  options.height = img_size.at(0);
  options.width = img_size.at(1);
  options.multiple = edge_multiple(config.model);
  options.lead = data.dt;
  options.history = data.history;
  if (!data.crop.empty()) options.crop = {data.crop.at(0), data.crop.at(1)};
  options.crop_latitude = data.crop_lat, options.crop_longitude = data.crop_lon;
  options.in_channels = config.model.n_in_channels;
  options.out_channels = config.model.n_out_channels;
  options.in_names = data.in_channels, options.out_names = data.out_channels;
  if (split == Split::Train) options.limit = data.limit_nsamples;
  if (split == Split::Valid) options.limit = data.limit_nsamples_val;
  options.means = need_path(data.global_means_path, "global_means_path");
  options.stds = need_path(data.global_stds_path, "global_stds_path");
  options.channel_names = data.channel_names;
  options.input_clip = data.clip_in, options.target_clip = data.clip_out;
  options.input_log = data.log_channels_in, options.target_log = data.log_channels_out;
  options.roles = data.roles, options.hole_fill = data.hole_fill, options.normalization = data.normalization;
  options.hold = data.resident == config::Residence::Host;
  options.time = {data.time_units, data.time_calendar};
  if (is_archive(data) || data.datasets.empty()) {
    options.variables = data.variables, options.levels = data.levels;
    const auto times = times_of_split(data, split);
    options.times = *times.first, options.times_key = times.second;
  }
  options.rules = config.rules.pair_rule == config::PairRule::FirstFile ? Rules::Tutorial : Rules::Corrected;
  return options;
}

std::unique_ptr<Dataset> open_boxes(const config::RunConfig& config, Split split) {
  const config::DataConfig& data = config.data;
  if (split == Split::Test) {
    throw ConfigError("data", "no key names a box for the test: split=test, dataset=nbody",
                      "Score another box as the validation's: --split valid --set val_path=PATH");
  }
  const bool train = split == Split::Train;
  BoxOptions options;
  options.crop = data.data_size;
  options.num_samples = train ? data.Nsamples : data.Nsamples_val;
  options.drawn = train || (split == Split::Valid && config.rules.validation_rule == config::ValidationRule::Drawn);
  options.last_start = config.rules.crop_rule != config::CropRule::Exclusive;
  options.augmentation = data.augment;
  options.in_channels = config.model.N_in_channels;
  options.out_channels = config.model.N_out_channels;
  options.in_names = data.in_channels, options.out_names = data.out_channels;
  options.input_vectors = data.vector_channels_in;
  options.target_vectors = data.vector_channels_out;
  options.input_clip = data.clip_in, options.target_clip = data.clip_out;
  options.input_log = data.log_channels_in, options.target_log = data.log_channels_out;
  BoxPair boxes = open_boxes(config, train, options);
  if (data.data_loader_config != config::Loader::Synthetic) {
    if (std::string note = check_box_size(data, train, *boxes.input, options.source); !note.empty()) {
      options.warnings.push_back(std::move(note));
    }
  }
  if (!data.channel_names.empty()) options.target_channels = data.channel_names;
  return std::make_unique<BoxDataset>(std::move(boxes.input), std::move(boxes.target), std::move(options));
}

namespace {

// The run with one data set of its mixture. It gets a weight because its name may hold another equals sign.
config::RunConfig with_data_set(config::RunConfig config, const std::string& folder) {
  config.data.datasets = {cat(folder, "=1")};
  return config;
}

void require_archive(const config::RunConfig& config) {
  const auto is_one = [&](const std::string& entry) {
    return is_archive(with_data_set(config, config::parse_data_set(entry).value().folder).data);
  };
  if (config.data.variables.empty() || std::ranges::any_of(config.data.datasets, is_one)) return;
  throw ConfigError("data",
                    cat("none of the data sets is an archive, of which variables could be chosen: variables=[",
                        join(config.data.variables, ", "), "], datasets=[", join(config.data.datasets, ", "), "]"),
                    "Leave variables out, and choose channels with in_channels; a folder with a folder train has training files");
}

// Folders of training files and archives, each with the keys of the run but for the paths. The number of training samples is
// limited for all together.
std::unique_ptr<Dataset> open_mixture(const config::RunConfig& config, Split split) {
  require_archive(config);
  std::vector<MixturePart> parts;
  for (const std::string& entry : config.data.datasets) {
    const config::WeightedFolder folder = config::parse_data_set(entry).value();
    config::RunConfig one = with_data_set(config, folder.folder);
    if (split == Split::Train) one.data.limit_nsamples.reset();
    parts.push_back({.name = std::filesystem::path(folder.folder).filename().string(),
                     .weight = folder.weight,
                     .dataset = open_era5(one, split)});
  }
  const bool is_drawn = split == Split::Train;
  return std::make_unique<Mixture>(std::move(parts), is_drawn ? Mixture::Order::Drawn : Mixture::Order::EverySample,
                                   is_drawn ? config.data.limit_nsamples.value_or(0) : 0);
}

}  // namespace

std::unique_ptr<Dataset> open_fields(const config::RunConfig& config, Split split) {
  if (!is_synthetic(config) && !config.data.datasets.empty()) return open_mixture(config, split);
  return is_synthetic(config) ? make_synthetic_fields(config, split) : open_era5(config, split);
}

}  // namespace welkin::data
