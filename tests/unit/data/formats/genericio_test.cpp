// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cstring>

#include "core/error.h"
#include "core/file.h"
#include "data/formats/genericio/genericio_column.h"
#include "data_files.h"

namespace welkin::data::tests {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

void put_word(std::string& bytes, uint64_t value) { bytes.append(reinterpret_cast<const char*>(&value), sizeof value); }

void put_real(std::string& bytes, double value) { bytes.append(reinterpret_cast<const char*>(&value), sizeof value); }

void close_sum(std::string& bytes) {
  Crc64 sum;
  sum.add(std::as_bytes(std::span(bytes)));
  put_word(bytes, ~sum.sum());
}

void put_variable(std::string& bytes, const char* name, uint64_t flags, uint64_t size) {
  std::string padded = name;
  padded.resize(256, '\0');
  bytes += padded;
  for (const uint64_t word : {flags, size, size}) put_word(bytes, word);
}

constexpr uint64_t kParticleHeaderBytes = 168 + 2 * 280 + 2 * 48 + 8;

// Two ranks, of two particles and of one, with x (float) and id (int64), without the checksum that ends the header.
std::string particle_header() {
  std::string head("HACC01L\0", 8);
  for (const uint64_t word : {kParticleHeaderBytes, uint64_t{3}, uint64_t{2}, uint64_t{1}, uint64_t{1}, uint64_t{2},
                              uint64_t{280}, uint64_t{168}, uint64_t{2}, uint64_t{48}, uint64_t{168 + 560}, uint64_t{168}})
    put_word(head, word);
  for (const double number : {0.0, 0.0, 0.0, 4.0, 4.0, 4.0}) put_real(head, number);
  put_word(head, 0), put_word(head, 0);
  put_variable(head, "x", 1 | 2 | 4, 4);
  put_variable(head, "id", 2, 8);
  const uint64_t first = kParticleHeaderBytes, second = first + 2 * 12 + 16;
  for (const auto& [count, start] : {std::pair{uint64_t{2}, first}, {uint64_t{1}, second}}) {
    for (const uint64_t word : {uint64_t{0}, uint64_t{0}, uint64_t{0}, count, start, uint64_t{0}}) put_word(head, word);
  }
  return head;
}

std::string particle_file() {
  std::string file = particle_header();
  close_sum(file);
  const auto add = [&](auto values) {
    std::string block(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(values[0]));
    close_sum(block);
    file += block;
  };
  add(std::vector<float>{0.5f, 1.5f});
  add(std::vector<int64_t>{-1, 7});
  add(std::vector<float>{3.5f});
  add(std::vector<int64_t>{9});
  return file;
}

GenericIoHeader parsed(const std::string& head, uint64_t file_bytes) {
  return parse_genericio_header(std::as_bytes(std::span(head)), file_bytes, "test");
}

TEST(GenericIo, ChecksumIsTheKnownOne) {
  Crc64 sum;
  sum.add(std::as_bytes(std::span("123456789", 9)));
  EXPECT_EQ(sum.sum(), 0x995DC9BBDF1939FAu);
}

TEST(GenericIo, ReadsColumnsOfRanks) {
  const DataFolder folder;
  write_file_atomically(folder / "particles", particle_file());
  const GenericIoFile file(folder / "particles");
  EXPECT_EQ(file.header().elements, 3u);
  EXPECT_EQ(file.coordinate(0), 0u);
  EXPECT_THAT([&] { file.coordinate(1); }, ThrowsMessage<DataError>(HasSubstr("variable=y. There are: x, id.")));
  std::vector<double> two(2), one(1);
  GenericIoColumn column(file, file.variable("id"), 0);
  column.read(two);
  EXPECT_THAT(two, ElementsAre(-1, 7));
  GenericIoColumn(file, 0, 1).read(one);
  EXPECT_THAT(one, ElementsAre(3.5));
}

TEST(GenericIo, DamagedValuesAreNoticedAtTheirEnd) {
  const DataFolder folder;
  std::string bytes = particle_file();
  bytes[kParticleHeaderBytes + 1] ^= 4;
  write_file_atomically(folder / "particles", bytes);
  const GenericIoFile file(folder / "particles");
  GenericIoColumn column(file, 0, 0);
  std::vector<double> one(1);
  column.read(one);
  EXPECT_THAT([&] { column.read(one); }, ThrowsMessage<DataError>(HasSubstr("the checksum of values is wrong")));
}

// Every number of the header takes impossible values, with a right checksum: refused, or sound all the same.
TEST(GenericIo, NoNumberOfTheHeaderIsBelieved) {
  const std::string whole = particle_header();
  const uint64_t file_bytes = particle_file().size();
  int refused = 0;
  for (size_t at = 8; at + 8 <= whole.size(); at += 8) {
    for (const uint64_t value : {uint64_t{0}, uint64_t{1}, uint64_t{3}, uint64_t{281}, uint64_t{1} << 20, uint64_t{1} << 32,
                                 uint64_t{1} << 61, (uint64_t{1} << 63) + 1, ~uint64_t{0}}) {
      std::string head = whole;
      std::memcpy(head.data() + at, &value, sizeof value);
      close_sum(head);
      try {
        const GenericIoHeader header = parsed(head, file_bytes);
        for (const auto& rank : header.ranks) {
          ASSERT_EQ(rank.offsets.size(), header.variables.size());
          for (size_t v = 0; v < rank.offsets.size(); ++v) {
            const auto size = static_cast<uint64_t>(header.variables[v].bytes * header.variables[v].per_element);
            const uint64_t stored = rank.compressed.at(v) > 0 ? rank.compressed[v] : rank.elements * size;
            ASSERT_LE(rank.offsets[v] + stored + 8, file_bytes);
          }
        }
      } catch (const DataError& error) {
        EXPECT_THAT(error.what(), HasSubstr("not a sound GenericIO file: path=test, "));
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 50);
}

TEST(GenericIo, DamagedHeadersAreRefused) {
  std::string head = particle_header();
  close_sum(head);
  EXPECT_NO_THROW(parsed(head, particle_file().size()));
  EXPECT_THAT([&] { parsed(head, particle_file().size() - 1); },
              ThrowsMessage<DataError>(HasSubstr("values beyond the end of the file: rank=1, variable=id, elements=1")));
  for (size_t at = 0; at < head.size(); ++at) {
    std::string damaged = head;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    EXPECT_THROW(parsed(damaged, particle_file().size()), DataError) << at;
  }
  EXPECT_EQ(genericio_header_size(std::as_bytes(std::span(head)), particle_file().size()), kParticleHeaderBytes);
  EXPECT_EQ(genericio_header_size(std::as_bytes(std::span(head)), kParticleHeaderBytes - 1), 0u);
}

}  // namespace
}  // namespace welkin::data::tests
