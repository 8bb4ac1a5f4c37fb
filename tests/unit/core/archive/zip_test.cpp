// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "core/archive/crc32.h"
#include "core/archive/zip_reader.h"
#include "core/error.h"
#include "zip_file.h"

namespace welkin::archive {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

std::string text_of(const ZipEntry* entry) {
  return entry == nullptr ? "absent" : std::string(reinterpret_cast<const char*>(entry->bytes.data()), entry->bytes.size());
}

ZipReader open(const std::string& bytes) { return {as_byte_span(bytes), "x.pt"}; }

// `bytes` with `with` at the nth place where `what` stands.
std::string replaced(std::string bytes, const std::string& what, const std::string& with, int nth = 0) {
  size_t at = bytes.find(what);
  for (; nth > 0; --nth) at = bytes.find(what, at + 1);
  EXPECT_NE(at, std::string::npos);
  return bytes.replace(at, what.size(), with);
}

// The 32- or 16-bit field at `offset` of the record with this signature.
template <typename T>
std::string with_field(std::string bytes, const char* signature, size_t offset, T value, int nth = 0) {
  size_t at = bytes.find(signature);
  for (; nth > 0; --nth) at = bytes.find(signature, at + 1);
  std::memcpy(bytes.data() + at + offset, &value, sizeof(value));
  return bytes;
}

constexpr const char* kCentral = "PK\x01\x02";
constexpr const char* kEnd = "PK\x05\x06";
constexpr const char* kLocal = "PK\x03\x04";

TEST(Crc32, IsThatOfTheStandard) {
  EXPECT_EQ(crc32(as_byte_span("123456789")), 0xCBF43926u);
  EXPECT_EQ(crc32(as_byte_span("6789"), crc32(as_byte_span("12345"))), 0xCBF43926u);
}

TEST(Zip, BringsBackWhatWasWrittenAligned) {
  const std::string bytes = zip_file({{"a/data.pkl", "hello"}, {"a/data/0", std::string(1000, 'x')}, {"a/empty", ""}});
  const ZipReader zip = open(bytes);
  EXPECT_EQ(zip.entries().size(), 3u);
  EXPECT_EQ(text_of(zip.find("a/data.pkl")), "hello");
  EXPECT_EQ(text_of(zip.find("a/empty")), "");
  EXPECT_EQ(zip.find("b"), nullptr);
  for (const auto& [name, entry] : zip.entries()) {
    EXPECT_EQ((entry.bytes.data() - as_byte_span(bytes).data()) % 64, 0) << name;
    zip.verify(name);
  }
}

TEST(Zip, ReadsAndWritesTheFieldsOfLargeFiles) {
  const std::string bytes = zip_file({{"a", "hello"}, {"b", "world"}}, /*always_zip64=*/true);
  const ZipReader zip = open(bytes);
  EXPECT_EQ(text_of(zip.find("a")), "hello");
  EXPECT_EQ(text_of(zip.find("b")), "world");
}

TEST(Zip, NamesTheDamagedEntry) {
  const std::string bytes = replaced(zip_file({{"a", "hello"}, {"b", "world"}}), "world", "w0rld");
  const ZipReader zip = open(bytes);
  zip.verify("a");
  EXPECT_THAT([&] { zip.verify("b"); }, ThrowsMessage<DataError>(HasSubstr("[zip] an entry is damaged: name=b, crc32=")));
}

TEST(Zip, AChecksumOfZeroWasNotComputed) {
  const std::string bytes = with_field(zip_file({{"a", "hello"}}), kCentral, 16, uint32_t{0});
  open(bytes).verify("a");
}

struct BadZip {
  const char* name;
  std::string bytes;
  const char* message;
};

class BadZips : public testing::TestWithParam<BadZip> {};

TEST_P(BadZips, AreRefusedWithTheirReason) {
  EXPECT_THAT([] { open(GetParam().bytes); },
              ThrowsMessage<DataError>(AllOf(HasSubstr("[zip] "), HasSubstr(GetParam().message), HasSubstr("file=x.pt"))));
}

std::string two() { return zip_file({{"a", "hello"}, {"b", "world"}}); }
std::string two64() { return zip_file({{"a", "hello"}, {"b", "world"}}, true); }
std::string named(const std::string& name) { return zip_file({{name, "hello"}}); }

INSTANTIATE_TEST_SUITE_P(
    Zip, BadZips,
    testing::Values(
        BadZip{"empty", "", "there is no end of a zip directory, the file is cut short: bytes=0"},
        BadZip{"truncated", two().substr(0, two().size() - 30), "there is no end of a zip directory"},
        BadZip{"truncated_in_directory", two().erase(two().find(kCentral), 20), "the zip directory"},
        BadZip{"directory_outside", with_field(two(), kEnd, 16, uint32_t{0x7fffffff}), "the zip directory lies outside the file"},
        BadZip{"too_many_entries", with_field(two(), kEnd, 10, uint16_t{60000}), "more entries than the zip directory has room"},
        BadZip{"parent_path", named("../evil"), "an entry has a name that is not allowed (leads out of the archive)"},
        BadZip{"inner_parent_path", named("a/../../evil"), "leads out of the archive"},
        BadZip{"absolute_path", named("/etc/passwd"), "absolute path"}, BadZip{"backslash", named("..\\evil"), "backslash"},
        BadZip{"control_character", named("a\nb"), "control character"}, BadZip{"empty_name", named(""), "empty"},
        BadZip{"compressed", with_field(two(), kCentral, 10, uint16_t{8}),
               "an entry is compressed, which PyTorch never does: name=a"},
        BadZip{"encrypted", with_field(two(), kCentral, 8, uint16_t{1}), "an entry is encrypted: name=a"},
        BadZip{"two_sizes", with_field(two(), kCentral, 20, uint32_t{4}), "an entry has two sizes"},
        BadZip{"too_large", with_field(with_field(two(), kCentral, 20, uint32_t{1 << 30}), kCentral, 24, uint32_t{1 << 30}),
               "an entry lies outside the file: name=a"},
        BadZip{"no_local_header", with_field(two(), kCentral, 42, uint32_t{1}), "an entry has no local header: name=a"},
        BadZip{"two_names", with_field(two(), kLocal, 30, 'c'), "an entry has two names: name=a"},
        BadZip{"duplicate", zip_file({{"a", "hello"}, {"a", "world"}}), "two entries have one name: name=a"},
        BadZip{"overlap", with_field(with_field(two(), kCentral, 20, uint32_t{60}), kCentral, 24, uint32_t{60}),
               "entries overlap"},
        BadZip{"zip64_missing", with_field(two(), kCentral, 42, uint32_t{0xffffffff}), "an entry lacks its zip64 sizes"},
        BadZip{"zip64_end_missing", with_field(two(), kEnd, 16, uint32_t{0xffffffff}), "the zip64 end record is missing"},
        BadZip{"zip64_end_outside", with_field(two64(), "PK\x06\x07", 8, uint64_t{1} << 60),
               "the zip64 end record lies outside the file"},
        BadZip{"zip64_entries", with_field(two64(), "PK\x06\x06", 32, uint64_t{1} << 60), "more entries than"},
        BadZip{"zip64_offset", with_field(two64(), "PK\x06\x06", 48, ~uint64_t{0}), "the zip directory lies outside the file"},
        BadZip{"several_files", with_field(two(), kEnd, 4, uint16_t{1}), "split over several files"}),
    [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace welkin::archive
