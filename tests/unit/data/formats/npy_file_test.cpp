// SPDX-License-Identifier: Apache-2.0
#include "data/formats/npy_file.h"

#include <gmock/gmock.h>

#include <cstring>

#include "core/error.h"
#include "data_files.h"

namespace welkin::data::tests {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// A file as numpy writes it, with any dictionary.
std::string npy_bytes(const std::string& dictionary, const std::string& data, char version = 1) {
  std::string bytes("\x93NUMPY", 6);
  bytes += version;
  bytes += '\0';
  bytes += static_cast<char>(dictionary.size() & 255);
  bytes += static_cast<char>(dictionary.size() >> 8);
  if (version > 1) bytes += std::string(2, '\0');
  return bytes + dictionary + data;
}

NpyHeader parse(const std::string& bytes) { return parse_npy_header(std::as_bytes(std::span(bytes)), bytes.size(), "x.npy"); }

std::string refusal(const std::string& bytes) {
  try {
    parse(bytes);
  } catch (const DataError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(NpyFileTest, WrittenArraysComeBack) {
  const DataFolder folder;
  write_npy(folder / "a.npy", {2, 3}, counting(6));
  const NpyFile file(folder / "a.npy");
  EXPECT_THAT(file.header().shape, ElementsAre(2, 3));
  EXPECT_TRUE(file.header().is_float32_le());
  EXPECT_EQ(file.header().data_offset % 64, 0u);
  EXPECT_THAT(file.read_doubles(6), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT([&] { file.read_doubles(5); }, ThrowsMessage<DataError>(HasSubstr("shape=(2, 3), most=5")));
}

// Readers that know numpy's spelling alone: DALI's refuses "(2, 3, )".
TEST(NpyFileTest, TheHeaderIsSpelledAsNumpyDoes) {
  const DataFolder folder;
  const auto header = [&](const std::vector<int64_t>& shape, size_t count) {
    write_npy(folder / "x.npy", shape, std::vector<float>(count));
    std::ifstream file(folder / "x.npy", std::ios::binary);
    std::string text(128, ' ');
    file.read(text.data(), 128);
    return text;
  };
  EXPECT_THAT(header({2, 3}, 6), HasSubstr("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"));
  EXPECT_THAT(header({6}, 6), HasSubstr("'shape': (6,), }"));
}

TEST(NpyFileTest, AcceptsEveryVersionOrderAndSpelling) {
  const std::string data(24, '\0');
  for (const char version : {'\1', '\2', '\3'}) {
    EXPECT_THAT(parse(npy_bytes("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n", data, version)).shape,
                ElementsAre(2, 3));
  }
  const NpyHeader odd = parse(npy_bytes("{\"shape\":(6L,),'fortran_order':True,'descr':\">f4\"}", data));
  EXPECT_TRUE(odd.big_endian && odd.fortran_order);
  EXPECT_THAT(odd.shape, ElementsAre(6));
  EXPECT_TRUE(parse(npy_bytes("{'descr': '<f4', 'fortran_order': False, 'shape': ()}", std::string(4, '\0'))).shape.empty());
}

TEST(NpyFileTest, ReadsFortranOrderAndEveryNumberType) {
  const DataFolder folder;
  const auto read = [&](const std::string& descr, bool fortran, const std::string& data, const std::string& shape) {
    std::ofstream(folder / "a.npy", std::ios::binary) << npy_bytes(
        "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': " + shape + ", }", data);
    return NpyFile(folder / "a.npy").read_doubles(100);
  };
  EXPECT_THAT(read("|i1", true, std::string("\0\1\2\3\4\5", 6), "(2, 3)"), ElementsAre(0, 2, 4, 1, 3, 5));
  EXPECT_THAT(read(">i2", false, std::string("\xFF\xFE\1\0", 4), "(2,)"), ElementsAre(-2, 256));
  EXPECT_THAT(read("<u2", false, std::string("\xFF\xFE", 2), "(1,)"), ElementsAre(0xFEFF));
  EXPECT_THAT(read("<f2", false, std::string("\0\x3C\0\xC0\1\0\0\x7C", 8), "(4,)"), ElementsAre(1.0, -2.0, 0x1p-24, HUGE_VAL));
  EXPECT_THAT(read(">f8", false, std::string("\x3F\xF8\0\0\0\0\0\0", 8), "(1,)"), ElementsAre(1.5));
  EXPECT_THAT(read("|b1", false, std::string("\1\0", 2), "(2,)"), ElementsAre(1, 0));
}

TEST(NpyFileTest, HostileHeadersAreRefusedWithTheReason) {
  const std::string four(4, '\0');
  EXPECT_THAT(refusal("PK\3\4 not numpy at all"),
              HasSubstr("[npy] not a usable header: path=x.npy, npy_byte=0, reason=it does not start like"));
  EXPECT_THAT(refusal(npy_bytes("{}", four, 9)), HasSubstr("unknown version 9"));
  EXPECT_THAT(refusal(npy_bytes("{'descr': '<f4'}", four)), HasSubstr("descr, fortran_order or shape is missing"));
  EXPECT_THAT(refusal(npy_bytes("{'descr': 'O', 'fortran_order': False, 'shape': ()}", four)), HasSubstr("unsupported type O"));
  EXPECT_THAT(refusal(npy_bytes("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}", four)),
              HasSubstr("a structured array"));
  EXPECT_THAT(refusal(npy_bytes("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': ()}", four)),
              HasSubstr("a key occurs twice"));
  EXPECT_THAT(refusal(npy_bytes("{'descr': '<f4', 'fortran_order': 1, 'shape': ()}", four)), HasSubstr("neither True nor False"));
  EXPECT_THAT(refusal(npy_bytes("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", four)), HasSubstr("no size"));
  EXPECT_THAT(refusal(npy_bytes("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 9)}", four)),
              HasSubstr("a shape that no machine can hold"));
  EXPECT_THAT(refusal(npy_bytes("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'evil': 1}", four)),
              HasSubstr("an unknown key"));
  EXPECT_THAT(refusal(npy_bytes("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} import os", four)),
              HasSubstr("text after the dictionary"));
  EXPECT_THAT(refusal(npy_bytes("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", four)),
              HasSubstr("shape=(2), npy_byte=65, bytes_expected=8, bytes_found=4. The file is truncated"));
  std::string cut = npy_bytes("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", four);
  EXPECT_THAT(refusal(cut.substr(0, 30)), HasSubstr("it ends inside the header"));
}

TEST(NpyFileTest, EveryPrefixAndEveryFlippedByteEndsCleanly) {
  const std::string good = npy_bytes("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", std::string(24, '\0'));
  int refused = 0;
  for (size_t length = 0; length < good.size(); ++length) refused += refusal(good.substr(0, length)) != "accepted";
  EXPECT_EQ(refused, static_cast<int>(good.size()));
  for (size_t i = 0; i < good.size() - 24; ++i) {
    for (const char flip : {'\x01', '\x20', '\x80'}) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ flip);
      refused += refusal(bad) != "accepted";
    }
  }
  EXPECT_GT(refused, 2 * static_cast<int>(good.size()));
}

TEST(NpyFileTest, WriterRefusesTheWrongNumberOfValues) {
  const DataFolder folder;
  NpyWriter writer(folder / "a.npy", Dtype::F32, {3});
  EXPECT_THROW(writer.append(counting(4)), InternalError);
  writer.append(counting(2));
  EXPECT_THROW(writer.close(), InternalError);
}

}  // namespace
}  // namespace welkin::data::tests
