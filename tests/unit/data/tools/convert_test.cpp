// SPDX-License-Identifier: Apache-2.0
// What a conversion keeps of a file beside its values: coordinates and attributes of what is cut, and declared missing values.
#include "data/tools/convert.h"

#include <gmock/gmock.h>

#include <cmath>

#include "core/error.h"
#include "data/datasets/box_array.h"
#include "data/formats/array_file.h"
#include "data/formats/npy_file.h"
#include "data_files.h"

namespace welkin::data::tests {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

// A raw file with its description: the shortest way to named arrays with any attributes.
void write_described(const std::filesystem::path& path, int64_t count, const std::string& arrays) {
  const std::vector<float> values = counting(count);
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(values.data()), count * 4);
  std::ofstream(path.string() + ".json") << "{\"arrays\": {" << arrays << "}}";
}

constexpr const char* kFieldsText =
    R"("fields": {"shape": [3, 4, 6, 5], "dtype": "float32", "attributes": {"channels": ["t", "u", "v", "q"],
       "units": ["K", "m", "m", "1"], "mean": [1, 2, 3, 4], "source": "me"}})";
constexpr const char* kPlaces =
    R"(, "static": {"shape": [2, 6, 5], "dtype": "float32", "offset": 1440, "attributes": {"channels": ["lsm", "z"]}},
       "time": {"values": [0, 10, 20], "attributes": {"units": "seconds since 1970-01-01"}},
       "latitude": {"values": [75, 45, 15, -15, -45, -75]}, "longitude": {"values": [0, 72, 144, 216, 288]})";

std::vector<float> values_of(const BoxArray& box) {
  const auto& n = box.shape().extent;
  const int64_t cells = n[0] * n[1] * n[2];
  std::vector<int64_t> channels(static_cast<size_t>(box.shape().channels));
  std::iota(channels.begin(), channels.end(), 0);
  std::vector<float> values(channels.size() * static_cast<size_t>(cells));
  box.read({.first = {0, 0, 0},
            .extent = n,
            .turn = {},
            .channels = channels.data(),
            .num_channels = box.shape().channels,
            .to = values.data(),
            .to_stride = {cells, n[1] * n[2], n[2], 1}});
  return values;
}

ConvertReport convert_region(const std::filesystem::path& from, const std::filesystem::path& to, ArrayRegion region,
                             OutputFormat format = OutputFormat::Hdf5) {
  ConvertOptions options;
  options.format = format;
  options.region = std::move(region);
  return convert_arrays(from, to, options);
}

TEST(ConvertRegion, WhatBelongsToACutAxisIsCutWithIt) {
  const DataFolder folder;
  write_described(folder / "a.raw", 420, std::string(kFieldsText) + kPlaces);
  const ConvertReport report = convert_region(folder / "a.raw", folder / "b.h5", {{1, 1, 2, 1}, {-1, 3, 5, 3}});
  EXPECT_THAT(report.notes, IsEmpty());
  const ArrayFile file = open_array_file(folder / "b.h5");
  EXPECT_THAT(file.texts("fields", "channels"), ElementsAre("u", "v"));
  EXPECT_THAT(file.texts("fields", "units"), ElementsAre("m", "m"));
  EXPECT_THAT(file.numbers("fields", "mean"), ElementsAre(2, 3));
  EXPECT_THAT(file.texts("fields", "source"), ElementsAre("me"));
  EXPECT_THAT(file.array("time")->read_doubles(), ElementsAre(10, 20));
  EXPECT_THAT(file.array("latitude")->read_doubles(), ElementsAre(15, -15, -45));
  EXPECT_THAT(file.array("longitude")->read_doubles(), ElementsAre(72, 144));
  EXPECT_EQ(file.array("static")->facts().shape, (Extents{2, 3, 2}));
  EXPECT_EQ(file.array("static")->read_doubles()[0], 360 + 2 * 5 + 1);
  EXPECT_THAT(file.texts("static", "channels"), ElementsAre("lsm", "z"));
  EXPECT_EQ(file.array("fields")->read_doubles()[0], 120 + 30 + 2 * 5 + 1);
}

TEST(ConvertRegion, NamedAxesAreCutInEveryArray) {
  const DataFolder folder;
  write_described(folder / "a.raw", 48,
                  R"("t2m": {"shape": [2, 4, 3], "dtype": "float32", "axes": ["time", "y", "x"]},
       "depth_of": {"shape": [4, 3, 2], "dtype": "float32", "offset": 96, "axes": ["y", "x", "bnds"]},
       "bounds": {"shape": [4, 6], "dtype": "float32", "offset": 96, "axes": ["y", "bnds"]},
       "lat": {"values": [60, 20, -20, -60], "axes": ["y"]})");
  ConvertOptions options;
  options.arrays = {"t2m", "bounds", "lat"};
  options.region = ArrayRegion{{0, 1, 0}, {-1, 3, -1}};
  convert_arrays(folder / "a.raw", folder / "b.h5", options);
  const ArrayFile file = open_array_file(folder / "b.h5");
  EXPECT_THAT(file.array("lat")->read_doubles(), ElementsAre(20, -20));
  EXPECT_EQ(file.array("bounds")->facts().shape, (Extents{2, 6}));
}

// The same names as everywhere: a coordinate that the readers know by its name is cut with its axis.
TEST(ConvertRegion, ACoordinateWithoutAxesIsCutByAnyOfItsNames) {
  const DataFolder folder;
  for (const std::string name : {"lats", "xlat", "Latitude"}) {
    write_described(folder / "a.raw", 24,
                    R"("t2m": {"shape": [2, 4, 3], "dtype": "float32", "axes": ["date", ")" + name + R"(", "lons"]},
       ")" + name + R"(": {"values": [60, 20, -20, -60]})");
    const auto to = folder / (name + ".h5");
    convert_region(folder / "a.raw", to, {{0, 1, 0}, {-1, 3, -1}});
    EXPECT_THAT(open_array_file(to).array(name)->read_doubles(), ElementsAre(20, -20)) << name;
  }
}

TEST(ConvertRegion, AnAxisOfABoxThatIsCutIsPeriodicNoLonger) {
  const DataFolder folder;
  write_described(folder / "a.raw", 3 * 4 * 8 * 8,
                  R"("Nbody": {"shape": [3, 4, 8, 8], "dtype": "float32", "attributes": {"channels": ["x", "y", "z"],
       "scale": [7, 8, 9], "box_size": [4, 8, 8], "periodic": ["1", "1", "1"], "vector_channels": ["1", "2"]}},
       "Hydro": {"shape": [2, 4, 8, 8], "dtype": "float32", "attributes": {"channels": ["a", "b"], "periodic": 1}})");
  convert_region(folder / "a.raw", folder / "b.h5", {{0, 0, 0, 0}, {2, -1, 4, -1}});
  const ArrayFile file = open_array_file(folder / "b.h5");
  EXPECT_THAT(file.texts("Nbody", "channels"), ElementsAre("x", "y"));
  EXPECT_THAT(file.numbers("Nbody", "scale"), ElementsAre(7, 8));
  EXPECT_THAT(file.numbers("Nbody", "box_size"), ElementsAre(4, 8, 8));  // one per axis, as far as anyone can tell
  EXPECT_THAT(file.texts("Nbody", "periodic"), ElementsAre("1", "0", "1"));
  EXPECT_THAT(file.texts("Nbody", "vector_channels"), IsEmpty());  // a component of the vector is gone
  EXPECT_THAT(file.texts("Hydro", "channels"), ElementsAre("a", "b"));
  EXPECT_THAT(file.numbers("Hydro", "periodic"), ElementsAre(1, 0, 1));
  convert_region(folder / "a.raw", folder / "c.h5", {{1, 0, 0, 0}, {2, -1, -1, -1}});
  EXPECT_THAT(open_array_file(folder / "c.h5").texts("Nbody", "periodic"), ElementsAre("1", "1", "1"));
}

TEST(ConvertRegion, RowsWithoutLatitudesAreNotCut) {
  const DataFolder folder;
  write_described(folder / "a.raw", 360, kFieldsText);
  EXPECT_THAT(
      [&] {
        convert_region(folder / "a.raw", folder / "b.h5", {{0, 0, 2, 0}, {-1, -1, -1, -1}});
      },
      ThrowsMessage<DataError>(HasSubstr("rows are cut from fields whose latitudes are not known, and the part would be taken "
                                         "for a whole globe: path=")));
  EXPECT_FALSE(std::filesystem::exists(folder / "b.h5"));
  convert_region(folder / "a.raw", folder / "c.h5", {{0, 0, 0, 2}, {-1, -1, -1, -1}});  // columns are no rows
  write_npy(folder / "a.npy", {2, 3, 6, 5}, counting(180));
  const ConvertReport report = convert_region(folder / "a.npy", folder / "d.h5", {{0, 0, 2, 0}, {-1, -1, -1, -1}});
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_THAT(report.notes[0], HasSubstr("rows=2 to 6 of 6. If these are fields on a globe, add an array latitude"));
}

TEST(ConvertRegion, LatitudesThatAreLeftOutAreNamed) {
  const DataFolder folder;
  write_described(folder / "a.raw", 420, std::string(kFieldsText) + kPlaces);
  ConvertOptions options;
  options.arrays = {"fields"};
  options.region = ArrayRegion{{0, 0, 2, 0}, {-1, -1, -1, -1}};
  const ConvertReport report = convert_arrays(folder / "a.raw", folder / "b.h5", options);
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_THAT(report.notes[0], HasSubstr("the latitudes are left out"));
}

TEST(ConvertTest, ChunksOfAFormatWithoutThemAreRefused) {
  const DataFolder folder;
  write_npy(folder / "a.npy", {2, 3}, counting(6));
  for (const OutputFormat format : {OutputFormat::Npy, OutputFormat::Raw, OutputFormat::Tar, OutputFormat::Lmdb}) {
    ConvertOptions options;
    options.format = format;
    options.chunk = Extents{1, 3};
    EXPECT_THAT([&] { convert_arrays(folder / "a.npy", folder / "b", options); },
                ThrowsMessage<ConfigError>(HasSubstr("this format has no chunks. Drop --chunk, or choose hdf5, zarr2 or zarr3")));
    options.chunk.reset();
    options.auto_chunk = true;
    EXPECT_THAT([&] { convert_arrays(folder / "a.npy", folder / "b", options); },
                ThrowsMessage<ConfigError>(HasSubstr("this format has no chunks")));
  }
}

TEST(ConvertTest, DeclaredMissingValuesStayDeclared) {
  const DataFolder folder;
  const std::string arrays = R"("fields": {"shape": [2, 2, 3, 4], "dtype": "float32", "attributes": {"_FillValue": 5}})";
  write_described(folder / "a.raw", 48, arrays);
  for (const OutputFormat format : {OutputFormat::Hdf5, OutputFormat::Zarr2, OutputFormat::Zarr3, OutputFormat::Npy,
                                    OutputFormat::Raw, OutputFormat::Tar, OutputFormat::Lmdb}) {
    ConvertOptions options;
    options.format = format;
    options.command = "welkin data convert";
    const auto to = folder / ("out" + std::to_string(static_cast<int>(format)));
    convert_arrays(folder / "a.raw", to, options);
    const StoredArrayPtr array = open_array_file(to).array("fields");
    EXPECT_EQ(array->facts().missing, Missing::Declared) << static_cast<int>(format);
    EXPECT_TRUE(std::isnan(array->read_doubles()[5])) << static_cast<int>(format);
    options.dtype = Dtype::F64;
    convert_arrays(to, folder / "again", options);
    EXPECT_EQ(open_array_file(folder / "again").array("fields")->facts().missing, Missing::Declared) << static_cast<int>(format);
    std::filesystem::remove_all(folder / "again");
  }
}

TEST(ConvertTest, WhatIsNotDeclaredMissingStaysUndeclared) {
  const DataFolder folder;
  write_field_file(folder / "a.h5", {});
  for (const OutputFormat format : {OutputFormat::Hdf5, OutputFormat::Zarr2, OutputFormat::Zarr3}) {
    ConvertOptions options;
    options.format = format;
    const auto to = folder / ("out" + std::to_string(static_cast<int>(format)));
    convert_arrays(folder / "a.h5", to, options);
    EXPECT_EQ(open_array_file(to).array("fields")->facts().missing, Missing::None);
  }
}

TEST(ConvertTest, AxesOfBoxesHaveNamesOfTheirOwn) {
  const DataFolder folder;
  write_box_file(folder / "first.h5", 6, 4, 5);
  write_described(folder / "last.raw", 6 * 6 * 6 * 10,
                  R"("Nbody": {"shape": [6, 6, 6, 4], "dtype": "float32"},
       "Hydro": {"shape": [6, 6, 6, 5], "dtype": "float32", "offset": 3456}, "other": {"shape": [6, 6, 6], "dtype": "float32"})");
  for (const OutputFormat format : {OutputFormat::Zarr2, OutputFormat::Zarr3, OutputFormat::Hdf5}) {
    ConvertOptions options;
    options.format = format;
    for (const char* from : {"first.h5", "last.raw"}) {
      const auto to = folder / (std::string(from) + std::to_string(static_cast<int>(format)));
      convert_arrays(folder / from, to, options);
      const ArrayFile file = open_array_file(to);
      const ArrayFacts& hydro = file.array("Hydro")->facts();
      if (from == std::string("first.h5")) {
        EXPECT_THAT(hydro.axes, ElementsAre("Hydro_channel", "depth", "height", "width"));
      } else {
        EXPECT_THAT(hydro.axes, ElementsAre("depth", "height", "width", "Hydro_channel"));
        EXPECT_THAT(file.array("Nbody")->facts().axes, ElementsAre("depth", "height", "width", "Nbody_channel"));
        EXPECT_THAT(file.array("other")->facts().axes, IsEmpty());
      }
      const BoxArrayPtr box = open_box(file, "Hydro", ChannelAxis::Last, 5);
      EXPECT_EQ(box->shape().channels, 5);
      const BoxArrayPtr source = open_box(open_array_file(folder / from), "Hydro", ChannelAxis::Last, 5);
      EXPECT_EQ(values_of(*box), values_of(*source)) << from;
    }
  }
}

// The names say no more than what is certain: here either end may hold the channels.
TEST(ConvertTest, AxesOfABoxInDoubtHaveNoNames) {
  const DataFolder folder;
  write_described(folder / "a.raw", 4 * 6 * 8 * 5, R"("Nbody": {"shape": [4, 6, 8, 5], "dtype": "float32"})");
  ConvertOptions options;
  options.format = OutputFormat::Zarr3;
  convert_arrays(folder / "a.raw", folder / "b", options);
  EXPECT_THAT(open_array_file(folder / "b").array("Nbody")->facts().axes, IsEmpty());
}

TEST(ConvertTest, AxesOfAnHdf5FileAreDimensionScales) {
  const DataFolder folder;
  write_described(folder / "a.raw", 420, std::string(kFieldsText) + kPlaces);
  convert_arrays(folder / "a.raw", folder / "b.h5", {});
  const Hdf5File file = Hdf5File::open(folder / "b.h5");
  EXPECT_THAT(file.dimension_names("fields"), ElementsAre("time", "channel", "latitude", "longitude"));
  EXPECT_THAT(file.dimension_names("static"), ElementsAre("static_channel", "latitude", "longitude"));
  EXPECT_THAT(file.strings("latitude", "CLASS"), ElementsAre("DIMENSION_SCALE"));
  EXPECT_THAT(file.strings("latitude", "NAME"), ElementsAre("latitude"));
  EXPECT_THAT(file.strings("channel", "NAME"), ElementsAre("This is a netCDF dimension but not a netCDF variable.         4"));
  // What stands for a dimension is no array of the file.
  ConvertOptions options;
  options.format = OutputFormat::Zarr3;
  convert_arrays(folder / "b.h5", folder / "c.zarr", options);
  const ArrayFile again = open_array_file(folder / "c.zarr");
  EXPECT_THAT(again.array("fields")->facts().axes, ElementsAre("time", "channel", "latitude", "longitude"));
  EXPECT_FALSE(again.has("channel"));
}

TEST(ConvertTest, EveryLengthOfAnAxisIsADimensionOfItsOwn) {
  const DataFolder folder;
  write_described(folder / "a.raw", 24,
                  R"("a": {"shape": [4, 6], "dtype": "float32", "axes": ["y", "x"]}, "b": {"shape": [3, 6], "dtype": "float32",
       "axes": ["y", "x"]}, "g/c": {"shape": [4, 3], "dtype": "float32", "axes": ["y", "lat"]}, "lat": {"values": [1, 2, 3]},
       "lon": {"shape": [4, 6], "dtype": "float32", "axes": ["y", "lon"]}, "d": {"shape": [2, 2], "dtype": "float32",
       "axes": ["m/n", "x"]}, "x/e": {"shape": [2, 2], "dtype": "float32", "axes": ["y", "y"]})");
  convert_arrays(folder / "a.raw", folder / "b.h5", {});
  const Hdf5File file = Hdf5File::open(folder / "b.h5");
  EXPECT_THAT(file.dimension_names("a"), ElementsAre("y", "x_2"));  // x is a group
  EXPECT_THAT(file.dimension_names("b"), ElementsAre("y_2", "x_2"));
  EXPECT_THAT(file.dimension_names("g/c"), ElementsAre("y", "lat"));
  EXPECT_THAT(file.dimension_names("lon"), ElementsAre("y", "lon_2"));
  EXPECT_THAT(file.dimension_names("d"), IsEmpty());
  EXPECT_TRUE(file.has_dataset("g/y"));
  EXPECT_FALSE(file.has_dataset("g/lat"));
  EXPECT_THAT(open_array_file(folder / "b.h5").array("b")->facts().axes, ElementsAre("y", "x"));
}

TEST(ConvertTest, AxesOfAZarrStoreHaveNames) {
  const DataFolder folder;
  write_described(folder / "a.raw", 420, std::string(kFieldsText) + kPlaces);
  for (const OutputFormat format : {OutputFormat::Zarr2, OutputFormat::Zarr3}) {
    ConvertOptions options;
    options.format = format;
    const auto to = folder / ("out" + std::to_string(static_cast<int>(format)));
    convert_arrays(folder / "a.raw", to, options);
    const ArrayFile file = open_array_file(to);
    EXPECT_THAT(file.array("fields")->facts().axes, ElementsAre("time", "channel", "latitude", "longitude"));
    EXPECT_THAT(file.array("static")->facts().axes, ElementsAre("static_channel", "latitude", "longitude"));
    EXPECT_THAT(file.array("time")->facts().axes, ElementsAre("time"));
    EXPECT_THAT(file.array("latitude")->facts().axes, ElementsAre("latitude"));
  }
}

}  // namespace
}  // namespace welkin::data::tests
