// SPDX-License-Identifier: Apache-2.0
#include "core/archive/torch_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "core/archive/torch_writer.h"
#include "core/error.h"
#include "core/text.h"
#include "zip_file.h"

namespace welkin::archive {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

template <typename T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

ZipWriter::Producer emitting(const std::vector<float>& values) {
  return [&values](const ZipWriter::Emit& emit) { emit(bytes_of(values)); };
}

std::string written(const TorchWriter& writer) {
  const fs::path path = fs::temp_directory_path() / ("welkin_pt_" + std::to_string(std::random_device{}()));
  writer.write(path);
  std::string bytes = read_file(path, 1 << 24);
  fs::remove(path);
  return bytes;
}

std::vector<float> floats_of(const TorchContent& file, std::string_view name) {
  const PickleNode* node = file.pickle().find(file.pickle().top(), name);
  EXPECT_NE(node, nullptr) << name;
  const auto bytes = file.row_major(*node);
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::string two_tensors() {
  static const std::vector<float> a = {1, 2, 3, 4, 5, 6}, none;
  TorchWriter writer;
  writer.begin_dict();
  writer.text("a");
  writer.tensor(Dtype::F32, {2, 3}, emitting(a));
  writer.text("none");
  writer.tensor(Dtype::F32, {0, 3}, emitting(none));
  writer.text("epoch");
  writer.integer(-5'000'000'000);
  writer.text("rate");
  writer.number(0.25);
  writer.end_dict();
  return written(writer);
}

TEST(TorchFile, BringsBackWhatWasWritten) {
  const std::string bytes = two_tensors();
  const TorchContent file(as_byte_span(bytes), "x.pt");
  EXPECT_FALSE(file.is_legacy());
  EXPECT_THAT(floats_of(file, "a"), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_TRUE(floats_of(file, "none").empty());
  EXPECT_EQ(file.pickle().find(file.pickle().top(), "epoch")->integer, -5'000'000'000);
  EXPECT_EQ(file.pickle().find(file.pickle().top(), "rate")->number, 0.25);
}

// data.pkl of {"a": a tensor of this shape, strides and offset over `elements` floats}
std::string pickle_of(const std::string& shape, const std::string& strides, char offset, char elements) {
  return cat(
      "\x80\x02}(\x8c\x01"
      "actorch._utils\n_rebuild_tensor_v2\n((\x8c\x07storagectorch\nFloatStorage\n\x8c\x01"
      "0\x8c\x03"
      "cpuK",
      elements, "tQK", offset, "(", shape, "t(", strides, "t\x89}tRu.");
}

std::string archive_of(const std::string& pickle, const std::string& storage) {
  return zip_file({{"m/data.pkl", pickle}, {"m/data/0", storage}, {"m/version", "3\n"}});
}

std::string floats(int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i) {
    const auto value = static_cast<float>(i);
    bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  return bytes;
}

TEST(TorchFile, ReadsTransposedAndOffsetTensors) {
  const std::string bytes = archive_of(pickle_of("K\3K\2", "K\1K\3", 2, 10), floats(10));
  EXPECT_THAT(floats_of(TorchContent(as_byte_span(bytes), "x.pt"), "a"), ElementsAre(2, 5, 3, 6, 4, 7));
}

TEST(TorchFile, ReadsAnExpandedTensorButNotABomb) {
  const std::string few = archive_of(pickle_of("K\2K\3", std::string("K\0K\1", 4), 0, 3), floats(3));
  EXPECT_THAT(floats_of(TorchContent(as_byte_span(few), "x.pt"), "a"), ElementsAre(0, 1, 2, 0, 1, 2));
  const std::string bomb = archive_of(pickle_of("J\xff\xff\xff\x7f"
                                                "K\3",
                                                std::string("K\0K\1", 4), 0, 3),
                                      floats(3));
  EXPECT_THAT(
      [&] { floats_of(TorchContent(as_byte_span(bomb), "x.pt"), "a"); },
      ThrowsMessage<DataError>(HasSubstr("[torch file] a tensor repeats few stored bytes: bytes=25769803764, stored=12")));
}

void expect_refused(const std::string& bytes, const char* message) {
  EXPECT_THAT([&] { TorchContent(as_byte_span(bytes), "x.pt"); }, ThrowsMessage<DataError>(HasSubstr(message)));
}

TEST(TorchFile, RefusesBadArchives) {
  const std::string good = pickle_of("K\2", "K\1", 0, 3);
  expect_refused(archive_of(good, floats(2)), "a storage has another size than its tensors say: claimed bytes=12, bytes=8");
  expect_refused(zip_file({{"m/data.pkl", good}}), "a storage is missing: elements=3");
  expect_refused(zip_file({{"m/other", ""}}), "it is a zip file without data.pkl");
  expect_refused(zip_file({{"m/data.pkl", good}, {"n/data.pkl", good}, {"m/data/0", floats(3)}}), "it holds two data.pkl");
  expect_refused(
      zip_file({{"m/data.pkl", good}, {"m/byteorder", "big"}, {"m/data/0", floats(3)}}),
      "its numbers are big endian (record byteorder), file=x.pt. Load and save it in PyTorch on a little-endian machine");
  expect_refused("neither", "it is neither a zip nor a legacy file of torch.save");
  const std::string whole = two_tensors();
  for (const size_t size : {size_t{0}, size_t{10}, whole.size() / 2, whole.size() - 1}) {
    expect_refused(whole.substr(0, size), size < 4 ? "neither a zip" : "cut short");
  }
}

TEST(TorchFile, ADamagedTensorIsFoundWhenItIsRead) {
  std::string bytes = two_tensors();
  const std::string value = floats(3).substr(4);  // 1.0f, 2.0f
  bytes[bytes.find(value)] ^= 1;
  const TorchContent file(as_byte_span(bytes), "x.pt");
  EXPECT_THAT([&] { floats_of(file, "a"); }, ThrowsMessage<DataError>(HasSubstr("an entry is damaged: name=archive/data/0")));
}

// Magic number, protocol, system, value, keys, storages: what torch.save wrote before 1.6.
std::string legacy(const std::string& value, const std::string& tail, const std::string& little = "\x88") {
  return cat("\x80\x02\x8a\x0a", std::string("\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 10), ".\x80\x02M\xe9\x03.",
             "\x80\x02}(\x8c\x0dlittle_endian", little, "u.", value, tail);
}

std::string with_count(uint64_t count) { return {reinterpret_cast<const char*>(&count), sizeof(count)}; }

TEST(TorchFile, ReadsTheLegacyFormat) {
  const std::string value = pickle_of("K\3K\2", "K\1K\3", 2, 10);
  const std::string keys =
      "\x80\x02]\x8c\x01"
      "0a.";
  const std::string good = legacy(value, keys + with_count(10) + floats(10));
  const TorchContent file(as_byte_span(good), "x.pt");
  EXPECT_TRUE(file.is_legacy());
  EXPECT_THAT(floats_of(file, "a"), ElementsAre(2, 5, 3, 6, 4, 7));
  expect_refused(legacy(value, keys + with_count(10) + floats(9)), "the bytes end too early");
  expect_refused(legacy(value, keys + with_count(~uint64_t{0})), "a storage is too large");
  expect_refused(legacy(value, keys + with_count(9) + floats(9)), "claimed bytes=40, bytes=36");
  expect_refused(legacy(value, keys + with_count(10) + floats(10), "\x89"), "its numbers are big endian (little_endian)");
  expect_refused(legacy(value,
                        "\x80\x02]\x8c\x01"
                        "7a." +
                            with_count(0)),
                 "it holds a storage that no tensor uses");
}

}  // namespace
}  // namespace welkin::archive
