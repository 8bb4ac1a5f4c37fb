// SPDX-License-Identifier: Apache-2.0
// An LMDB folder (data.mdb, data format 1) of one npy file per sample. Values go to overflow pages as they come: they are too
// large for memory. Keys are kept, and become the B+ tree at the end, since its pages must be sorted.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/file.h"
#include "core/file_descriptor.h"
#include "core/text.h"
#include "data/formats/array_writer.h"
#include "data/formats/lmdb_layout.h"
#include "data/formats/npy_file.h"

namespace welkin::data {
namespace {

constexpr uint64_t kPageBytes = 4096;

template <typename T>
void put_at(std::string& page, uint64_t offset, T value) {
  std::memcpy(page.data() + offset, &value, sizeof(T));
}

// One page of nodes, filled from the front (places) and the back (nodes).
class NodePage {
 public:
  explicit NodePage(lmdb::PageFlag kind) : bytes_(kPageBytes, '\0'), kind_(kind) {}

  bool fits(size_t key, size_t data) const { return lower_ + 2 + node_bytes(key, data) <= upper_; }

  // `head` are the low 48 bits of the node: data size and flags of a leaf, page of a branch.
  void add(uint64_t head, std::string_view key, std::string_view data) {
    upper_ -= node_bytes(key.size(), data.size());
    put_at(bytes_, upper_, static_cast<uint16_t>(head));
    put_at(bytes_, upper_ + 2, static_cast<uint16_t>(head >> 16));
    put_at(bytes_, upper_ + 4, static_cast<uint16_t>(head >> 32));
    put_at(bytes_, upper_ + 6, static_cast<uint16_t>(key.size()));
    bytes_.replace(upper_ + lmdb::kNodeHeader, key.size(), key);
    bytes_.replace(upper_ + lmdb::kNodeHeader + key.size(), data.size(), data);
    put_at(bytes_, lower_, static_cast<uint16_t>(upper_));
    lower_ += 2;
  }

  const std::string& finished(uint64_t page) {
    put_at(bytes_, 0, page);
    put_at(bytes_, 10, static_cast<uint16_t>(kind_));
    put_at(bytes_, 12, static_cast<uint16_t>(lower_));
    put_at(bytes_, 14, static_cast<uint16_t>(upper_));
    return bytes_;
  }

 private:
  static uint64_t node_bytes(size_t key, size_t data) { return (lmdb::kNodeHeader + key + data + 1) / 2 * 2; }

  std::string bytes_;
  lmdb::PageFlag kind_;
  uint64_t lower_ = lmdb::kPageHeader, upper_ = kPageBytes;
};

struct StoredValue {
  std::string key;
  uint64_t page = 0, bytes = 0;
};

// A page of a level of the tree, by its smallest key.
struct Child {
  std::string key;
  uint64_t page = 0;
};

class LmdbWriter : public ArrayWriter {
 public:
  LmdbWriter(const std::filesystem::path& folder, const OutputFile& output) : path_(folder / "data.mdb"), arrays_(output.arrays) {
    make_folders(folder);
    file_ = open_file(path_, O_WRONLY | O_CREAT | O_TRUNC);
    append(std::string(2 * kPageBytes, '\0'));  // the two headers are written at the end
    const std::string text = sidecar_text(sidecar_of(output));
    begin_value(std::string(kSidecarName), text.size());
    append_value(text);
  }

  bool by_sample() const override { return true; }

  void write(size_t index, const ArrayRegion& region, StoredBlock values) override {
    if (left_ == 0) begin_sample(arrays_[index], region.begin[0]);
    append_value({reinterpret_cast<const char*>(values.data()), values.size()});
  }

  void finish() override {
    std::ranges::sort(values_, {}, &StoredValue::key);
    std::vector<Child> level = write_leaves();
    num_leaves_ = level.size();
    uint16_t depth = 1;
    for (; level.size() > 1; ++depth) level = write_branches(level);
    const uint64_t pages = place_ / kPageBytes;
    if (::lseek(file_.get(), 0, SEEK_SET) < 0) throw file_error("write", path_, errno);
    for (const uint64_t page : {uint64_t{0}, uint64_t{1}}) write_fully(file_, path_, header(page, level[0].page, depth, pages));
    sync_file(file_, path_);
  }

 private:
  void begin_sample(const OutputArray& array, int64_t sample) {
    const std::string head = npy_header_of({array.shape.begin() + 1, array.shape.end()}, array.dtype);
    std::array<char, 32> key{};
    std::snprintf(key.data(), key.size(), "%08lld", static_cast<long long>(sample));
    begin_value(array.name.empty() ? cat(key.data(), ".npy") : cat(key.data(), ".", array.name, ".npy"),
                head.size() + stored_bytes(array) / static_cast<uint64_t>(array.shape[0]));
    append_value(head);
  }

  void begin_value(const std::string& key, uint64_t bytes) {
    constexpr size_t kLongestKey = 511;  // LMDB's default
    if (key.size() > kLongestKey || bytes > 0xFFFFFFFFu) {
      throw DataError("data", cat("a sample that LMDB cannot hold: key=", key, ", bytes=", bytes),
                      "Use another format, or smaller samples");
    }
    const uint64_t page = place_ / kPageBytes, pages = (lmdb::kPageHeader + bytes + kPageBytes - 1) / kPageBytes;
    values_.push_back({key, page, bytes});
    num_overflows_ += pages;
    std::string head(lmdb::kPageHeader, '\0');
    put_at(head, 0, page);
    put_at(head, 10, static_cast<uint16_t>(lmdb::Overflow));
    put_at(head, 12, static_cast<uint32_t>(pages));
    append(head);
    left_ = bytes;
  }

  void append_value(std::string_view bytes) {
    append(bytes);
    left_ -= bytes.size();
    if (left_ == 0) append(std::string((kPageBytes - place_ % kPageBytes) % kPageBytes, '\0'));
  }

  uint64_t append_page(NodePage& page) {
    const uint64_t number = place_ / kPageBytes;
    append(page.finished(number));
    return number;
  }

  std::vector<Child> write_leaves() {
    std::vector<Child> level;
    NodePage page(lmdb::Leaf);
    std::string first = values_.front().key;
    for (const StoredValue& value : values_) {
      if (!page.fits(value.key.size(), sizeof(uint64_t))) {
        level.push_back({first, append_page(page)});
        page = NodePage(lmdb::Leaf);
        first = value.key;
      }
      std::string number(sizeof(uint64_t), '\0');
      put_at(number, 0, value.page);
      page.add(value.bytes | static_cast<uint64_t>(lmdb::BigData) << 32, value.key, number);
    }
    level.push_back({first, append_page(page)});
    return level;
  }

  // The first key of a branch page is empty: it is smaller than all. Children are spread evenly: a branch must have two.
  std::vector<Child> write_branches(const std::vector<Child>& children) {
    size_t longest = 0;
    for (const Child& child : children) longest = std::max(longest, child.key.size());
    const size_t most = (kPageBytes - lmdb::kPageHeader) / (lmdb::kNodeHeader + longest + 4);
    const size_t num_pages = (children.size() + most - 1) / most;
    std::vector<Child> level;
    for (size_t i = 0; i < num_pages; ++i) {
      const size_t begin = children.size() * i / num_pages, end = children.size() * (i + 1) / num_pages;
      NodePage page(lmdb::Branch);
      for (size_t c = begin; c < end; ++c) page.add(children[c].page, c == begin ? "" : children[c].key, "");
      level.push_back({children[begin].key, append_page(page)});
    }
    num_branches_ += num_pages;
    return level;
  }

  std::string header(uint64_t page, uint64_t root, uint16_t depth, uint64_t pages) const {
    std::string bytes(kPageBytes, '\0');
    put_at(bytes, 0, page);
    put_at(bytes, 10, static_cast<uint16_t>(lmdb::Meta));
    put_at(bytes, lmdb::kMetaMagic, lmdb::kMagic);
    put_at(bytes, lmdb::kMetaVersion, lmdb::kVersion);
    put_at(bytes, lmdb::kMetaMapSize, pages * kPageBytes);
    put_at(bytes, lmdb::kMetaFree + lmdb::kDbPad, static_cast<uint32_t>(kPageBytes));
    put_at(bytes, lmdb::kMetaFree + lmdb::kDbFlags, uint16_t{8});  // MDB_INTEGERKEY, as LMDB has it there
    put_at(bytes, lmdb::kMetaFree + lmdb::kDbRoot, lmdb::kNoPage);
    put_at(bytes, lmdb::kMetaMain + lmdb::kDbDepth, depth);
    put_at(bytes, lmdb::kMetaMain + lmdb::kDbBranches, num_branches_);
    put_at(bytes, lmdb::kMetaMain + lmdb::kDbLeaves, num_leaves_);
    put_at(bytes, lmdb::kMetaMain + lmdb::kDbOverflows, num_overflows_);
    put_at(bytes, lmdb::kMetaMain + lmdb::kDbEntries, static_cast<uint64_t>(values_.size()));
    put_at(bytes, lmdb::kMetaMain + lmdb::kDbRoot, root);
    put_at(bytes, lmdb::kMetaLastPage, pages - 1);
    put_at(bytes, lmdb::kMetaTransaction, page);  // the second is the newer one
    return bytes;
  }

  void append(std::string_view bytes) {
    write_fully(file_, path_, bytes);
    place_ += bytes.size();
  }

  std::filesystem::path path_;
  FileDescriptor file_;
  std::vector<OutputArray> arrays_;
  std::vector<StoredValue> values_;
  uint64_t place_ = 0, left_ = 0;
  uint64_t num_branches_ = 0, num_leaves_ = 0, num_overflows_ = 0;
};

}  // namespace

std::unique_ptr<ArrayWriter> make_lmdb_writer(const std::filesystem::path& folder, const OutputFile& output) {
  return std::make_unique<LmdbWriter>(folder, output);
}

}  // namespace welkin::data
