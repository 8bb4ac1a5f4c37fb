// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/open.h"

#include <gmock/gmock.h>

#include "core/error.h"
#include "data/formats/npy_file.h"
#include "data_files.h"

namespace welkin::data::tests {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

config::RunConfig field_config(const DataFolder& folder) {
  config::RunConfig config;
  config.model.model = "vit";
  config.model.img_size = {4, 4};
  config.model.n_in_channels = config.model.n_out_channels = 2;
  config.data.dataset = "era5";
  config.data.train_data_path = (folder / "train").string();
  config.data.valid_data_path = (folder / "valid").string();
  config.data.inf_data_path = (folder / "test").string();
  config.data.global_means_path = (folder / "means.npy").string();
  config.data.global_stds_path = (folder / "stds.npy").string();
  return config;
}

void write_field_tree(const DataFolder& folder) {
  int64_t steps = 4;
  for (const char* split : {"train", "valid", "test"}) {
    std::filesystem::create_directory(folder / split);
    std::vector<int64_t> time;
    for (int64_t i = 0; i < steps; ++i) time.push_back(i * 3600);
    write_field_file(folder / split / "2001.h5", {.steps = steps++, .time = time});
  }
  write_npy(folder / "means.npy", {1, 2, 1, 1}, counting(2));
  write_npy(folder / "stds.npy", {1, 2, 1, 1}, std::vector<float>{1, 2});
}

TEST(OpenTest, FieldsBySplit) {
  const DataFolder folder;
  write_field_tree(folder);
  config::RunConfig config = field_config(folder);
  EXPECT_EQ(open_fields(config, Split::Train)->size(), 3);
  EXPECT_EQ(open_fields(config, Split::Valid)->size(), 4);
  EXPECT_EQ(open_fields(config, Split::Test)->size(), 5);
  config.data.limit_nsamples = 2;
  config.data.limit_nsamples_val = 1;
  EXPECT_EQ(open_fields(config, Split::Train)->size(), 2);
  EXPECT_EQ(open_fields(config, Split::Valid)->size(), 1);
  EXPECT_EQ(open_fields(config, Split::Test)->size(), 5);
  config.data.history = 2;
  config.data.forcing = {"calendar"};
  EXPECT_THAT(open_fields(config, Split::Train)->spec().input.shape, ElementsAre(2 * 2 + 4, 4, 4));
  config.rules.pair_rule = config::PairRule::FirstFile;
  EXPECT_THROW(open_fields(config, Split::Train), ConfigError) << "the tutorials know no history";
}

// Times without units train; what needs dates asks for them, and the key gives them.
TEST(OpenTest, ForcingNeedsTimesWithUnits) {
  const DataFolder folder;
  write_field_tree(folder);
  write_field_file(folder / "train/2001.h5", {.time = {0, 6, 12, 18, 24, 30}, .time_units = ""});
  config::RunConfig config = field_config(folder);
  EXPECT_EQ(open_fields(config, Split::Train)->size(), 5);
  config.data.forcing = {"calendar"};
  EXPECT_THAT(
      [&] { open_fields(config, Split::Train); },
      ThrowsMessage<DataError>(HasSubstr("the times of a file have no units: path=" + (folder / "train/2001.h5").string())));
  config.data.time_units = "hours since 2017-01-01";
  config.data.time_calendar = "noleap";
  EXPECT_EQ(open_fields(config, Split::Train)->spec().input.shape[0], 2 + 4);
}

// Names of axes that say nothing leave the channels where their number is.
TEST(OpenTest, ChannelsOfABoxAreFoundBesideAxesOfAnyName) {
  const DataFolder folder;
  Hdf5File file = Hdf5File::create(folder / "box.h5");
  for (const auto& [name, channels] : std::map<std::string, int64_t>{{"Nbody", 4}, {"Hydro", 5}}) {
    file.create_dataset(name, {.shape = {8, 8, 8, channels}, .chunk = {}});
    file.write(name, {0, 0, 0, 0}, {8, 8, 8, channels}, std::span<const float>(counting(512 * channels)));
    file.set_strings(name, "axes", {"dim_0", "dim_1", "dim_2", "dim_3"});
  }
  file.close();
  config::RunConfig config;
  config.model.model = "unet3d";
  config.data.data_size = 4;
  config.data.box_size = {8, 8};
  config.data.train_path = (folder / "box.h5").string();
  EXPECT_THAT(open_boxes(config, Split::Train)->spec().input.shape, ElementsAre(4, 4, 4, 4));
}

TEST(OpenTest, BoxesOfEveryLoaderKindAreOfOneShape) {
  const DataFolder folder;
  write_box_file(folder / "box.h5", 8);
  NpyWriter data(folder / "data.npy", Dtype::F32, {8, 8, 8, 4}), label(folder / "label.npy", Dtype::F32, {8, 8, 8, 5});
  data.append(counting(4 * 512));
  label.append(counting(5 * 512));
  data.close();
  label.close();
  config::RunConfig config;
  config.model.model = "unet3d";
  config.data.data_size = 4;
  config.data.box_size = {8, 8};
  config.data.Nsamples = 10;
  config.data.Nsamples_val = 6;
  config.data.train_path = config.data.val_path = (folder / "box.h5").string();
  config.data.train_path_npy_data = config.data.val_path_npy_data = (folder / "data.npy").string();
  config.data.train_path_npy_label = config.data.val_path_npy_label = (folder / "label.npy").string();
  using config::Loader;
  for (const Loader loader : {Loader::LowMem, Loader::InMem, Loader::DaliLowMem, Loader::Synthetic}) {
    config.data.data_loader_config = loader;
    const std::string_view kind = name_of(loader);
    const auto train = open_boxes(config, Split::Train), valid = open_boxes(config, Split::Valid);
    EXPECT_EQ(train->size(), 10) << kind;
    EXPECT_EQ(valid->size(), 6) << "synthetic validation must not use Nsamples: " << kind;
    EXPECT_THAT(train->spec().input.shape, ElementsAre(4, 4, 4, 4)) << kind;
    EXPECT_THAT(train->spec().target.shape, ElementsAre(5, 4, 4, 4)) << kind;
    EXPECT_NE(train->plan({0, 1}, {}).origin, train->plan({0, 3}, {}).origin) << kind;
    EXPECT_EQ(valid->plan({0, 1}, {}).origin, valid->plan({0, 3}, {}).origin) << kind;
  }
}

TEST(OpenTest, ABoxOfAnotherEdgeThanTheFileIsAnErrorWhereSomebodyWroteIt) {
  const DataFolder folder;
  write_box_file(folder / "box.h5", 8);
  config::RunConfig config;
  config.model.N_in_channels = 3, config.model.N_out_channels = 2;
  config.data.data_size = 4;
  config.data.train_path = config.data.val_path = (folder / "box.h5").string();
  const std::string left_out =
      "part of the data is left out: input channels=1 of 4 (input3), target channels=3 of 5 (target2, target3, target4). To "
      "choose: N_in_channels and N_out_channels, or in_channels and out_channels";
  EXPECT_THAT(
      open_boxes(config, Split::Train)->warnings(),
      ElementsAre("the box is not as large as box_size says: box_size=[1024, 512], training box=8 x 8 x 8. The file's edge "
                  "holds",
                  left_out));
  config.data.box_size = {8, 16};
  EXPECT_THAT(open_boxes(config, Split::Train)->warnings(), ElementsAre(left_out));
  EXPECT_THAT(
      [&] { open_boxes(config, Split::Valid); },
      ThrowsMessage<DataError>(HasSubstr("[data] box_size contradicts the file: box_size=[8, 16], validation box=8 x 8 x 8, "
                                         "path=" +
                                         (folder / "box.h5").string() + ". Set box_size to the edges")));
  config.data.data_loader_config = config::Loader::Synthetic;
  EXPECT_TRUE(open_boxes(config, Split::Valid)->warnings().empty());
}

// box.h5 with boxes of `channels` channels and of this edge, still open for attributes.
Hdf5File new_box_file(const DataFolder& folder, int64_t channels, int64_t edge) {
  Hdf5File file = Hdf5File::create(folder / "box.h5");
  for (const char* name : {"Nbody", "Hydro"}) {
    file.create_dataset(name, {.shape = {channels, edge, edge, edge}});
    file.write(name, {0, 0, 0, 0}, {channels, edge, edge, edge}, std::span<const float>(counting(channels * edge * edge * edge)));
  }
  return file;
}

// One channel of it.
config::RunConfig box_config(const DataFolder& folder) {
  config::RunConfig config;
  config.data.dataset = "nbody";
  config.model.N_in_channels = config.model.N_out_channels = 1;
  config.data.data_size = 4;
  config.data.train_path = (folder / "box.h5").string();
  return config;
}

TEST(OpenTest, AFileMaySayThatItIsPeriodic) {
  const DataFolder folder;
  Hdf5File file = new_box_file(folder, 1, 4);
  file.set_integer("Nbody", "periodic", 1);
  file.set_strings("Hydro", "channels", {"overdensity"});
  file.close();
  const auto dataset = open_boxes(box_config(folder), Split::Train);
  EXPECT_EQ(dataset->spec().geometry, Geometry::PeriodicBox);
  EXPECT_THAT(dataset->spec().target.channels, ElementsAre("overdensity"));
}

// Values of a sample that is the whole box, as it lies.
std::vector<float> whole_input(const Dataset& dataset) {
  std::vector<float> input(dataset.spec().input.channels.size() * 64), target(dataset.spec().target.channels.size() * 64);
  dataset.read(dataset.plan({0, 0}, whole(dataset.spec())), {input, target});
  return input;
}

TEST(OpenTest, ChannelsOfABoxAreChosenByName) {
  const DataFolder folder;
  Hdf5File file = new_box_file(folder, 3, 4);
  file.set_strings("Nbody", "channels", {"a", "b", "c"});
  file.set_strings("Nbody", "units", {"K", "m", "s"});
  file.set_strings("Hydro", "transform", {"log10", "identity", "log10"});
  file.set_numbers("Hydro", "offset", {0, 1, 2});
  file.set_numbers("Hydro", "scale", {1, 2, 3});
  file.close();
  config::RunConfig config = box_config(folder);
  config.data.val_path = config.data.train_path;
  config.data.box_size = {4, 4};
  config.model.N_in_channels = 2;
  config.data.in_channels = {"c", "a"};
  config.data.out_channels = {"target1"};  // without names they have numbers
  const auto dataset = open_boxes(config, Split::Valid);
  EXPECT_THAT(dataset->spec().input.channels, ElementsAre("c", "a"));
  EXPECT_THAT(dataset->spec().input.units, ElementsAre("s", "K"));
  ASSERT_EQ(dataset->spec().target.scaling.size(), 1u);
  EXPECT_EQ(dataset->spec().target.scaling[0].scale, 2);
  EXPECT_THAT(dataset->warnings(), ElementsAre()) << "what is left out was not chosen";
  const std::vector<float> values = whole_input(*dataset), stored = counting(3 * 64);
  const std::vector<float> c(stored.begin() + 128, stored.end()), a(stored.begin(), stored.begin() + 64);
  EXPECT_EQ(std::vector<float>(values.begin(), values.begin() + 64), c);
  EXPECT_EQ(std::vector<float>(values.begin() + 64, values.end()), a);
  std::vector<float> plane(16);
  dataset->resident()->read_plane(/*array=*/0, /*channel=*/0, /*index=*/0, plane);
  EXPECT_EQ(plane, std::vector<float>(c.begin(), c.begin() + 16));
  EXPECT_THAT(dataset->resident()->plane_location(0, 0, 3), HasSubstr("input_channel=2 (c), plane=3"));
  config.data.in_channels = {"c", "d"};
  EXPECT_THAT([&] { open_boxes(config, Split::Valid); },
              ThrowsMessage<ConfigError>(HasSubstr("[data] the file has no such channel: in_channels=d, path=" +
                                                   (folder / "box.h5").string() + ". Choose from: a, b, c")));
}

// `offsets` as text, as welkin data ingest writes them; `scales` as numbers.
config::RunConfig scaled_box_config(const DataFolder& folder, const std::vector<std::string>& offsets,
                                    const std::vector<double>& scales) {
  Hdf5File file = new_box_file(folder, 2, 8);
  file.set_strings("Hydro", "transform", {"log10", "identity"});
  file.set_strings("Hydro", "offset", offsets);
  file.set_numbers("Hydro", "scale", scales);
  file.set_numbers("Nbody", "scale", {64});  // alone it may mean anything
  file.close();
  return box_config(folder);
}

TEST(OpenTest, AFileMaySayHowItWasScaled) {
  const DataFolder folder;
  const auto dataset = open_boxes(scaled_box_config(folder, {"-30.5", "1e3"}, {0.25, 2}), Split::Train);
  EXPECT_TRUE(dataset->spec().input.scaling.empty());
  const auto& scaling = dataset->spec().target.scaling;
  ASSERT_EQ(scaling.size(), 1u);  // of the channels in use
  EXPECT_EQ(scaling[0].transform, "log10");
  EXPECT_EQ(scaling[0].offset, -30.5);
  EXPECT_EQ(scaling[0].scale, 0.25);
}

TEST(OpenTest, AScalingThatFitsNothingIsRefused) {
  const DataFolder folder;
  const auto refuses = [&](const std::vector<std::string>& offsets, const std::vector<double>& scales, const char* text) {
    EXPECT_THAT([&] { open_boxes(scaled_box_config(folder, offsets, scales), Split::Train); },
                ThrowsMessage<DataError>(HasSubstr(text)));
  };
  refuses({"1"}, {1, 1}, "dataset=Hydro, channels=2, transforms=2, offsets=1, scales=2");
  refuses({"1", "two"}, {1, 1}, "attributes that do not say how the values were scaled");
  refuses({"1", "2"}, {1, 0}, "channel=1, offset=2, scale=0. Make the file again");
}

TEST(OpenTest, SyntheticFieldsNeedNoFile) {
  config::RunConfig config;
  config.data.dataset = "era5";
  config.data.data_loader_config = config::Loader::Synthetic;
  config.model.img_size = {8, 8};
  config.model.n_in_channels = config.model.n_out_channels = 3;
  config.data.limit_nsamples = 5;
  const auto dataset = open_fields(config, Split::Train);
  EXPECT_EQ(dataset->size(), 5);
  std::vector<float> a(192), b(192), target(192);
  dataset->read(dataset->plan({0, 0}, whole(dataset->spec())), {a, target});
  dataset->read(dataset->plan({1, 0}, whole(dataset->spec())), {b, target});
  EXPECT_NE(a, b);
}

TEST(OpenTest, MissingPathsAreNamed) {
  const config::RunConfig config;
  EXPECT_THAT([&] { open_fields(config, Split::Valid); },
              ThrowsMessage<ConfigError>(HasSubstr("no path is given: key=valid_data_path")));
}

}  // namespace
}  // namespace welkin::data::tests
