// SPDX-License-Identifier: Apache-2.0
// Boxes from plain HDF5: shapes, parts, scales, the vector's one factor, logarithms, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <optional>

#include "core/error.h"
#include "data/formats/hdf5/hdf5_file.h"
#include "data/ingest/box/box.h"
#include "ingest/ingest_fake_component.h"
#include "number_close.h"

namespace {

using welkin::kFp32;
using welkin::tests::close;

namespace box = welkin::data::ingest;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using BoxFile = welkin::data::Hdf5File;
using Workplace = welkin::data::ingest::fake::Workspace;

using CellValue = std::function<float(int64_t, int64_t, int64_t)>;

// One data set (1, 4, 4, 4) in a file of its own, as the initial conditions of Enzo.
void write_box(const Workplace& place, const std::string& name, const CellValue& value, std::optional<double> fill = {}) {
  auto file = BoxFile::create(place.in() / (name + ".h5"));
  file.create_dataset(name, {.type = welkin::data::Hdf5Type::Float32, .shape = {1, 4, 4, 4}, .chunk = {}});
  std::vector<float> values;
  for (int64_t d = 0; d < 4; ++d) {
    for (int64_t h = 0; h < 4; ++h) {
      for (int64_t w = 0; w < 4; ++w) values.push_back(value(d, h, w));
    }
  }
  file.write(name, {0, 0, 0, 0}, {1, 4, 4, 4}, std::span<const float>(values));
  if (fill) file.set_number(name, "_FillValue", *fill);
  file.close();
}

float as_float(int64_t value) { return static_cast<float>(value); }

box::BoxOptions options_of(const Workplace& place) {
  box::BoxOptions options;
  options.inputs = {place.in()};
  options.out = place.out();
  options.input = {{"dx", ""}, {"dy", "sy"}};
  options.target = {{"rho", "density"}};
  return options;
}

void write_boxes(const Workplace& place) {
  write_box(place, "dx", [](int64_t d, int64_t, int64_t) { return d % 2 == 0 ? 1.0f : -1.0f; });
  write_box(place, "dy", [](int64_t, int64_t h, int64_t) { return h % 2 == 0 ? 7.0f : -7.0f; });
  write_box(place, "rho", [](int64_t d, int64_t h, int64_t w) { return as_float(d * 16 + h * 4 + w); });
}

std::vector<float> box_values(const std::filesystem::path& path, const char* name) {
  const auto file = BoxFile::open(path);
  const auto shape = file.dataset(name).shape;
  std::vector<float> values(static_cast<size_t>(shape[0] * shape[1] * shape[2] * shape[3]));
  file.read(name, {0, 0, 0, 0}, shape, std::span<float>(values));
  return values;
}

std::string box_refusal(const box::BoxOptions& options) {
  try {
    box::ingest_box(options);
  } catch (const welkin::Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(IngestBox, CutsPartsAndScales) {
  Workplace place("box-parts");
  write_boxes(place);
  auto options = options_of(place);
  options.vector = {"dx", "sy"};
  options.periodic = true;
  options.valid_fraction = 0.25;
  options.valid_axis = 2;
  box::ingest_box(options);
  const auto train = BoxFile::open(place.out() / "train.h5");
  EXPECT_THAT(train.dataset("Nbody").shape, ElementsAre(2, 4, 4, 3));
  EXPECT_THAT(train.dataset("Hydro").shape, ElementsAre(1, 4, 4, 3));
  EXPECT_THAT(train.strings("Nbody", "channels"), ElementsAre("dx", "sy"));
  EXPECT_THAT(train.strings("Nbody", "periodic"), ElementsAre("1", "1", "0"));
  EXPECT_THAT(train.strings("Nbody", "vector_channels"), ElementsAre("0", "1"));
  EXPECT_THAT(train.strings("Nbody", "scale"), ElementsAre("5", "5"));  // sqrt((1 + 49) / 2)
  const auto nbody = box_values(place.out() / "train.h5", "Nbody");
  EXPECT_FLOAT_EQ(nbody[0], 0.2f);
  EXPECT_FLOAT_EQ(nbody[48 + 3], -1.4f);
  // The target: mean and deviation over the columns 0, 1, 2, the last column held back.
  const double mean = 24 + 6 + 1, deviation = std::sqrt(256 * 1.25 + 16 * 1.25 + 2.0 / 3);
  EXPECT_TRUE(close(box_values(place.out() / "train.h5", "Hydro")[4], (5 - 0 - mean) / deviation, kFp32, 4));  // d 0, h 1, w 1
  const auto valid = box_values(place.out() / "valid.h5", "Hydro");
  ASSERT_EQ(valid.size(), 16u);
  EXPECT_TRUE(close(valid[1], (7 - mean) / deviation, kFp32, 4));  // d 0, h 1, w 3
}

TEST(IngestBox, KeepsTargetsWithinTanhOnRequest) {
  Workplace one("box-one-deviation"), five("box-five-deviations");
  for (Workplace* place : {&one, &five}) {
    write_boxes(*place);
    auto options = options_of(*place);
    options.target_deviations = place == &one ? 1 : 5;
    box::ingest_box(options);
  }
  const auto wide = box_values(one.out() / "train.h5", "Hydro"), narrow = box_values(five.out() / "train.h5", "Hydro");
  ASSERT_EQ(wide.size(), narrow.size());
  for (size_t i = 0; i < wide.size(); ++i) EXPECT_TRUE(close(narrow[i], wide[i] / 5, kFp32, 8));
  EXPECT_EQ(box_values(one.out() / "train.h5", "Nbody"), box_values(five.out() / "train.h5", "Nbody"));
}

TEST(IngestBox, LogarithmReplacesZeros) {
  Workplace place("box-log");
  write_boxes(place);
  write_box(place, "gas",
            [](int64_t d, int64_t h, int64_t w) { return d + h + w == 0 ? 0.0f : std::pow(10.0f, as_float(d - 2)); });
  auto options = options_of(place);
  options.target = {{"gas", ""}};
  options.log = {"gas"};
  EXPECT_THAT(
      box::ingest_box(options).lines,
      Contains(
          "zeros have no logarithm and became the smallest positive value: channel=gas, cells=1 of 64, value=0.00999999978"));
  const auto file = BoxFile::open(place.out() / "train.h5");
  EXPECT_THAT(file.strings("Hydro", "transform"), ElementsAre("log10"));
  const auto values = box_values(place.out() / "train.h5", "Hydro");
  EXPECT_FLOAT_EQ(values[0], values[1]);  // zero took the smallest positive value
  EXPECT_TRUE(close(values[0], -1.5 / std::sqrt(1.25), kFp32, 8));
  EXPECT_FALSE(std::filesystem::exists(place.out() / "valid.h5"));
}

TEST(IngestBox, ShapeMayBeGiven) {
  Workplace place("box-shape");
  write_boxes(place);
  auto options = options_of(place);
  options.shape = {1, 2, 32};
  box::ingest_box(options);
  EXPECT_THAT(BoxFile::open(place.out() / "train.h5").dataset("Hydro").shape, ElementsAre(1, 1, 2, 32));
}

TEST(IngestBox, ErrorsNameWhatIsThere) {
  Workplace place("box-errors");
  write_boxes(place);
  auto options = options_of(place);
  options.shape = {1, 2, 33};
  EXPECT_THAT(box_refusal(options), HasSubstr("the shape does not hold the values: field=dx, stored=1x4x4x4, shape=1x2x33"));
  options = options_of(place);
  options.log = {"rho"};
  EXPECT_THAT(box_refusal(options), HasSubstr("no such channel: name=rho"));  // it was renamed
  options = options_of(place);
  options.log = {"dx"};
  EXPECT_THAT(box_refusal(options), HasSubstr("a negative value has no logarithm: channel=dx, value=-1"));
  write_box(place, "void", [](int64_t, int64_t, int64_t) { return 0.0f; });
  options = options_of(place);
  options.target = {{"void", ""}};
  options.log = {"void"};
  EXPECT_THAT(box_refusal(options), HasSubstr("no value has a logarithm: channel=void, zeros=64. Leave it out of --log"));
  options = options_of(place);
  options.valid_fraction = 1;
  EXPECT_THAT(box_refusal(options), HasSubstr("nothing is left for training: valid_fraction=1, extent=4"));
  options = options_of(place);
  options.target.clear();
  EXPECT_THAT(box_refusal(options), HasSubstr("a box needs fields on both sides"));
  write_box(place, "hole", [](int64_t d, int64_t, int64_t) { return d == 0 ? NAN : 1.0f; });
  options = options_of(place);
  options.target = {{"hole", ""}};
  EXPECT_THAT(box_refusal(options), HasSubstr("values that are not finite: field=hole, cells=16"));
  write_box(
      place, "filled", [](int64_t d, int64_t, int64_t) { return d == 0 ? -999.0f : 1.0f; }, -999.0);
  options = options_of(place);
  options.target = {{"filled", ""}};
  EXPECT_THAT(box_refusal(options), HasSubstr("values that are not finite: field=filled, cells=16"));
  EXPECT_FALSE(std::filesystem::exists(place.out()));
}

}  // namespace
