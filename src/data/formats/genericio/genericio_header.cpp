// SPDX-License-Identifier: Apache-2.0
// Layout: struct GlobalHeader, VariableHeader, RankHeader and BlockHeader of the format's reference implementation, all packed.
// Newer writers append fields; the sizes in the header say which there are.
#include "data/formats/genericio/genericio_header.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/error.h"
#include "core/printable.h"
#include "core/text.h"
#include "data/formats/genericio/crc64.h"
#include "data/storage/codec.h"

namespace welkin::data {
namespace {

constexpr std::string_view kBigEndian{"HACC01B\0", 8}, kLittleEndian{"HACC01L\0", 8};
constexpr uint64_t kSumBytes = 8;
constexpr uint64_t kLargestHeader = uint64_t{1} << 30;
constexpr uint64_t kMostVariables = 4096, kMostRanks = uint64_t{1} << 22;
constexpr uint64_t kMostValues = 4096;  // of one particle and variable
constexpr size_t kNameBytes = 256;

// Fields of the global header.
constexpr uint64_t kElements = 16, kDims = 24, kNumVariables = 48, kVariableBytes = 56, kVariablesStart = 64, kNumRanks = 72,
                   kRankBytes = 80, kRanksStart = 88, kGlobalBytes = 96, kOrigin = 104, kScale = 128, kBlockBytes = 152,
                   kBlocksStart = 160;
constexpr uint64_t kShortestGlobal = 152, kShortestVariable = kNameBytes + 16, kShortestRank = 40, kShortestBlock = 48;

constexpr uint64_t kFloat = 1, kSigned = 2, kX = 4, kY = 8, kZ = 16, kGhost = 32;  // flags of a variable

class HeaderReading {
 public:
  HeaderReading(std::span<const std::byte> bytes, uint64_t file_bytes, std::string_view source)
      : bytes_(bytes), file_bytes_(file_bytes), source_(source) {}

  GenericIoHeader read() {
    if (bytes_.size() < kShortestGlobal + kSumBytes || !is_genericio(bytes_)) fail("it does not begin like one");
    header_.big_endian = bytes_[6] == std::byte{'B'};
    Crc64 sum;
    sum.add(bytes_);
    if (!sum.is_closed()) fail("the checksum of the header is wrong");
    read_global();
    read_variables();
    read_ranks();
    return std::move(header_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw DataError("data", cat("not a sound GenericIO file: path=", source_, ", ", what), "Check that the file is complete");
  }

  uint64_t whole(uint64_t offset) const {  // the caller knows that it lies inside
    uint64_t value = 0;
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return header_.big_endian ? __builtin_bswap64(value) : value;
  }
  double real(uint64_t offset) const { return std::bit_cast<double>(whole(offset)); }

  // A table of `count` rows inside the header.
  void require_table(const char* name, uint64_t start, uint64_t count, uint64_t row_bytes, uint64_t shortest) const {
    const uint64_t end = bytes_.size() - kSumBytes;
    const bool fits = row_bytes >= shortest && row_bytes <= kLargestHeader && start <= end && count <= (end - start) / row_bytes;
    if (!fits)
      fail(cat("a table that does not fit: table=", name, ", rows=", count, ", row_bytes=", row_bytes, ", start=", start));
  }

  void read_global() {
    const uint64_t bytes = whole(kGlobalBytes);
    if (bytes < kShortestGlobal || bytes > bytes_.size() - kSumBytes) fail(cat("global_header_bytes=", bytes));
    has_blocks_ = bytes >= kBlocksStart + 8 && whole(kBlockBytes) > 0;
    for (size_t axis = 0; axis < 3; ++axis) {
      header_.ranks_along[axis] = whole(kDims + 8 * axis);
      header_.origin[axis] = real(kOrigin + 8 * axis);
      header_.extent[axis] = real(kScale + 8 * axis);
    }
    if (whole(kNumVariables) > kMostVariables || whole(kNumRanks) > kMostRanks)
      fail(cat("variables=", whole(kNumVariables), ", ranks=", whole(kNumRanks)));
  }

  void read_variables() {
    const uint64_t count = whole(kNumVariables), row = whole(kVariableBytes), start = whole(kVariablesStart);
    require_table("variables", start, count, row, kShortestVariable);
    for (uint64_t i = 0; i < count; ++i) header_.variables.push_back(variable_at(start + i * row, row));
  }

  GenericIoVariable variable_at(uint64_t at, uint64_t row) const {
    GenericIoVariable variable;
    const char* name = reinterpret_cast<const char*>(bytes_.data() + at);
    variable.name = printable(std::string_view(name, strnlen(name, kNameBytes)));
    const uint64_t flags = whole(at + kNameBytes), size = whole(at + kNameBytes + 8);
    const uint64_t element = row >= kShortestVariable + 8 ? whole(at + kNameBytes + 16) : size;
    const bool sane = std::has_single_bit(element) && element <= 8 && size >= element && size % element == 0 &&
                      size / element <= kMostValues && ((flags & kFloat) == 0 || element >= 4);
    if (!sane) fail(cat("a variable of impossible size: variable=", variable.name, ", size=", size, ", element_size=", element));
    variable.bytes = static_cast<int>(element);
    variable.per_element = static_cast<int64_t>(size / element);
    variable.kind = (flags & kFloat) != 0    ? GenericIoKind::Float
                    : (flags & kSigned) != 0 ? GenericIoKind::Signed
                                             : GenericIoKind::Unsigned;
    variable.axis = (flags & kX) != 0 ? 0 : (flags & kY) != 0 ? 1 : (flags & kZ) != 0 ? 2 : -1;
    variable.may_be_ghost = (flags & kGhost) != 0;
    return variable;
  }

  void read_ranks() {
    const uint64_t count = whole(kNumRanks), row = whole(kRankBytes), start = whole(kRanksStart);
    require_table("ranks", start, count, row, kShortestRank);
    if (has_blocks_)
      require_table("blocks", whole(kBlocksStart), count * header_.variables.size(), whole(kBlockBytes), kShortestBlock);
    if (count * header_.variables.size() > (uint64_t{1} << 26)) fail("more blocks of values than any file may hold");
    for (uint64_t i = 0; i < count; ++i) add_rank(i, start + i * row);
  }

  void add_rank(uint64_t index, uint64_t at) {
    GenericIoRank rank;
    for (size_t axis = 0; axis < 3; ++axis) rank.coordinates[axis] = whole(at + 8 * axis);
    rank.elements = whole(at + 24);
    uint64_t offset = whole(at + 32);
    for (size_t v = 0; v < header_.variables.size(); ++v) {
      const auto& variable = header_.variables[v];
      const auto size = static_cast<uint64_t>(variable.bytes) * static_cast<uint64_t>(variable.per_element);
      const uint64_t compressed = has_blocks_ ? read_block(index * header_.variables.size() + v, offset) : 0;
      const bool is_possible = compressed == 0 ? rank.elements <= file_bytes_ / size
                                               : compressed >= kSumBytes && rank.elements <= kMostDecodedBytes / size;
      const uint64_t stored = !is_possible ? 0 : compressed == 0 ? rank.elements * size : compressed;
      if (!is_possible || offset > file_bytes_ || stored > file_bytes_ || stored + kSumBytes > file_bytes_ - offset)
        fail(cat("values beyond the end of the file: rank=", index, ", variable=", variable.name, ", elements=", rank.elements));
      rank.offsets.push_back(offset);
      rank.compressed.push_back(compressed);
      offset += stored + kSumBytes;
    }
    if (rank.elements > kMostDecodedBytes && rank.elements > file_bytes_) fail(cat("rank=", index, ", elements=", rank.elements));
    header_.elements += rank.elements;
    header_.ranks.push_back(std::move(rank));
  }

  // Bytes of the compressed values, 0 where they are plain; and where they begin.
  uint64_t read_block(uint64_t index, uint64_t& offset) {
    constexpr size_t kFilterBytes = 8;
    const uint64_t at = whole(kBlocksStart) + index * whole(kBlockBytes);
    const char* first = reinterpret_cast<const char*>(bytes_.data() + at);
    const std::string_view filter(first, strnlen(first, kFilterBytes));
    if (const uint64_t start = whole(at + 32); start != 0) offset = start;
    if (filter.empty()) return 0;
    const bool is_alone = first[kFilterBytes] == '\0';  // of four filters, one after the other
    if (filter != "BLOSC" || !is_alone) fail(cat("values with a filter that is not known: filter=", printable(filter)));
    header_.filter = filter;
    return whole(at + 40);
  }

  std::span<const std::byte> bytes_;
  uint64_t file_bytes_;
  std::string_view source_;
  bool has_blocks_ = false;
  GenericIoHeader header_;
};

}  // namespace

bool is_genericio(std::span<const std::byte> head) {
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  return text.starts_with(kBigEndian) || text.starts_with(kLittleEndian);
}

uint64_t genericio_header_size(std::span<const std::byte> head, uint64_t file_bytes) {
  if (head.size() < kGenericIoPrefix || !is_genericio(head)) return 0;
  uint64_t size = 0;
  std::memcpy(&size, head.data() + 8, sizeof size);
  if (head[6] == std::byte{'B'}) size = __builtin_bswap64(size);
  return size <= file_bytes && size <= kLargestHeader ? size : 0;
}

GenericIoHeader parse_genericio_header(std::span<const std::byte> bytes, uint64_t file_bytes, std::string_view source) {
  return HeaderReading(bytes, file_bytes, source).read();
}

}  // namespace welkin::data
