// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/box_dataset.h"

#include <gmock/gmock.h>

#include <cmath>
#include <set>

#include "core/error.h"
#include "data/formats/array_file.h"
#include "data/formats/npy_file.h"
#include "data_files.h"

namespace welkin::data::tests {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

struct DrawnCrop {
  std::vector<float> input, target;
};

DrawnCrop read_crop(const Dataset& dataset, const SamplePlan& plan) {
  int64_t volume = 1;
  for (const int64_t extent : plan.region.extent) volume *= extent;
  DrawnCrop crop;
  crop.input.resize(static_cast<size_t>(dataset.spec().input.shape[0] * volume));
  crop.target.resize(static_cast<size_t>(dataset.spec().target.shape[0] * volume));
  dataset.read(plan, {crop.input, crop.target});
  return crop;
}

BoxDataset open_golden(const std::string& name) {
  const auto path = golden_folder("nbody_crops") / name;
  return BoxDataset(
      open_box(open_array_file(path), "Nbody"), open_box(open_array_file(path), "Hydro"),
      {.source = path.string(), .crop = 4, .num_samples = 8, .augmentation = Augmentation::Tutorial, .last_start = false});
}

void expect_golden_crops(const std::string& split) {
  const SafetensorsFile golden(golden_folder("nbody_crops") / "data.safetensors");
  const auto draws = read_json(golden_folder("nbody_crops") / "draws.json")[split];
  const BoxDataset dataset = open_golden(split + ".h5");
  ASSERT_FALSE(draws.empty());
  for (size_t i = 0; i < draws.size(); ++i) {
    SamplePlan plan;
    plan.origin = {draws[i]["x"], draws[i]["y"], draws[i]["z"]};
    plan.orientation = tutorial_orientation(draws[i]["rotation"]);
    plan.region = whole(dataset.spec());
    const DrawnCrop crop = read_crop(dataset, plan);
    EXPECT_EQ(crop.input, golden_floats(golden, split + std::to_string(i) + ".input")) << split << i;
    EXPECT_EQ(crop.target, golden_floats(golden, split + std::to_string(i) + ".target")) << split << i;
  }
}

TEST(BoxDatasetTest, CropsEqualTheGoldenOnes) {
  WELKIN_NEED_GOLDEN("nbody_crops");
  expect_golden_crops("train");
  expect_golden_crops("valid");
}

TEST(BoxDatasetTest, EveryTutorialMapTurnsTheGoldenCube) {
  WELKIN_NEED_GOLDEN("nbody_crops");
  const SafetensorsFile golden(golden_folder("nbody_crops") / "data.safetensors");
  const auto cube = make_box({2, {3, 3, 3}}, golden_floats(golden, "cube"));
  const BoxDataset dataset(cube, cube, {.source = "cube", .crop = 3, .augmentation = Augmentation::Tutorial});
  for (int32_t number = 1; number <= 24; ++number) {
    SamplePlan plan;
    plan.orientation = tutorial_orientation(number);
    plan.region = whole(dataset.spec());
    EXPECT_EQ(read_crop(dataset, plan).input, golden_floats(golden, "cube.rot" + std::to_string(number))) << number;
  }
}

BoxArrayPtr counting_box(int64_t channels, int64_t edge) {
  return make_box({channels, {edge, edge, edge}}, counting(channels * edge * edge * edge));
}

BoxDataset counting_dataset(BoxOptions options, int64_t edge = 9) {
  options.source = "counting";
  return BoxDataset(counting_box(4, edge), counting_box(5, edge), std::move(options));
}

// The value that a plan must give at one place, element by element.
float expected_value(const SamplePlan& plan, int64_t crop, int64_t edge, int64_t channel, std::array<int64_t, 3> out) {
  const Orientation& turn = orientation(plan.orientation);
  std::array<int64_t, 3> cell{};
  for (size_t a = 0; a < 3; ++a) {
    const int64_t i = plan.region.begin[a] + out[a];
    const auto axis = static_cast<size_t>(turn.axis[a]);
    cell[axis] = (plan.origin[axis] + (turn.flip[a] ? crop - 1 - i : i)) % edge;
  }
  return static_cast<float>(((channel * edge + cell[0]) * edge + cell[1]) * edge + cell[2]);
}

void expect_counting(const BoxDataset& dataset, const SamplePlan& plan, int64_t edge) {
  const int64_t crop = dataset.spec().input.shape[1];
  const DrawnCrop values = read_crop(dataset, plan);
  const auto& n = plan.region.extent;
  size_t i = 0;
  for (int64_t c = 0; c < dataset.spec().input.shape[0]; ++c) {
    for (int64_t x = 0; x < n[0]; ++x) {
      for (int64_t y = 0; y < n[1]; ++y) {
        for (int64_t z = 0; z < n[2]; ++z, ++i) {
          ASSERT_EQ(values.input[i], expected_value(plan, crop, edge, c, {x, y, z})) << "orientation " << plan.orientation;
        }
      }
    }
  }
}

TEST(BoxDatasetTest, AnyRegionUnderAnyOrientationIsAPartOfTheWhole) {
  const BoxDataset dataset = counting_dataset({.crop = 5});
  for (int32_t index = 0; index < kNumOrientations; ++index) {
    SamplePlan plan;
    plan.origin = {1, 4, 2};
    plan.orientation = index;
    plan.region = {{1, 0, 2}, {3, 5, 2}};
    expect_counting(dataset, plan, 9);
  }
}

TEST(BoxDatasetTest, PeriodicCropsWrapUnderEveryOrientation) {
  const BoxDataset dataset = counting_dataset({.crop = 6, .periodic = {true, true, true}}, 6);
  EXPECT_EQ(dataset.spec().geometry, Geometry::PeriodicBox);
  for (int32_t index = 0; index < kNumOrientations; ++index) {
    SamplePlan plan;
    plan.origin = {5, 2, 0};
    plan.orientation = index;
    plan.region = whole(dataset.spec());
    expect_counting(dataset, plan, 6);
  }
}

std::set<int64_t> drawn_starts(const BoxDataset& dataset, size_t axis) {
  std::set<int64_t> starts;
  for (uint64_t draw = 0; draw < 2000; ++draw) starts.insert(dataset.plan({0, draw * 0x9E3779B97F4A7C15u}, {}).origin[axis]);
  return starts;
}

TEST(BoxDatasetTest, DrawsReachTheLastStartUnlessTheTutorialsRuleHolds) {
  const BoxDataset corrected = counting_dataset({.crop = 4});
  const BoxDataset tutorial = counting_dataset({.crop = 4, .last_start = false});
  const BoxDataset periodic = counting_dataset({.crop = 4, .periodic = {true, true, true}});
  for (size_t axis = 0; axis < 3; ++axis) {
    EXPECT_EQ(drawn_starts(corrected, axis), (std::set<int64_t>{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(drawn_starts(tutorial, axis), (std::set<int64_t>{0, 1, 2, 3, 4}));
    EXPECT_EQ(drawn_starts(periodic, axis).size(), 9u);
  }
}

TEST(BoxDatasetTest, DrawsUseEveryOrientationOfTheAugmentation) {
  for (const auto augmentation :
       {Augmentation::None, Augmentation::Flips, Augmentation::Rotations, Augmentation::Octahedral, Augmentation::Tutorial}) {
    const BoxDataset dataset = counting_dataset({.crop = 4, .augmentation = augmentation});
    std::set<int32_t> drawn;
    for (uint64_t draw = 0; draw < 2000; ++draw) drawn.insert(dataset.plan({0, draw}, {}).orientation);
    const auto wanted = orientations_of(augmentation);
    EXPECT_EQ(drawn, std::set<int32_t>(wanted.begin(), wanted.end()));
  }
}

TEST(BoxDatasetTest, ValidationIsAFixedUnturnedCover) {
  const BoxDataset dataset = counting_dataset({.crop = 4, .num_samples = 27, .drawn = false});
  std::set<float> seen;
  for (int64_t index = 0; index < dataset.size(); ++index) {
    const SamplePlan plan = dataset.plan({index, 1}, whole(dataset.spec()));
    EXPECT_EQ(plan.orientation, 0);
    EXPECT_EQ(plan.origin, dataset.plan({index, 999}, whole(dataset.spec())).origin) << "depends on the draw";
    for (const float value : read_crop(dataset, plan).input) seen.insert(value);
  }
  EXPECT_EQ(seen.size(), 4u * 9 * 9 * 9) << "27 crops of 4^3 must touch every cell of 9^3";
}

TEST(BoxDatasetTest, CoverSpreadsAnyNumberOfCrops) {
  std::set<std::array<int64_t, 3>> crops;
  for (int64_t i = 0; i < 64; ++i) crops.insert(cover_crop(i, 64, {449, 449, 449}, {8, 8, 8}));
  EXPECT_EQ(crops.size(), 64u);
  EXPECT_EQ(cover_crop(0, 64, {449, 449, 449}, {8, 8, 8}), (std::array<int64_t, 3>{0, 0, 0}));
  EXPECT_EQ(cover_crop(63, 64, {449, 449, 449}, {8, 8, 8})[0], 448) << "the last crop lies at the far end";
  crops.clear();
  for (int64_t i = 0; i < 8192; ++i) {
    const auto origin = cover_crop(i, 8192, {449, 449, 449}, {8, 8, 8});
    for (const int64_t start : origin) ASSERT_TRUE(start >= 0 && start < 449);
    crops.insert(origin);
  }
  EXPECT_EQ(crops.size(), 8192u);
}

// A radial field v = r - centre looks the same after any turn of box and components together.
TEST(BoxDatasetTest, VectorChannelsTurnWithTheBox) {
  constexpr int64_t kEdge = 5;
  std::vector<float> values;
  for (int64_t c = 0; c < 4; ++c) {
    for (int64_t i = 0; i < kEdge * kEdge * kEdge; ++i) {
      const std::array<int64_t, 3> cell{i / 25, i / 5 % 5, i % 5};
      values.push_back(c == 0 ? 7.0f : static_cast<float>(cell[static_cast<size_t>(c - 1)] - 2));
    }
  }
  const auto box = make_box({4, {kEdge, kEdge, kEdge}}, values);
  const BoxDataset turning(box, box, {.source = "radial", .crop = kEdge, .input_vectors = {1, 2, 3}});
  for (int32_t index = 0; index < kNumOrientations; ++index) {
    SamplePlan plan;
    plan.orientation = index;
    plan.region = whole(turning.spec());
    const DrawnCrop crop = read_crop(turning, plan);
    EXPECT_EQ(crop.input, values) << "orientation " << index;
    if (index > 0) {
      EXPECT_NE(crop.target, values) << "channels that are no vectors only move";
    }
  }
}

TEST(BoxDatasetTest, EverySourceGivesTheSameCrops) {
  const DataFolder folder;
  constexpr int64_t kEdge = 8;
  const std::vector<float> values = counting(4 * kEdge * kEdge * kEdge);
  {
    Hdf5File file = Hdf5File::create(folder / "box.h5");
    const Extents shape{4, kEdge, kEdge, kEdge};
    file.create_dataset("plain", {.shape = shape, .chunk = {}});
    file.create_dataset("packed", {.shape = shape, .chunk = {1, 4, 4, 4}, .deflate = 1});
    file.create_dataset("double", {.type = Hdf5Type::Float64, .shape = shape, .chunk = {}});
    for (const char* name : {"plain", "packed", "double"}) file.write(name, {0, 0, 0, 0}, shape, std::span<const float>(values));
    file.close();
  }
  NpyWriter writer(folder / "box.npy", Dtype::F32, {kEdge, kEdge, kEdge, 4});
  std::vector<float> channel_last(values.size());
  const size_t volume = kEdge * kEdge * kEdge;
  for (size_t c = 0; c < 4; ++c) {
    for (size_t i = 0; i < volume; ++i) channel_last[i * 4 + c] = values[c * volume + i];
  }
  writer.append(channel_last);
  writer.close();
  const auto memory = make_box({4, {kEdge, kEdge, kEdge}}, values);
  const BoxOptions options{.source = "box", .crop = 5, .augmentation = Augmentation::Octahedral, .input_vectors = {1, 2, 3}};
  const BoxDataset reference(memory, memory, options);
  const std::vector<BoxArrayPtr> boxes{open_box(open_array_file(folder / "box.h5"), "plain"),
                                       open_box(open_array_file(folder / "box.h5"), "packed"),
                                       open_box(open_array_file(folder / "box.h5"), "double"),
                                       open_box(open_array_file(folder / "box.npy"), "", ChannelAxis::Last),
                                       load_box(*open_box(open_array_file(folder / "box.npy"), "", ChannelAxis::Last))};
  for (size_t b = 0; b < boxes.size(); ++b) {
    const BoxDataset dataset(boxes[b], boxes[b], options);
    for (uint64_t draw = 0; draw < 100; ++draw) {
      const SamplePlan plan = dataset.plan({0, draw}, whole(dataset.spec()));
      ASSERT_EQ(read_crop(dataset, plan).input, read_crop(reference, plan).input) << "source " << b << ", draw " << draw;
    }
  }
}

TEST(BoxDatasetTest, SyntheticBoxesAreStandardNormalAndRepeatable) {
  const BoxShape shape{2, {32, 32, 32}};
  const auto box = make_normal_box(shape, 5);
  const BoxDataset dataset(box, make_normal_box(shape, 6), {.source = "synthetic", .crop = 32});
  SamplePlan plan;
  plan.region = whole(dataset.spec());
  const DrawnCrop crop = read_crop(dataset, plan);
  double sum = 0, squares = 0;
  for (const float value : crop.input) sum += value, squares += static_cast<double>(value) * value;
  const double count = static_cast<double>(crop.input.size());
  EXPECT_LT(std::abs(sum / count), 4.0 / std::sqrt(count));
  EXPECT_LT(std::abs(squares / count - 1.0), 4.0 * std::sqrt(2.0 / count));
  EXPECT_NE(crop.input, crop.target);
  const auto again = make_normal_box(shape, 5);
  EXPECT_EQ(read_crop(BoxDataset(again, again, {.source = "synthetic", .crop = 32}), plan).input, crop.input);
}

TEST(BoxDatasetTest, MisfitsAreNamedWithValues) {
  EXPECT_THAT([] { counting_dataset({.crop = 10}); },
              ThrowsMessage<DataError>(HasSubstr("[data] the crop does not fit in the box: source=counting, data_size=10, "
                                                 "box=(9, 9, 9). Reduce data_size")));
  EXPECT_THAT([] { counting_dataset({.crop = 9, .last_start = false}); },
              ThrowsMessage<DataError>(HasSubstr(
                  "crop_rule exclusive needs a box larger than the crop: reduce data_size, or drop the rule or compat")));
  EXPECT_THAT([] { counting_dataset({.crop = 4, .in_channels = 6}); },
              ThrowsMessage<DataError>(HasSubstr("the box has too few channels: source=counting, channels=4, wanted=6")));
  EXPECT_THAT(
      [] {
        counting_dataset({.crop = 4, .input_vectors = {1, 2, 4}});
      },
      ThrowsMessage<DataError>(HasSubstr("channels_of_vectors=[1, 2, 4], channels=4")));
  EXPECT_THAT(
      [] { BoxDataset(counting_box(4, 8), counting_box(5, 9), {.source = "two", .crop = 4}); },
      ThrowsMessage<DataError>(HasSubstr("input and target boxes differ: source=two, input=(8, 8, 8), target=(9, 9, 9)")));
}

TEST(BoxDatasetTest, UnusableFilesAreNamed) {
  const DataFolder folder;
  write_box_file(folder / "box.h5", 6);
  EXPECT_THAT([&] { open_box(open_array_file(folder / "box.h5"), "Gas"); },
              ThrowsMessage<DataError>(HasSubstr("dataset=Gas. The file holds: Hydro, Nbody")));
  EXPECT_THAT([&] { open_box(open_array_file(folder / "none.h5"), "Nbody"); },
              ThrowsMessage<DataError>(HasSubstr("No such file")));
  std::filesystem::resize_file(folder / "box.h5", std::filesystem::file_size(folder / "box.h5") / 2);
  EXPECT_THAT([&] { open_box(open_array_file(folder / "box.h5"), "Nbody"); }, ThrowsMessage<DataError>(HasSubstr("truncated")));
  NpyWriter writer(folder / "flat.npy", Dtype::F64, {2, 3});
  writer.append(std::vector<double>(6, 1.0));
  writer.close();
  EXPECT_THAT([&] { open_box(open_array_file(folder / "flat.npy"), "", ChannelAxis::Last); },
              ThrowsMessage<DataError>(HasSubstr("shape=(2, 3). Give an array (D, H, W, C)")));
}

}  // namespace
}  // namespace welkin::data::tests
