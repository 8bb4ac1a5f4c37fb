// SPDX-License-Identifier: Apache-2.0
#include "data/formats/hdf5/hdf5_chunks.h"

#include <gmock/gmock.h>
#include <hdf5.h>

#include <fstream>
#include <thread>

#include "core/error.h"
#include "core/text.h"
#include "data/datasets/box_array.h"
#include "data/datasets/field_file.h"
#include "data/formats/array_file.h"
#include "data/formats/hdf5/hdf5_filters.h"
#include "data_files.h"

namespace welkin::data::tests {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

struct ChunkedSpec {
  Extents shape{5, 7, 9}, chunk{2, 3, 4};
  std::vector<std::string> filters{};  // in the writer's order
  size_t rows_written = 5;             // of the first axis; the rest keeps the fill value
  bool masked_first = false;           // the first chunk is stored raw, its filters excepted by the mask
};

int64_t chunk_bytes(const ChunkedSpec& spec) { return spec.chunk[0] * spec.chunk[1] * spec.chunk[2] * 4; }

std::optional<Codec> plug_in_codec(const std::string& name) {
  if (name == "zstd") return Codec{.kind = CodecKind::Zstd, .level = 3};
  if (name == "lz4") return Codec{.kind = CodecKind::Lz4Blocks};
  if (name == "blosc_lz4") return Codec{.kind = CodecKind::Blosc, .width = 4};
  if (name == "blosc_zstd_bits") return Codec{.kind = CodecKind::Blosc, .width = 4, .compressor = "zstd", .shuffle = 2};
  if (name == "blosc_plain") return Codec{.kind = CodecKind::Blosc, .width = 4, .compressor = "blosclz", .shuffle = 0};
  return std::nullopt;
}

// Written through the C API, for orders of filters that Hdf5File does not write. Values count.
void write_chunked(const std::filesystem::path& path, const ChunkedSpec& spec) {
  const Hdf5Lock lock;
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const std::vector<hsize_t> shape(spec.shape.begin(), spec.shape.end()), chunk(spec.chunk.begin(), spec.chunk.end());
  const hid_t space = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
  const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(list, static_cast<int>(chunk.size()), chunk.data());
  const float fill = -7;
  H5Pset_fill_value(list, H5T_NATIVE_FLOAT, &fill);
  for (const std::string& filter : spec.filters) {
    if (filter == "shuffle") H5Pset_shuffle(list);
    if (filter == "deflate") H5Pset_deflate(list, 4);
    if (filter == "fletcher32") H5Pset_fletcher32(list);
    if (filter == "nbit") H5Pset_nbit(list);
    if (const auto codec = plug_in_codec(filter)) {
      const Hdf5FilterSettings settings = hdf5_filter_of(*codec, static_cast<size_t>(chunk_bytes(spec)));
      H5Pset_filter(list, settings.filter, H5Z_FLAG_OPTIONAL, settings.parameters.size(), settings.parameters.data());
    }
  }
  const hid_t set = H5Dcreate2(file, "x", H5T_IEEE_F32LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
  auto part = shape;
  part[0] = spec.rows_written;
  const std::vector<hsize_t> origin(shape.size(), 0);
  H5Sselect_hyperslab(space, H5S_SELECT_SET, origin.data(), nullptr, part.data(), nullptr);
  const hid_t memory = H5Screate_simple(static_cast<int>(part.size()), part.data(), nullptr);
  int64_t count = 1;
  for (const hsize_t size : part) count *= static_cast<int64_t>(size);
  const auto values = counting(count);
  ASSERT_GE(H5Dwrite(set, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT, values.data()), 0);
  if (spec.masked_first) {
    const std::vector<float> raw(static_cast<size_t>(chunk[0] * chunk[1] * chunk[2]), 42.0f);
    ASSERT_GE(H5Dwrite_chunk(set, H5P_DEFAULT, (1u << spec.filters.size()) - 1, origin.data(), raw.size() * 4, raw.data()), 0);
  }
  for (const hid_t id : {set, list, space, memory, file}) H5Idec_ref(id);
}

StoredArrayPtr open_chunks(const std::filesystem::path& path, size_t cache_bytes = 1 << 20) {
  return open_array_file(path, std::make_shared<ChunkCache>(cache_bytes)).array("x");
}

std::vector<float> read_slab(const StoredArray& array, const Extents& begin, const Extents& extent) {
  ArrayRegion region{begin, begin};
  for (size_t a = 0; a < extent.size(); ++a) region.end[a] += extent[a];
  std::vector<float> values(static_cast<size_t>(region.num_values()));
  array.read(region, values);
  return values;
}

// Slabs of a few shapes, against the library.
void expect_equal_to_library(const std::filesystem::path& path) {
  const Hdf5File library = Hdf5File::open(path);
  const auto chunks = open_chunks(path, 1 << 10);
  const Extents shape = chunks->facts().shape;
  for (const Extents& extent : {Extents{1, 1, 1}, Extents{2, 3, 4}, Extents{3, 7, 5}, shape}) {
    for (int64_t a = 0; a + extent[0] <= shape[0]; ++a) {
      const Extents begin{a, shape[1] - extent[1], (shape[2] - extent[2]) / 2};
      std::vector<float> wanted(static_cast<size_t>(extent[0] * extent[1] * extent[2]));
      library.read("x", begin, extent, std::span(wanted));
      EXPECT_EQ(read_slab(*chunks, begin, extent), wanted) << path << " from " << a;
    }
  }
}

// Bytes that our own reading asked the file for; 0 where the library read.
uint64_t read_counted(const std::filesystem::path& path) {
  const auto array = open_chunks(path);
  const uint64_t before = array->bytes_requested();
  read_slab(*array, Extents(array->facts().shape.size(), 0), Extents(array->facts().shape.size(), 1));
  return array->bytes_requested() - before;
}

TEST(Hdf5Chunks, ReadWhatTheLibraryReads) {
  const DataFolder folder;
  const std::vector<std::vector<std::string>> orders{
      {},
      {"deflate"},
      {"shuffle"},
      {"shuffle", "deflate"},
      {"deflate", "shuffle"},
      {"fletcher32"},
      {"shuffle", "deflate", "fletcher32"},
      {"fletcher32", "shuffle", "deflate"},
      {"zstd"},
      {"shuffle", "zstd"},
      {"lz4"},
      {"shuffle", "lz4", "fletcher32"},
      {"fletcher32", "lz4"},
      {"blosc_lz4"},
      {"blosc_zstd_bits"},
      {"blosc_plain"},
      {"fletcher32", "blosc_lz4"},
  };
  for (const auto& filters : orders) {
    const auto path = folder / (join(filters, "_") + ".h5");
    write_chunked(path, {.shape = {9, 7, 90}, .chunk = {2, 3, 40}, .filters = filters, .rows_written = 9});
    EXPECT_GT(read_counted(path), 0u) << "the bytes were not read by us";
    expect_equal_to_library(path);
  }
}

TEST(Hdf5Chunks, ChunksThatWereNeverWrittenHoldTheFillValue) {
  const DataFolder folder;
  write_chunked(folder / "a.h5", {.filters = {"deflate"}, .rows_written = 2});
  expect_equal_to_library(folder / "a.h5");
  EXPECT_EQ(read_slab(*open_chunks(folder / "a.h5"), {4, 0, 0}, {1, 1, 1}).front(), -7.0f);
}

TEST(Hdf5Chunks, AFilterThatTheMaskExceptsIsNotUndone) {
  const DataFolder folder;
  write_chunked(folder / "a.h5", {.filters = {"shuffle", "deflate"}, .masked_first = true});
  expect_equal_to_library(folder / "a.h5");
  EXPECT_EQ(read_slab(*open_chunks(folder / "a.h5"), {0, 0, 0}, {1, 1, 1}).front(), 42.0f);
}

TEST(Hdf5Chunks, OtherNumberTypesAreConverted) {
  const DataFolder folder;
  for (const Hdf5Type type : {Hdf5Type::Float64, Hdf5Type::Int32, Hdf5Type::Int64}) {
    const auto path = folder / cat(static_cast<int>(type), ".h5");
    Hdf5File file = Hdf5File::create(path);
    file.create_dataset("x", {.type = type, .shape = {5, 7, 9}, .chunk = {2, 3, 4}, .deflate = 1});
    file.write("x", {0, 0, 0}, {5, 7, 9}, std::span<const float>(counting(5 * 7 * 9)));
    file.close();
    EXPECT_GT(read_counted(path), 0u);
    expect_equal_to_library(path);
  }
}

TEST(Hdf5Chunks, OtherFiltersAreLeftToTheLibrary) {
  const DataFolder folder;
  write_chunked(folder / "a.h5", {.filters = {"nbit"}});
  EXPECT_EQ(read_counted(folder / "a.h5"), 0u);
  expect_equal_to_library(folder / "a.h5");
}

// Any number of threads at once, with a cache that must evict.
TEST(Hdf5Chunks, ThreadsReadTheSame) {
  const DataFolder folder;
  write_chunked(folder / "a.h5", {.filters = {"shuffle", "deflate"}});
  const auto chunks = open_chunks(folder / "a.h5", 3 * 24 * sizeof(float));
  const std::vector<float> wanted = read_slab(*chunks, {0, 0, 0}, {5, 7, 9});
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) EXPECT_EQ(read_slab(*chunks, {0, 0, 0}, {5, 7, 9}), wanted);
    });
  }
}

// A step that is needed twice is read and decoded once.
TEST(Hdf5Chunks, TheCacheSavesReading) {
  const DataFolder folder;
  write_field_file(folder / "a.h5", {.steps = 3, .chunked = true});
  const FieldFile file(folder / "a.h5");
  std::vector<float> out(2 * 4 * 6);
  file.read(1, {0, 2}, {0, 0, 4, 6}, out);
  const uint64_t once = file.bytes_requested();
  file.read(1, {0, 2}, {0, 0, 4, 6}, out);
  EXPECT_EQ(file.bytes_requested(), once);
  EXPECT_EQ(out.front(), 48.0f);
}

TEST(ChunkCache, AnArrayThatIsGoneLeavesNothingToTheNextAtItsAddress) {
  const DataFolder folder;
  write_chunked(folder / "whole.h5", {});
  write_chunked(folder / "empty.h5", {.rows_written = 0});
  const auto cache = std::make_shared<ChunkCache>(1 << 20);
  for (int round = 0; round < 20; ++round) {
    for (const auto& [name, last] : {std::pair{"whole.h5", 314.0f}, std::pair{"empty.h5", -7.0f}}) {
      const ArrayFile file = open_array_file(folder / name, cache);  // one after the other, as an archive looks at its files
      EXPECT_EQ(read_slab(*file.array("x"), {0, 0, 0}, {5, 7, 9}).back(), last) << name << ", round " << round;
    }
  }
}

TEST(ChunkCache, HoldsNoMoreThanItMay) {
  ChunkCache cache(40);
  for (int64_t i = 0; i < 5; ++i) cache.insert({0, i}, std::make_shared<ByteBuffer>(16));
  EXPECT_EQ(cache.held_bytes(), 32u);
  EXPECT_EQ(cache.find({0, 2}), nullptr) << "the oldest go first";
  EXPECT_NE(cache.find({0, 3}), nullptr);
  cache.insert({0, 9}, std::make_shared<ByteBuffer>(16));
  EXPECT_NE(cache.find({0, 3}), nullptr) << "it was used after number 4";
  cache.insert({0, 10}, std::make_shared<ByteBuffer>(41));
  EXPECT_EQ(cache.find({0, 10}), nullptr) << "larger than the whole cache";
}

// Where the first chunk of `x` lies.
ChunkPlace first_place(const std::filesystem::path& path) { return Hdf5File::open(path).chunk_place("x", {0, 0, 0}); }

void flip_byte(const std::filesystem::path& path, uint64_t offset) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(offset));
  const char byte = static_cast<char>(file.get() ^ 0x5a);
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(byte);
}

TEST(Hdf5Chunks, DamageNamesFileDatasetChunkAndOffset) {
  const DataFolder folder;
  write_chunked(folder / "a.h5", {.filters = {"shuffle", "deflate"}});
  const ChunkPlace place = first_place(folder / "a.h5");
  flip_byte(folder / "a.h5", place.offset + place.bytes / 2);
  EXPECT_THAT(
      [&] {
        read_slab(*open_chunks(folder / "a.h5"), {0, 0, 0}, {1, 1, 1});
      },
      ThrowsMessage<DataError>(
          AllOf(HasSubstr(cat("[hdf5] a damaged chunk: path=", (folder / "a.h5").string(), ", dataset=x, chunk_from=(0, 0, 0), ",
                              "offset=", place.offset, ", bytes=", place.bytes, ", reason=deflate: damaged data")),
                HasSubstr("Copy or make the file again"))));
  write_chunked(folder / "b.h5", {.filters = {"fletcher32"}});
  flip_byte(folder / "b.h5", first_place(folder / "b.h5").offset + 5);
  EXPECT_THAT(
      [&] {
        read_slab(*open_chunks(folder / "b.h5"), {0, 0, 0}, {1, 1, 1});
      },
      ThrowsMessage<DataError>(HasSubstr("reason=fletcher32: the checksum does not fit")));
}

// No byte of a chunk of any codec may be changed unseen by more than its values: the result is values or a DataError that says
// where; with a checksum behind the codec it is always the error.
TEST(Hdf5Chunks, EveryFlippedByteOfEveryCodecEndsCleanly) {
  const DataFolder folder;
  for (const std::string codec : {"deflate", "zstd", "lz4", "blosc_lz4", "blosc_zstd_bits"}) {
    for (const bool checked : {false, true}) {
      const auto path = folder / (codec + (checked ? "_checked.h5" : ".h5"));
      std::vector<std::string> filters{"shuffle", codec};
      if (checked) filters.emplace_back("fletcher32");
      write_chunked(path, {.shape = {2, 7, 90}, .chunk = {2, 7, 90}, .filters = filters, .rows_written = 2});
      const ChunkPlace place = first_place(path);
      int64_t refused = 0, read = 0;
      for (uint64_t i = 0; i < place.bytes; i += std::max<uint64_t>(1, place.bytes / 97)) {
        flip_byte(path, place.offset + i);
        try {
          read_slab(*open_chunks(path), {0, 0, 0}, {2, 7, 90});
          ++read;
        } catch (const DataError& error) {
          EXPECT_THAT(error.what(), AllOf(HasSubstr("a damaged chunk: path="), HasSubstr(cat("offset=", place.offset))));
          ++refused;
        }
        flip_byte(path, place.offset + i);
      }
      EXPECT_GT(refused, 0) << path;
      if (checked) {
        EXPECT_EQ(read, 0) << path;
      }
    }
  }
}

TEST(Hdf5Chunks, AFileCutShortWhileItIsReadIsAnError) {
  const DataFolder folder;
  write_chunked(folder / "a.h5", {.filters = {"deflate"}});
  const auto chunks = open_chunks(folder / "a.h5");
  std::filesystem::resize_file(folder / "a.h5", first_place(folder / "a.h5").offset + 3);
  EXPECT_THAT(
      [&] {
        read_slab(*chunks, {0, 0, 0}, {1, 1, 1});
      },
      ThrowsMessage<DataError>(HasSubstr("the file was truncated or written to while it was being read")));
}

// A turned crop of a chunked box equals that of the same box in one piece.
TEST(Hdf5Chunks, BoxesAreTurnedAlike) {
  const DataFolder folder;
  for (const bool chunked : {false, true}) {
    Hdf5File file = Hdf5File::create(folder / (chunked ? "b.h5" : "a.h5"));
    const Extents shape{2, 6, 6, 6};
    file.create_dataset("Nbody",
                        {.shape = shape, .chunk = chunked ? Extents{1, 4, 4, 4} : Extents{}, .deflate = chunked ? 1 : 0});
    file.write("Nbody", {0, 0, 0, 0}, shape, std::span<const float>(counting(2 * 216)));
    file.close();
  }
  const auto plain = open_box(open_array_file(folder / "a.h5"), "Nbody"),
             chunked = open_box(open_array_file(folder / "b.h5"), "Nbody");
  const std::vector<int64_t> channels{0, 1};
  for (const int32_t index : {0, 5, 17, 40}) {
    std::vector<float> wanted(2 * 27), got(2 * 27);
    BoxPiece piece{
        .first = {3, 3, 3}, .extent = {3, 3, 3}, .turn = orientation(index), .channels = channels.data(), .num_channels = 2};
    piece.to_stride = {27, 9, 3, 1};
    piece.to = wanted.data();
    plain->read(piece);
    piece.to = got.data();
    chunked->read(piece);
    EXPECT_EQ(got, wanted) << index;
  }
}

}  // namespace
}  // namespace welkin::data::tests
