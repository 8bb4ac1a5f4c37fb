// SPDX-License-Identifier: Apache-2.0
#include "data/formats/lmdb_index.h"

#include <array>
#include <bit>
#include <concepts>
#include <cstring>

#include "core/error.h"
#include "core/text.h"
#include "data/formats/lmdb_layout.h"

namespace welkin::data {
namespace {

constexpr int kDeepestTree = 32;  // LMDB's own limit

template <std::unsigned_integral T>
T number_at(std::span<const std::byte> bytes, uint64_t offset) {
  T value = 0;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

class LmdbReader {
 public:
  LmdbReader(const ReadAt& read_at, uint64_t file_bytes, std::string_view source)
      : read_at_(read_at), file_bytes_(file_bytes), source_(source) {}

  std::vector<SampleEntry> read_all() {
    const uint64_t root = read_root();
    if (root != lmdb::kNoPage) read_page(root, 0);
    return std::move(entries_);
  }

 private:
  [[noreturn]] void refuse(std::string_view reason) const {
    throw DataError(
        "data",
        cat("not a usable LMDB file: path=", source_, ", offset=", page_ * page_bytes_, ", page=", page_, ", reason=", reason),
        "Copy or make it again");
  }

  std::vector<std::byte> bytes_of_page(uint64_t page) {
    page_ = page;
    if (page >= num_pages_) refuse(cat("the file ends at page ", num_pages_));
    std::vector<std::byte> bytes(static_cast<size_t>(page_bytes_));
    read_at_(page * page_bytes_, bytes);
    return bytes;
  }

  // The root of the newer of the two snapshots.
  uint64_t read_root() {
    if (file_bytes_ < lmdb::kMetaBytes) refuse("it is shorter than its header");
    std::array<std::byte, lmdb::kMetaBytes> head;
    read_at_(0, head);
    page_bytes_ = number_at<uint32_t>(head, lmdb::kMetaFree + lmdb::kDbPad);
    if (!std::has_single_bit(page_bytes_) || page_bytes_ < 512 || page_bytes_ > 65536) {
      page_bytes_ = 1;
      refuse("a page size that LMDB has not");
    }
    num_pages_ = file_bytes_ / page_bytes_;
    uint64_t root = 0, newest = 0;
    bool found = false;
    for (const uint64_t page : {uint64_t{0}, uint64_t{1}}) {
      const auto meta = bytes_of_page(page);
      if (!is_lmdb_head(meta)) refuse("not data format 1");
      const auto transaction = number_at<uint64_t>(meta, lmdb::kMetaTransaction);
      if (found && transaction <= newest) continue;
      found = true;
      newest = transaction;
      root = number_at<uint64_t>(meta, lmdb::kMetaMain + lmdb::kDbRoot);
      if ((number_at<uint16_t>(meta, lmdb::kMetaMain + lmdb::kDbFlags) & 0x04) != 0)
        refuse("several values for one key (MDB_DUPSORT)");
    }
    return root;
  }

  void read_page(uint64_t page, int depth) {
    if (depth > kDeepestTree || ++num_read_ > num_pages_) refuse("the tree has a loop");
    const auto bytes = bytes_of_page(page);
    const auto flags = number_at<uint16_t>(bytes, 10);
    const auto lower = number_at<uint16_t>(bytes, 12);
    if (lower < lmdb::kPageHeader || lower > page_bytes_) refuse("a list of nodes beyond its page");
    const bool is_branch = (flags & lmdb::Branch) != 0;
    if (!is_branch && (flags & lmdb::Leaf) == 0) refuse("neither a branch nor a leaf");
    for (uint64_t place = lmdb::kPageHeader; place + 2 <= lower; place += 2) {
      const uint64_t node = number_at<uint16_t>(bytes, place);
      if (node < lower || node + lmdb::kNodeHeader > page_bytes_) refuse("a node beyond its page");
      if (is_branch) {
        read_page(child_of(bytes, node), depth + 1);
        page_ = page;
      } else {
        read_leaf_node(bytes, page, node);
      }
    }
  }

  static uint64_t child_of(std::span<const std::byte> bytes, uint64_t node) {
    return number_at<uint16_t>(bytes, node) | static_cast<uint64_t>(number_at<uint16_t>(bytes, node + 2)) << 16 |
           static_cast<uint64_t>(number_at<uint16_t>(bytes, node + 4)) << 32;
  }

  void read_leaf_node(std::span<const std::byte> bytes, uint64_t page, uint64_t node) {
    const uint64_t size = number_at<uint16_t>(bytes, node) | static_cast<uint64_t>(number_at<uint16_t>(bytes, node + 2)) << 16;
    const auto flags = number_at<uint16_t>(bytes, node + 4);
    const uint64_t key = node + lmdb::kNodeHeader, data = key + number_at<uint16_t>(bytes, node + 6);
    if (data > page_bytes_) refuse("a key beyond its page");
    if ((flags & (lmdb::SubData | lmdb::DupData)) != 0) return;  // a named database
    SampleEntry entry;
    entry.name.assign(reinterpret_cast<const char*>(bytes.data()) + key, static_cast<size_t>(data - key));
    entry.size = size;
    if ((flags & lmdb::BigData) != 0) {
      if (data + sizeof(uint64_t) > page_bytes_) refuse("a page number beyond its page");
      entry.offset = overflow_offset(number_at<uint64_t>(bytes, data));
      page_ = page;
    } else {
      if (size > page_bytes_ - data) refuse("a value beyond its page");
      entry.offset = page * page_bytes_ + data;
    }
    if (entry.size > file_bytes_ - entry.offset)
      refuse(cat("a value of ", entry.size, " bytes reaches beyond the file: it is truncated"));
    entries_.push_back(std::move(entry));
  }

  uint64_t overflow_offset(uint64_t page) {
    page_ = page;
    if (page >= num_pages_) refuse(cat("the file ends at page ", num_pages_));
    std::array<std::byte, lmdb::kPageHeader> head;
    read_at_(page * page_bytes_, head);
    if ((number_at<uint16_t>(head, 10) & lmdb::Overflow) == 0) refuse("not an overflow page");
    return page * page_bytes_ + lmdb::kPageHeader;
  }

  const ReadAt& read_at_;
  uint64_t file_bytes_;
  std::string_view source_;
  uint64_t page_bytes_ = 1, num_pages_ = 0;
  uint64_t page_ = 0;      // the one that is read, for errors
  uint64_t num_read_ = 0;  // pages of the tree so far
  std::vector<SampleEntry> entries_;
};

}  // namespace

bool is_lmdb_head(std::span<const std::byte> head) {
  return head.size() >= kLmdbHeadBytes && number_at<uint32_t>(head, lmdb::kMetaMagic) == lmdb::kMagic &&
         number_at<uint32_t>(head, lmdb::kMetaVersion) == lmdb::kVersion;
}

std::vector<SampleEntry> read_lmdb_index(const ReadAt& read_at, uint64_t file_bytes, std::string_view source) {
  return LmdbReader(read_at, file_bytes, source).read_all();
}

}  // namespace welkin::data
