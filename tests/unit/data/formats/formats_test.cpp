// SPDX-License-Identifier: Apache-2.0
// Every format through its own writer and the one reader: any region, any stride, any type; views, scales, and training from it.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <random>

#include "data/datasets/box_array.h"
#include "data/datasets/era5_dataset.h"
#include "data/formats/array_file.h"
#include "data/formats/npy_file.h"
#include "data/formats/zarr/zarr_array.h"
#include "data/storage/array_views.h"
#include "data/storage/stored_values.h"
#include "data/tools/convert.h"
#include "data/tools/convert_plan.h"
#include "data/tools/inspect.h"
#include "data_files.h"

namespace welkin::data::tests {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

struct FormatCase {
  const char* name;
  OutputFormat format;
  std::optional<CodecKind> compress;
};

class FormatsTest : public ::testing::TestWithParam<FormatCase> {
 protected:
  std::filesystem::path convert(const std::filesystem::path& from, const std::string& to, ConvertOptions options = {}) const {
    options.format = GetParam().format;
    options.compress = GetParam().compress;
    options.block_bytes = 700;  // so that blocks end inside of everything
    convert_arrays(from, folder_ / to, options);
    return folder_ / to;
  }

  DataFolder folder_;
};

TEST_P(FormatsTest, AnyRegionAtAnyStrideIsThatOfTheWhole) {
  write_field_file(folder_ / "a.h5", {.steps = 5, .channels = 3, .height = 7, .width = 11, .first = 0.5f});
  ConvertOptions options;
  if (is_chunked(GetParam().format)) options.chunk = Extents{2, 3, 4, 5};
  const StoredArrayPtr array = open_array_file(convert(folder_ / "a.h5", "out", options)).array("fields");
  std::mt19937 random(3);
  for (int i = 0; i < 200; ++i) {
    ArrayRegion region = whole_region(array->facts().shape);
    for (size_t d = 0; d < 4; ++d) {
      region.begin[d] = static_cast<int64_t>(random() % static_cast<unsigned>(region.end[d]));
      region.end[d] =
          region.begin[d] + 1 + static_cast<int64_t>(random() % static_cast<unsigned>(region.end[d] - region.begin[d]));
    }
    const Extents extent = region.extent();
    const std::array<int64_t, 4> stride{1, 2 * extent[0], 2 * extent[0] * extent[1], 2 * extent[0] * extent[1] * extent[2]};
    std::vector<float> out(static_cast<size_t>(2 * region.num_values()), -1.0f);
    array->read(region, out.data(), stride);
    for (int64_t t = 0; t < extent[0]; ++t) {
      for (int64_t c = 0; c < extent[1]; ++c) {
        for (int64_t y = 0; y < extent[2]; ++y) {
          for (int64_t x = 0; x < extent[3]; ++x) {
            const int64_t flat =
                (((region.begin[0] + t) * 3 + region.begin[1] + c) * 7 + region.begin[2] + y) * 11 + region.begin[3] + x;
            ASSERT_EQ(out[static_cast<size_t>(t + c * stride[1] + y * stride[2] + x * stride[3])],
                      static_cast<float>(flat) + 0.5f);
          }
        }
      }
    }
    int64_t covered = 0;
    for (const ArrayRegion& piece : array->pieces(region)) covered += piece.num_values();
    EXPECT_EQ(covered, region.num_values());
  }
  std::vector<float> twelve(12);
  EXPECT_THAT(
      [&] {
        array->read({{0, 0, 0, 0}, {1, 1, 1, 12}}, std::span<float>(twelve));
      },
      ThrowsMessage<DataError>(HasSubstr("outside the array")));
}

TEST_P(FormatsTest, FieldsTrainFromIt) {
  std::filesystem::create_directories(folder_ / "years");
  write_field_file(folder_ / "2000.h5", {.steps = 6, .names = {"t", "u"}, .time = {0, 60, 120, 180, 240, 300}});
  convert(folder_ / "2000.h5", "years/2000");
  Era5Options options;
  options.folder = folder_ / "years";
  const Era5Dataset dataset(options);
  EXPECT_EQ(dataset.size(), 5);
  EXPECT_THAT(dataset.spec().input.channels, ElementsAre("t", "u"));
  EXPECT_THAT(dataset.file(0).time, ElementsAre(0, 60, 120, 180, 240, 300));
  std::vector<float> input(48), target(48);
  dataset.read(dataset.plan({.index = 3, .draw = 0}, whole(dataset.spec())), {input, target});
  EXPECT_EQ(input[0], 3 * 48);
  EXPECT_EQ(target[47], 5 * 48 - 1);
  EXPECT_THAT(inspect_file(folder_ / "years/2000"), HasSubstr("6, 2, 4, 6"));
}

TEST_P(FormatsTest, BoxesAreCutAndTurnedFromIt) {
  write_box_file(folder_ / "box.h5", 6, 2, 3);
  if (GetParam().format == OutputFormat::Npy) GTEST_SKIP() << "npy holds one array";
  const ArrayFile from = open_array_file(folder_ / "box.h5"), file = open_array_file(convert(folder_ / "box.h5", "out"));
  const std::vector<int64_t> channels{2, 0};
  BoxPiece piece{.first = {4, 1, 5}, .extent = {2, 3, 4}, .turn = orientation(7), .channels = channels.data(), .num_channels = 2};
  for (size_t a = 0; a < 3; ++a) piece.first[static_cast<size_t>(piece.turn.axis[a])] = piece.turn.flip[a] ? 5 : 1;
  piece.to_stride = {24, 12, 4, 1};
  std::vector<float> wanted(48), found(48);
  piece.to = wanted.data();
  open_box(from, "Hydro")->read(piece);
  piece.to = found.data();
  open_box(file, "Hydro")->read(piece);
  EXPECT_EQ(found, wanted);
}

INSTANTIATE_TEST_SUITE_P(All, FormatsTest,
                         ::testing::Values(FormatCase{"hdf5", OutputFormat::Hdf5, CodecKind::Blosc},
                                           FormatCase{"zarr2", OutputFormat::Zarr2, CodecKind::Zstd},
                                           FormatCase{"zarr3", OutputFormat::Zarr3, CodecKind::Gzip},
                                           FormatCase{"zarr3plain", OutputFormat::Zarr3, {}},
                                           FormatCase{"npy", OutputFormat::Npy, {}}, FormatCase{"raw", OutputFormat::Raw, {}},
                                           FormatCase{"tar", OutputFormat::Tar, {}}, FormatCase{"lmdb", OutputFormat::Lmdb, {}}),
                         [](const auto& one) { return std::string(one.param.name); });

TEST(StoredValuesTest, HalfAndBfloat16RoundToNearestEven) {
  const std::vector<double> values{1.0, 1.00048828125, 1.00146484375, 65519.0, 0x1p-25, 0x1.8p-25, -0x1p-14, std::nan("")};
  std::vector<std::byte> bytes(2 * values.size());
  store_values(values.data(), values.size(), Dtype::F16, bytes.data());
  const auto half = [&](size_t i) {
    uint16_t bits = 0;
    std::memcpy(&bits, bytes.data() + 2 * i, 2);
    return half_to_double(bits);
  };
  EXPECT_EQ(half(0), 1.0);
  EXPECT_EQ(half(1), 1.0);          // a tie, down to even
  EXPECT_EQ(half(2), 1.001953125);  // a tie, up to even
  EXPECT_EQ(half(3), 65504.0);
  EXPECT_EQ(half(4), 0.0);
  EXPECT_EQ(half(5), 0x1p-24);
  EXPECT_EQ(half(6), -0x1p-14);
  EXPECT_TRUE(std::isnan(half(7)));
}

TEST(ConvertTest, OutputIsCompleteOrAbsent) {
  const DataFolder folder;
  write_field_file(folder / "a.h5", {});
  ConvertOptions options;
  options.format = OutputFormat::Zarr3;
  convert_arrays(folder / "a.h5", folder / "a.zarr", options);
  EXPECT_THAT([&] { convert_arrays(folder / "a.h5", folder / "a.zarr", options); },
              ThrowsMessage<DataError>(HasSubstr("the output exists")));
  write_npy(folder / "big.npy", {2, 2}, std::vector<float>{1, 2, 3, 1e6f});
  options.dtype = Dtype::F16;
  EXPECT_THAT([&] { convert_arrays(folder / "big.npy", folder / "half", options); },
              ThrowsMessage<DataError>(HasSubstr("value=1000000, dtype=F16. Choose a wider --dtype")));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 3);  // nothing half-written
}

TEST(ConvertTest, AutoChunksAreMeasuredAndTheFastestIsTaken) {
  const DataFolder folder;
  write_field_file(folder / "a.h5", {.steps = 3, .channels = 2, .height = 32, .width = 64});
  ConvertOptions options;
  options.format = OutputFormat::Zarr3;
  options.auto_chunk = true;
  const ConvertReport report = convert_arrays(folder / "a.h5", folder / "a.zarr", options);
  ASSERT_GE(report.probes.size(), 2u);
  EXPECT_EQ(std::ranges::count_if(report.probes, &ProbeRow::chosen), 1);
  const auto taken = std::ranges::find_if(report.probes, &ProbeRow::chosen);
  EXPECT_EQ(open_array_file(folder / "a.zarr").array("fields")->facts().chunk, taken->chunk);
}

TEST(ArrayViewsTest, NamedAxesMayStandInAnyOrder) {
  const DataFolder folder;
  write_npy(folder / "a.npy", {2, 3, 4, 5}, counting(120));
  std::ofstream(folder / "a.npy.json")
      << R"({"arrays": {"fields": {"axes": ["time", "lat", "lon", "channel"], "attributes": {"units": ["K", "K", "K", "K", "K"]}}}})";
  const FieldFile file(folder / "a.npy");
  EXPECT_EQ(file.facts().channels, 5);
  EXPECT_EQ(file.facts().height, 3);
  std::vector<float> values(12);  // all of one channel at one time
  const StoredArray& fields = file.fields();
  fields.read({{1, 2, 0, 0}, {2, 3, 3, 4}}, std::span<float>(values));
  EXPECT_EQ(values[5], 60 + 1 * 20 + 1 * 5 + 2);
}

TEST(ArrayFileTest, ContentDecidesAndNamesDoNot) {
  const DataFolder folder;
  write_npy(folder / "a.h5", {3}, counting(3));
  EXPECT_EQ(array_format_of(folder / "a.h5"), ArrayFormat::Npy);
  std::ofstream(folder / "noise") << "no array at all";
  EXPECT_THAT([&] { open_array_file(folder / "noise"); },
              ThrowsMessage<DataError>(HasSubstr("known=HDF5, npy, Zarr, WebDataset tar, LMDB, raw with a sidecar")));
}

TEST(ShardIndexTest, PlacesBeyondTheFileAreRefused) {
  std::vector<std::byte> index(32, std::byte{255});
  EXPECT_EQ(parse_shard_index(index, false, 100)[1].size, 0u);
  const uint64_t place[2] = {90, 11};
  std::memcpy(index.data() + 16, place, 16);
  EXPECT_THROW(parse_shard_index(index, false, 100), CodecFailure);
  EXPECT_EQ(parse_shard_index(index, false, 101)[1].offset, 90u);
}

}  // namespace
}  // namespace welkin::data::tests
