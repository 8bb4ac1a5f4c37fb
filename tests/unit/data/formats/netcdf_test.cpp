// SPDX-License-Identifier: Apache-2.0
// Classic netCDF: what is written is read, in any order of blocks; damaged headers are refused. xarray reads it in
// tests/e2e/forecast/forecast_test.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <numeric>

#include "core/error.h"
#include "core/file.h"
#include "data/formats/array_writer.h"
#include "data/formats/formats.h"
#include "data_files.h"

namespace welkin::data::tests {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

OutputArray output_array(const std::string& name, Extents shape, Dtype dtype, std::vector<std::string> axes) {
  return {.name = name,
          .shape = std::move(shape),
          .chunk = {},
          .dtype = dtype,
          .codecs = {},
          .axes = std::move(axes),
          .attributes = {}};
}

OutputFile small_output() {
  OutputFile output;
  output.arrays.push_back(output_array("t", {2, 3, 4}, Dtype::F32, {"time", "lat", "lon"}));
  output.arrays[0].attributes["units"] = std::vector<std::string>{"K"};
  output.arrays[0].attributes["range"] = std::vector<double>{-1.5, 2.5};
  output.small.emplace_back(output_array("lat", {3}, Dtype::F64, {"lat"}), std::vector<double>{-45, 0, 45});
  output.small.emplace_back(output_array("number", {2}, Dtype::I32, {"number"}), std::vector<double>{-7, 1 << 20});
  output.attributes["title"] = std::vector<std::string>{"odd"};
  return output;
}

std::vector<float> counted_values(size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.5f);
  return values;
}

class NetcdfTest : public ::testing::Test {
 protected:
  void write_all() const {
    const auto writer = make_netcdf_writer(path_, small_output());
    const std::vector<float> values = counted_values(24);
    const auto part = [&](int64_t time) { return std::as_bytes(std::span(values).subspan(static_cast<size_t>(time) * 12, 12)); };
    writer->write(0, {{1, 0, 0}, {2, 3, 4}}, part(1));
    writer->write(0, {{0, 0, 0}, {1, 3, 4}}, part(0));
    writer->finish();
  }

  static void write(const std::filesystem::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }

  DataFolder folder_;
  std::filesystem::path path_ = folder_ / "a.nc";
};

TEST_F(NetcdfTest, ReadsWhatIsWrittenInAnyOrder) {
  write_all();
  const ArrayFile file = open_netcdf_arrays(path_);
  const StoredArrayPtr array = file.array("t");
  EXPECT_THAT(array->facts().shape, ElementsAre(2, 3, 4));
  EXPECT_THAT(array->facts().axes, ElementsAre("time", "lat", "lon"));
  std::vector<float> values(24);
  array->read(whole_region(array->facts().shape), std::span(values));
  EXPECT_THAT(values, ElementsAreArray(counted_values(24)));
  EXPECT_THAT(file.array("lat")->read_doubles(), ElementsAre(-45, 0, 45));
  EXPECT_THAT(file.array("number")->read_doubles(), ElementsAre(-7, 1 << 20));
  EXPECT_THAT(file.texts("t", "units"), ElementsAre("K"));
  EXPECT_THAT(file.numbers("t", "range"), ElementsAre(-1.5, 2.5));
  EXPECT_THAT(file.texts("", "title"), ElementsAre("odd"));
  EXPECT_EQ(array->facts().missing, Missing::Undeclared) << "no attribute says anything";
}

TEST_F(NetcdfTest, AWriterGoesOnInAFileThatIsThere) {
  write_all();
  const auto writer = make_netcdf_writer(path_, small_output());
  const std::vector<float> row(4, 9.0f);
  writer->write(0, {{1, 2, 0}, {2, 3, 4}}, std::as_bytes(std::span(row)));
  std::vector<float> wanted = counted_values(24), values(24);
  std::fill_n(wanted.begin() + 20, 4, 9.0f);
  open_netcdf_arrays(path_).array("t")->read({{0, 0, 0}, {2, 3, 4}}, std::span(values));
  EXPECT_THAT(values, ElementsAreArray(wanted));
}

TEST_F(NetcdfTest, DamagedFilesAreRefusedOrRead) {
  write_all();
  const std::string good = read_file(path_, 1 << 20);
  const std::filesystem::path damaged = folder_ / "damaged.nc";
  for (size_t length = 0; length < good.size() - 16; length += 3) {
    write(damaged, good.substr(0, length));
    EXPECT_THROW(open_netcdf_arrays(damaged), DataError) << length;
  }
  for (size_t at = 0; at < good.size(); ++at) {
    for (const char byte : {'\0', '\x7f', '\xff'}) {
      std::string bad = good;
      bad[at] = byte;
      write(damaged, bad);
      try {
        open_netcdf_arrays(damaged);
      } catch (const DataError&) {
      }
    }
  }
}

}  // namespace
}  // namespace welkin::data::tests
