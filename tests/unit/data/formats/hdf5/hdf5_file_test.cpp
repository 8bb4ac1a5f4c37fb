// SPDX-License-Identifier: Apache-2.0
#include "data/formats/hdf5/hdf5_file.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "core/error.h"
#include "core/file.h"
#include "data_files.h"

namespace welkin::data::tests {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::vector<float> read_all(const Hdf5File& file, const std::string& name) {
  const Extents shape = file.dataset(name).shape;
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  std::vector<float> values(static_cast<size_t>(count));
  file.read(name, Extents(shape.size(), 0), shape, std::span<float>(values));
  return values;
}

TEST(Hdf5FileTest, WritesAndReadsHyperslabsOfEveryLayout) {
  const DataFolder folder;
  Hdf5File out = Hdf5File::create(folder / "a.h5");
  out.create_dataset("plain", {.shape = {3, 4}});
  out.create_dataset("packed", {.shape = {3, 4}, .chunk = {1, 4}, .deflate = 4});
  out.create_dataset("double", {.type = Hdf5Type::Float64, .shape = {3, 4}});
  for (const char* name : {"plain", "packed", "double"}) {
    out.write(name, {0, 0}, {3, 4}, std::span<const float>(counting(12)));
    const std::vector<float> row{-1, -2};
    out.write(name, {1, 1}, {1, 2}, std::span<const float>(row));
  }
  out.close();
  const Hdf5File in = Hdf5File::open(folder / "a.h5");
  EXPECT_THAT(in.dataset_names(), ElementsAre("double", "packed", "plain"));
  for (const char* name : {"plain", "packed", "double"}) {
    EXPECT_THAT(read_all(in, name), ElementsAre(0, 1, 2, 3, 4, -1, -2, 7, 8, 9, 10, 11)) << name;
    std::vector<float> part(4);
    in.read(name, {1, 2}, {2, 2}, std::span<float>(part));
    EXPECT_THAT(part, ElementsAre(-2, 7, 10, 11)) << name;
  }
}

// HDF5 stamps objects with the second of their writing unless it is told not to: the clock moves on in between.
TEST(Hdf5FileTest, TheSameValuesAreTheSameBytesAtAnyTime) {
  const DataFolder folder;
  for (const char* name : {"first.h5", "second.h5"}) {
    Hdf5File out = Hdf5File::create(folder / name);
    out.create_dataset("plain", {.shape = {8}});
    out.write("plain", {0}, {8}, std::span<const float>(counting(8)));
    out.set_string("plain", "units", "K");
    out.close();
    std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  }
  EXPECT_EQ(read_file(folder / "first.h5", 1 << 20), read_file(folder / "second.h5", 1 << 20));
}

TEST(Hdf5FileTest, FactsTellLayoutAndPlace) {
  const DataFolder folder;
  Hdf5File out = Hdf5File::create(folder / "a.h5");
  out.create_dataset("plain", {.shape = {3, 4}});
  out.write("plain", {0, 0}, {3, 4}, std::span<const float>(counting(12)));
  out.create_dataset("packed", {.type = Hdf5Type::Float64, .shape = {2, 4}, .chunk = {1, 4}, .growing = true, .deflate = 4});
  out.close();
  const Hdf5File in = Hdf5File::open(folder / "a.h5");
  const Hdf5Dataset plain = in.dataset("plain");
  EXPECT_TRUE(plain.is_float32_le);
  ASSERT_TRUE(plain.offset.has_value());
  std::ifstream bytes(folder / "a.h5", std::ios::binary);
  bytes.seekg(static_cast<std::streamoff>(*plain.offset) + 4 * 5);
  float sixth = 0;
  bytes.read(reinterpret_cast<char*>(&sixth), sizeof(sixth));
  EXPECT_EQ(sixth, 5.0f) << "the offset must point at the first value";
  const Hdf5Dataset packed = in.dataset("packed");
  EXPECT_FALSE(packed.offset.has_value());
  EXPECT_EQ(packed.dtype, "float64");
  EXPECT_THAT(packed.chunk, ElementsAre(1, 4));
  EXPECT_THAT(packed.max_shape, ElementsAre(-1, 4));
  EXPECT_THAT(packed.filters, ElementsAre("shuffle", "deflate"));
}

TEST(Hdf5FileTest, TheFirstAxisGrows) {
  const DataFolder folder;
  Hdf5File out = Hdf5File::create(folder / "a.h5");
  out.create_dataset("fields", {.shape = {0, 2}, .chunk = {1, 2}, .growing = true});
  for (int64_t step = 0; step < 3; ++step) {
    out.extend("fields", step + 1);
    const std::vector<float> row{static_cast<float>(step), static_cast<float>(-step)};
    out.write("fields", {step, 0}, {1, 2}, std::span<const float>(row));
  }
  out.close();
  EXPECT_THAT(read_all(Hdf5File::open(folder / "a.h5"), "fields"), ElementsAre(0, -0.0f, 1, -1, 2, -2));
}

TEST(Hdf5FileTest, AttributesComeBack) {
  const DataFolder folder;
  Hdf5File out = Hdf5File::create(folder / "a.h5");
  out.create_dataset("fields", {.shape = {1}});
  out.set_strings("fields", "channels", {"t2m", "\xC3\xBC", ""});
  out.set_string("/", "title", "a file");
  out.set_string("/", "title", "another");
  out.set_number("/", "edge", 0.5);
  out.set_integer("/", "seed", int64_t{1} << 40);
  out.close();
  const Hdf5File in = Hdf5File::open(folder / "a.h5");
  EXPECT_THAT(in.strings("fields", "channels"), ElementsAre("t2m", "\xC3\xBC", ""));
  EXPECT_THAT(in.strings("/", "title"), ElementsAre("another"));
  EXPECT_THAT(in.numbers("/", "edge"), ElementsAre(0.5));
  EXPECT_THAT(in.numbers("/", "seed"), ElementsAre(1099511627776.0));
  EXPECT_THAT(in.attribute_names("/"), ElementsAre("edge", "seed", "title"));
  EXPECT_FALSE(in.has_attribute("/", "absent"));
  EXPECT_THAT([&] { in.numbers("/", "title"); }, ThrowsMessage<DataError>(HasSubstr("attribute title as numbers")));
  EXPECT_THAT([&] { in.strings("/", "absent"); }, ThrowsMessage<DataError>(HasSubstr("cannot open the attribute absent")));
}

TEST(Hdf5FileTest, ErrorsNameFileDataSetAndReason) {
  const DataFolder folder;
  write_field_file(folder / "a.h5", {});
  const Hdf5File in = Hdf5File::open(folder / "a.h5");
  std::vector<float> values(4);
  EXPECT_THAT(
      [&] {
        in.read("fields", {6, 0, 0, 0}, {1, 1, 1, 4}, std::span<float>(values));
      },
      ThrowsMessage<DataError>(HasSubstr("[hdf5] a read or write outside the data set: path=" + (folder / "a.h5").string() +
                                         ", dataset=fields, begin=(6, 0, 0, 0), extent=(1, 1, 1, 4), shape=(6, 2, 4, 6)")));
  EXPECT_THAT([&] { in.read("absent", {0}, {4}, std::span<float>(values)); },
              ThrowsMessage<DataError>(HasSubstr("cannot open the data set")));
  EXPECT_THAT([&] { Hdf5File::open(folder / "b.h5"); }, ThrowsMessage<DataError>(HasSubstr("reason=No such file or directory")));
  std::ofstream(folder / "text.h5") << std::string(4096, 'x');
  EXPECT_THAT([&] { Hdf5File::open(folder / "text.h5"); }, ThrowsMessage<DataError>(HasSubstr("file signature not found")));
  std::filesystem::copy_file(folder / "a.h5", folder / "cut.h5");
  std::filesystem::resize_file(folder / "cut.h5", 900);
  EXPECT_THAT([&] { Hdf5File::open(folder / "cut.h5"); }, ThrowsMessage<DataError>(HasSubstr("truncated file")));
}

// The library itself takes such a chunk and reads far beyond the memory of a decoded one.
TEST(Hdf5FileTest, ChunksLargerThanTheirDatasetAreRefused) {
  const DataFolder folder;
  Hdf5File out = Hdf5File::create(folder / "a.h5");
  out.create_dataset("fields", {.type = Hdf5Type::Float32, .shape = {4, 3, 5, 7}, .chunk = {2, 3, 5, 7}});
  out.write("fields", {0, 0, 0, 0}, {4, 3, 5, 7}, std::span<const float>(std::vector<float>(4 * 3 * 5 * 7)));
  out.close();
  std::string bytes = read_file(folder / "a.h5", 1 << 20);
  const std::vector<uint32_t> extents{2, 3, 5, 7, 4};  // of a chunk, with the bytes of a value
  const size_t at = bytes.find(std::string(reinterpret_cast<const char*>(extents.data()), 4 * extents.size()));
  ASSERT_NE(at, std::string::npos);
  bytes[at + 14] = 1;  // 7 + 65536
  write_file_atomically(folder / "b.h5", bytes);
  EXPECT_NO_THROW(Hdf5File::open(folder / "a.h5").dataset("fields"));
  EXPECT_THAT([&] { Hdf5File::open(folder / "b.h5").dataset("fields"); },
              ThrowsMessage<DataError>(HasSubstr("dataset=fields, chunk=2x3x5x65543, most=4x3x5x7. The file is damaged")));
}

TEST(Hdf5FileTest, FullDiskIsAnError) {
  const DataFolder folder;
  struct rlimit before {};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limited{1 << 16, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &limited);
  std::string message = "no error";
  try {
    Hdf5File out = Hdf5File::create(folder / "a.h5");
    out.create_dataset("fields", {.shape = {1 << 20}});
    out.write("fields", {0}, {1 << 20}, std::span<const float>(counting(1 << 20)));
    out.close();
  } catch (const DataError& error) {
    message = error.what();
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(message, HasSubstr("path=" + (folder / "a.h5").string()));
  EXPECT_THAT(message, HasSubstr("the disk is not full"));
}

TEST(Hdf5FileTest, ManyThreadsReadOneFile) {
  const DataFolder folder;
  write_field_file(folder / "a.h5", {.steps = 32, .chunked = true});
  const Hdf5File in = Hdf5File::open(folder / "a.h5");
  std::vector<std::jthread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int64_t step = 0; step < 32; ++step) {
        std::vector<float> values(48);
        in.read("fields", {step, 0, 0, 0}, {1, 2, 4, 6}, std::span<float>(values));
        wrong += values[0] != static_cast<float>(step * 48);
      }
    });
  }
  threads.clear();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace welkin::data::tests
