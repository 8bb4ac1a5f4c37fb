// SPDX-License-Identifier: Apache-2.0
#include "core/archive/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "core/error.h"
#include "core/hash.h"
#include "core/text.h"
#include "number_close.h"

namespace welkin {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

std::string file_with_header(std::string_view json, size_t data_bytes) {
  const uint64_t length = json.size();
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file + std::string(json) + std::string(data_bytes, 'd');
}

SafetensorsHeader parse_text(const std::string& file) { return parse_safetensors(as_byte_span(file), "x.safetensors"); }

TEST(Safetensors, ReadsTheExampleOfTheFormat) {
  const auto header = parse_text(file_with_header(
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[8,20]},"a":{"data_offsets":[0,8],"shape":[],"dtype":"F64"}}  )",
      20));
  EXPECT_EQ(header.metadata.at("format"), "pt");
  EXPECT_EQ(header.tensors.at("a").shape, std::vector<int64_t>{});
  EXPECT_EQ(header.tensors.at("b").dtype, Dtype::BF16);
  EXPECT_THAT(header.tensors.at("b").shape, ElementsAre(2, 3));
  EXPECT_EQ(header.tensors.at("b").begin, 8u);
}

TEST(Safetensors, AnEmptyFileOfTensorsIsLegal) { EXPECT_TRUE(parse_text(file_with_header("{}", 0)).tensors.empty()); }

struct BadFile {
  const char* name;
  std::string bytes;
  const char* message;
};

class BadSafetensors : public testing::TestWithParam<BadFile> {};

TEST_P(BadSafetensors, IsRefusedWithItsReason) {
  EXPECT_THAT([] { parse_text(GetParam().bytes); },
              ThrowsMessage<DataError>(
                  testing::AllOf(HasSubstr("[safetensors] "), HasSubstr(GetParam().message), HasSubstr("file=x.safetensors"))));
}

std::string one(std::string_view fields, size_t data_bytes) {
  return file_with_header(cat(R"({"t":{)", fields, "}}"), data_bytes);
}

INSTANTIATE_TEST_SUITE_P(
    All, BadSafetensors,
    testing::Values(
        BadFile{"Empty", "", "no room for a header: bytes=0"}, BadFile{"HugeHeader", std::string(8, '\xff'), "header too long"},
        BadFile{"CutHeader", file_with_header("{}", 0).substr(0, 9), "file ends inside its header: header bytes=2, file bytes=9"},
        BadFile{"NoJson", file_with_header("{\"t\":", 0), "not valid JSON at header byte"},
        BadFile{"TrailingJson", file_with_header("{}{}", 0), "not valid JSON"},
        BadFile{"NotUtf8", file_with_header("{\"\xff\":{}}", 0), "not valid JSON"},
        BadFile{"Array", file_with_header("[]", 0), "an array where none belongs"},
        BadFile{"Deep", file_with_header(std::string(1 << 20, '['), 0), "an array where none belongs"},
        BadFile{"DeepObjects", file_with_header(R"({"t":{"dtype":{"a":{}}}})", 0), "an object where none belongs, tensor='t'"},
        BadFile{"Dtype", one(R"("dtype":"F8","shape":[1],"data_offsets":[0,1])", 1), "dtype 'F8' is not one of F64 F32"},
        BadFile{"Missing", one(R"("dtype":"U8","shape":[1])", 1), "key missing: data_offsets, tensor='t'"},
        BadFile{"Unknown", one(R"("dtype":"U8","shape":[1],"strides":[1])", 1), "unknown key 'strides'"},
        BadFile{"TwiceField", one(R"("dtype":"U8","dtype":"U8")", 1), "key given twice: dtype"},
        BadFile{"TwiceName", file_with_header(R"({"t":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"t":{}})", 0),
                "name given twice, tensor='t'"},
        BadFile{"TwiceMetadata", file_with_header(R"({"__metadata__":{},"__metadata__":{}})", 0), "name given twice"},
        BadFile{"MetadataNumber", file_with_header(R"({"__metadata__":{"a":1}})", 0), "a number where none belongs"},
        BadFile{"Negative", one(R"("dtype":"U8","shape":[-1],"data_offsets":[0,1])", 1), "negative number: -1"},
        BadFile{"Float", one(R"("dtype":"U8","shape":[1.0],"data_offsets":[0,1])", 1), "not an unsigned integer: 1.0"},
        BadFile{"HugeNumber", one(R"("dtype":"U8","shape":[99999999999999999999],"data_offsets":[0,1])", 1),
                "not an unsigned integer"},
        BadFile{"HugeExtent", one(R"("dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,1])", 1), "extent too large"},
        BadFile{"WrappingShape", one(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0])", 0),
                "shape too large: tensor=t"},
        BadFile{"WrappingBytes", one(R"("dtype":"F64","shape":[4611686018427387904],"data_offsets":[0,0])", 0),
                "shape too large: tensor=t"},
        BadFile{"OneOffset", one(R"("dtype":"U8","shape":[1],"data_offsets":[0])", 1), "data_offsets has 1 numbers instead of 2"},
        BadFile{"Backwards", one(R"("dtype":"U8","shape":[1],"data_offsets":[1,0])", 1),
                "data out of range: tensor=t, begin=1, end=0"},
        BadFile{"BeyondEnd", one(R"("dtype":"U8","shape":[2],"data_offsets":[0,2])", 1),
                "data out of range: tensor=t, begin=0, end=2, data bytes=1"},
        BadFile{"WrongCount", one(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])", 4),
                "shape and bytes disagree: tensor=t, dtype=F32, shape=2, bytes wanted=8, bytes stored=4"},
        BadFile{
            "Overlap",
            file_with_header(
                R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
                4),
            "data overlaps: tensor=b, begin=2, previous end=3"},
        BadFile{
            "Hole",
            file_with_header(
                R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
                4),
            "bytes of no tensor: from=1, to=2"},
        BadFile{"LeftOver", one(R"("dtype":"U8","shape":[1],"data_offsets":[0,1])", 3), "bytes of no tensor: from=1, to=3"}),
    [](const auto& param_info) { return param_info.param.name; });

TEST(Safetensors, RefusesMoreExtentsThanAnyTensorHas) {
  std::string extents = "1";
  for (int i = 0; i < 32; ++i) extents += ",1";
  EXPECT_THAT([&] { parse_text(one(cat(R"("dtype":"U8","shape":[)", extents, R"(],"data_offsets":[0,1])"), 1)); },
              ThrowsMessage<DataError>(HasSubstr("more than 32 numbers in shape")));
}

class SafetensorsFolder : public testing::Test {
 protected:
  SafetensorsFolder() {
    std::string pattern = (fs::temp_directory_path() / "welkin_safetensors_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~SafetensorsFolder() override { fs::remove_all(folder_); }
  fs::path folder_;
};

TEST_F(SafetensorsFolder, WritesWhatItReads) {
  const std::vector<uint8_t> bytes{1, 2, 3};
  const std::vector<double> numbers{0.5, -1.0, 1e300, 4.0};
  SafetensorsWriter writer;
  writer.set_metadata("quote", "a \"b\"\n");
  writer.add("odd \"name\"", Dtype::U8, {3}, std::as_bytes(std::span(bytes)));
  writer.add("empty", Dtype::F32, {4, 0}, std::span<const std::byte>{});
  writer.add("pieces", Dtype::F64, {2, 2}, [&](const SafetensorsWriter::Emit& emit) {
    for (const double& number : numbers) emit(std::as_bytes(std::span(&number, 1)));
  });
  const uint64_t hash = writer.write(folder_ / "a.safetensors");
  EXPECT_EQ(hash, xxh3_64_of_file(folder_ / "a.safetensors"));

  const SafetensorsFile file(folder_ / "a.safetensors");
  EXPECT_THAT(file.names(), ElementsAre("pieces", "empty", "odd \"name\"")) << "wide types come first";
  EXPECT_EQ(file.metadata().at("quote"), "a \"b\"\n");
  EXPECT_THAT(file.info("empty").shape, ElementsAre(4, 0));
  EXPECT_EQ(std::memcmp(file.bytes("pieces").data(), numbers.data(), 32), 0);
  EXPECT_EQ(std::memcmp(file.bytes("odd \"name\"").data(), bytes.data(), 3), 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(file.bytes("pieces").data()) % SafetensorsWriter::kAlignment, 0u);
  EXPECT_THAT([&] { file.info("piece"); }, ThrowsMessage<DataError>(HasSubstr("no such tensor: name=piece")));
  EXPECT_THAT([&] { file.info("piece"); }, ThrowsMessage<DataError>(HasSubstr("Nearest names: pieces.")));
}

// A tensor goes to the disk in slices, of which the last one is short.
TEST_F(SafetensorsFolder, ALargeTensorIsWrittenWhole) {
  std::vector<uint32_t> numbers(900'001);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<uint32_t>(i * 2654435761U);
  SafetensorsWriter writer;
  writer.add("numbers", Dtype::F32, {900'001}, std::as_bytes(std::span(numbers)));
  const uint64_t hash = writer.write(folder_ / "a.safetensors");
  EXPECT_EQ(hash, xxh3_64_of_file(folder_ / "a.safetensors"));
  const SafetensorsFile file(folder_ / "a.safetensors");
  EXPECT_EQ(std::memcmp(file.bytes("numbers").data(), numbers.data(), 4 * numbers.size()), 0);
}

TEST_F(SafetensorsFolder, AProducerThatEmitsTooLittleLeavesNoFile) {
  SafetensorsWriter writer;
  writer.add("t", Dtype::F32, {2}, [](const SafetensorsWriter::Emit&) {});
  EXPECT_THROW(writer.write(folder_ / "a"), InternalError);
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(SafetensorsFolder, RefusesBadNames) {
  SafetensorsWriter writer;
  writer.add("t", Dtype::F32, {0}, std::span<const std::byte>{});
  EXPECT_THROW(writer.add("t", Dtype::F32, {0}, std::span<const std::byte>{}), InternalError);
  EXPECT_THROW(writer.add("__metadata__", Dtype::F32, {0}, std::span<const std::byte>{}), InternalError);
  writer.add("\xff", Dtype::F32, {0}, std::span<const std::byte>{});
  EXPECT_THAT([&] { writer.write(folder_ / "a"); }, ThrowsMessage<DataError>(HasSubstr("not valid UTF-8")));
}

fs::path shared_folder() {
  const char* given = std::getenv("WELKIN_SHARED");
  if (given != nullptr) return given;
  const char* source = std::getenv("WELKIN_SOURCE_DIR");  // set by CTest
  return fs::path(source != nullptr ? source : ".") / "../shared";
}

TEST(SafetensorsGoldens, EveryFileReadsAndLossesAgreeWithTheirDoubles) {
  const fs::path goldens = shared_folder() / "goldens";
  if (!fs::exists(goldens)) GTEST_SKIP() << "no reference files: set WELKIN_SHARED to the folder that holds goldens/";
  int files = 0;
  int losses = 0;
  for (const auto& entry : fs::recursive_directory_iterator(goldens)) {
    if (entry.path().extension() != ".safetensors") continue;
    ++files;
    const SafetensorsFile file(entry.path());
    if (!file.contains("loss") || !file.contains("loss_f64") || file.info("loss").shape != std::vector<int64_t>{1}) continue;
    if (file.info("loss").dtype != Dtype::F32 || file.info("loss_f64").dtype != Dtype::F64) continue;
    float loss = 0;
    double loss_f64 = 0;
    std::memcpy(&loss, file.bytes("loss").data(), sizeof(loss));
    std::memcpy(&loss_f64, file.bytes("loss_f64").data(), sizeof(loss_f64));
    EXPECT_TRUE(tests::close(loss, loss_f64, kBf16, 4)) << entry.path();  // bf16 cases among them
    ++losses;
  }
  EXPECT_GT(files, 50);
  EXPECT_GT(losses, 5);
}

}  // namespace
}  // namespace welkin
