// SPDX-License-Identifier: Apache-2.0
// Crops by latitude and longitude: which rows and columns they are, and that one that goes around reads the same from everywhere.
#include "data/datasets/crop_range.h"

#include <ATen/ops/equal.h>
#include <gmock/gmock.h>

#include "core/error.h"
#include "data/datasets/era5_dataset.h"
#include "data/pipeline/pipeline.h"
#include "data_files.h"

namespace welkin::data::tests {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

FieldFacts grid_of(std::vector<double> latitude, std::vector<double> longitude) {
  FieldFacts facts;
  facts.path = "/data/2001.h5";
  facts.channels = 1;
  facts.height = static_cast<int64_t>(latitude.size()), facts.width = static_cast<int64_t>(longitude.size());
  facts.latitude = std::move(latitude), facts.longitude = std::move(longitude);
  return facts;
}

const std::vector<double> kFieldRows{90, 30, -30, -90}, kAround{0, 60, 120, 180, 240, 300};

TEST(CropRange, RowsLieWithinTheLatitudesInAnyOrder) {
  const GridRange south = rows_within(grid_of(kFieldRows, kAround), {-90, -30});
  EXPECT_EQ(south.first, 2);
  EXPECT_EQ(south.count, 2);
  const GridRange rising = rows_within(grid_of({-90, -30, 30, 90}, kAround), {-90, 29});
  EXPECT_EQ(rising.first, 0);
  EXPECT_EQ(rising.count, 2);
  EXPECT_EQ(rows_within(grid_of({60.00001, 30}, kAround), {30, 60}).count, 2) << "places are rounded";
}

TEST(CropRange, ColumnsGoOnAtTheFirstOneWhereTheGridGoesAround) {
  const FieldFacts around = grid_of(kFieldRows, kAround);
  EXPECT_TRUE(goes_around(around));
  const auto columns = [](const FieldFacts& facts, double west, double east) {
    const GridRange range = columns_within(facts, {west, east});
    return std::vector<int64_t>{range.first, range.count};
  };
  EXPECT_THAT(columns(around, 60, 180), ElementsAre(1, 3));
  EXPECT_THAT(columns(around, -130, 60), ElementsAre(4, 4)) << "240, 300, 0 and 60";
  EXPECT_THAT(columns(around, 350, 360), ElementsAre(0, 1));
  EXPECT_THAT(columns(around, -180, 180), ElementsAre(0, 6));
  EXPECT_THAT(columns(grid_of(kFieldRows, {-180, -120, -60, 0, 60, 120}), 170, 250), ElementsAre(0, 2)) << "-180 and -120";
  const FieldFacts part = grid_of(kFieldRows, {0, 20, 40});
  EXPECT_FALSE(goes_around(part));
  EXPECT_THAT(columns(part, -10, 20), ElementsAre(0, 2));
  EXPECT_THAT(columns(grid_of(kFieldRows, {0, 10, 180, 350}), 0, 10), ElementsAre(0, 2));
}

TEST(CropRange, RangesThatTheFileDoesNotHaveAreNamed) {
  const FieldFacts around = grid_of(kFieldRows, kAround);
  EXPECT_THAT(
      [&] {
        rows_within(around, {40, 60});
      },
      ThrowsMessage<DataError>(HasSubstr("[data] no row of the grid lies in the range: path=/data/2001.h5, crop.lat=[40, 60], "
                                         "latitudes of the file=90 to -90. Give a range that the file has")));
  EXPECT_THAT(
      [&] {
        columns_within(grid_of(kFieldRows, {0, 10, 180, 350}), {-20, 10});
      },
      ThrowsMessage<DataError>(HasSubstr("the range goes beyond the last column of a grid that does not go around: "
                                         "path=/data/2001.h5, crop.lon=[-20, 10], longitudes of the file=0 to 350")));
  EXPECT_THAT(
      [&] {
        rows_within(grid_of({}, {}), {40, 60});
      },
      ThrowsMessage<DataError>(HasSubstr("the file does not say the latitudes of its rows: path=/data/2001.h5, "
                                         "crop.lat=[40, 60]. Give crop as the first row and column instead")));
  const auto select = [&](int64_t height) {
    select_fields(around, {.height = height, .width = 2, .crop_latitude = {-30, 30}, .crop_longitude = {-60, 0}});
  };
  EXPECT_NO_THROW(select(2));
  EXPECT_THAT([&] { select(3); },
              ThrowsMessage<DataError>(HasSubstr("the range holds fewer points than img_size: path=/data/2001.h5, points of the "
                                                 "range=2 x 2, img_size=3 x 2. Set img_size to at most [2, 2]")));
  const FieldFacts poles = grid_of({90, 45, 0, -45, -90}, {0, 60, 120, 180, 240, 300, 330});
  EXPECT_THAT(
      [&] {
        select_fields(poles, {.height = 6, .width = 4, .multiple = 2, .crop_latitude = {-45, 90}});
      },
      ThrowsMessage<DataError>(
          HasSubstr("points of the range=4 x 7, img_size=6 x 4. Set img_size to at most [4, 6], divisible")));
}

// value = ((t * 2 + c) * 4 + h) * 6 + w, over the whole globe.
class FieldsAround : public ::testing::Test {
 protected:
  FieldsAround() {
    Hdf5File file = Hdf5File::create(folder_ / "2001.h5");
    const std::vector<float> values = counting(6 * 2 * 4 * 6);
    file.create_dataset("fields", {.shape = {6, 2, 4, 6}, .chunk = {}});
    file.write("fields", {0, 0, 0, 0}, {6, 2, 4, 6}, std::span<const float>(values));
    for (const auto& [name, places] : {std::pair{"lat", kFieldRows}, std::pair{"lon", kAround}}) {
      const auto count = static_cast<int64_t>(places.size());
      file.create_dataset(name, {.type = Hdf5Type::Float64, .shape = {count}, .chunk = {}});
      file.write(name, {0}, {count}, std::span<const double>(places));
    }
    file.close();
  }
  Era5Options options() const {
    return {.folder = folder_.path(), .height = 2, .width = 3, .crop_latitude = {-30, 30}, .crop_longitude = {-60, 60}};
  }

  DataFolder folder_;
};

TEST_F(FieldsAround, AreReadBeyondTheLastColumn) {
  const Era5Dataset dataset(options());
  const SampleSpec& spec = dataset.spec();
  EXPECT_THAT(spec.latitude, ElementsAre(30, -30));
  EXPECT_THAT(spec.longitude, ElementsAre(-60, 0, 60));
  EXPECT_EQ(spec.columns_around, 6);
  EXPECT_THAT(dataset.describe().back(),
              HasSubstr("rows 1 to 2, latitude 30 to -30; columns 5, longitude 300 and 0 to 1, longitude 0 to 60"));
  std::vector<float> input(2 * 6), target(2 * 6);
  dataset.read(dataset.plan({0, 0}, whole(spec)), {input, target});
  EXPECT_THAT(input, ElementsAre(11, 6, 7, 17, 12, 13, 24 + 11, 24 + 6, 24 + 7, 24 + 17, 24 + 12, 24 + 13));
  EXPECT_EQ(target[0], 48 + 11);
  // The part of a rank that begins beyond the last column, and one on both sides of it.
  const Region right{.begin = {0, 1, 0}, .extent = {2, 2, 1}}, left{.begin = {0, 0, 0}, .extent = {2, 2, 1}};
  std::vector<float> part(2 * 4), part_of_target(2 * 4);
  dataset.read(dataset.plan({0, 0}, right), {part, part_of_target});
  EXPECT_THAT(std::vector<float>(part.begin(), part.begin() + 4), ElementsAre(6, 7, 12, 13));
  dataset.read(dataset.plan({0, 0}, left), {part, part_of_target});
  EXPECT_THAT(std::vector<float>(part.begin(), part.begin() + 4), ElementsAre(11, 6, 17, 12));
}

TEST_F(FieldsAround, AreTheSameFromMemory) {
  Era5Options held = options();
  held.hold = true;
  const Era5Dataset files(options()), memory(held);
  PipelineOptions pipeline{.global_batch = 2, .micro_batch = 2};
  Pipeline wanted(files, Sampler(files.size(), Order::Shuffled, 5), pipeline);
  Pipeline in_memory(memory, Sampler(files.size(), Order::Shuffled, 5), pipeline);
  pipeline.resident = true;
  Pipeline resident(files, Sampler(files.size(), Order::Shuffled, 5), pipeline);
  for (int i = 0; i < 4; ++i) {
    const Batch batch = wanted.next();
    EXPECT_TRUE(at::equal(in_memory.next().input, batch.input));
    const Batch of_device = resident.next();
    EXPECT_TRUE(at::equal(of_device.input, batch.input));
    EXPECT_TRUE(at::equal(of_device.target, batch.target));
  }
}

}  // namespace
}  // namespace welkin::data::tests
