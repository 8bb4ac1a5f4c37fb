// SPDX-License-Identifier: Apache-2.0
#include "core/archive/torch_file.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_map>

#include "core/archive/byte_cursor.h"
#include "core/archive/pickle_reader.h"
#include "core/checked.h"

namespace welkin::archive {
namespace {

constexpr std::string_view kComponent = "torch file";
// torch/serialization.py: MAGIC_NUMBER 0x1950a86a20f9469cfc6c and PROTOCOL_VERSION of the legacy format.
constexpr std::string_view kLegacyMagic("\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 10);
constexpr int64_t kLegacyProtocol = 1001;
constexpr uint64_t kFreeBytes = uint64_t{16} << 20;
constexpr uint64_t kMostRepeats = 8;

[[noreturn]] void refuse(std::string_view source, std::string_view why,
                         std::string_view remedy = "The file is damaged or made by hand: save it again in PyTorch") {
  throw DataError(kComponent, cat(why, ", file=", source), remedy);
}

// Copies the last dims of a strided tensor; `out` moves on.
void gather(const PickleNode& tensor, size_t dim, const std::byte* from, uint64_t item, std::byte*& out) {
  if (dim == tensor.shape.size()) {
    std::memcpy(out, from, item);
    out += item;
    return;
  }
  const auto extent = static_cast<uint64_t>(tensor.shape[dim]);
  const auto step = static_cast<uint64_t>(tensor.strides[dim]) * item;
  if (dim + 1 == tensor.shape.size() && step == item) {
    std::memcpy(out, from, extent * item);
    out += extent * item;
    return;
  }
  for (uint64_t i = 0; i < extent; ++i) gather(tensor, dim + 1, from + i * step, item, out);
}

bool row_major_strides(const PickleNode& tensor) {
  int64_t expected = 1;
  for (size_t dim = tensor.shape.size(); dim-- > 0;) {
    if (tensor.shape[dim] != 1 && tensor.strides[dim] != expected) return false;
    expected *= tensor.shape[dim];
  }
  return true;
}

}  // namespace

bool TorchContent::recognises(std::span<const std::byte> file) {
  if (ZipReader::recognises(file)) return true;
  // PROTO 2, LONG1 of ten bytes, the magic number.
  constexpr size_t kHead = 4;
  return file.size() > kHead + kLegacyMagic.size() &&
         std::memcmp(file.data() + kHead, kLegacyMagic.data(), kLegacyMagic.size()) == 0;
}

TorchContent::TorchContent(std::span<const std::byte> file, std::string source) : file_(file), source_(std::move(source)) {
  if (ZipReader::recognises(file_)) {
    open_zip();
  } else if (recognises(file_)) {
    open_legacy();
  } else {
    refuse(source_, "it is neither a zip nor a legacy file of torch.save", "Check that this is a checkpoint");
  }
  check_storages();
}

void TorchContent::open_zip() {
  zip_.emplace(file_, source_);
  constexpr std::string_view kPickle = "data.pkl";
  for (const auto& [name, entry] : zip_->entries()) {
    if (!name.ends_with(kPickle)) continue;
    const std::string root = name.substr(0, name.size() - kPickle.size());
    if (!root.empty() && root.find('/') != root.size() - 1) continue;
    if (pickle_.nodes.empty()) {
      root_ = root;
      zip_->verify(name);
      if (entry.bytes.size() > kMaxPickleBytes) refuse(source_, cat("its data.pkl is too large: bytes=", entry.bytes.size()));
      pickle_ = read_pickle(entry.bytes, source_);
    } else {
      refuse(source_, "it holds two data.pkl");
    }
  }
  if (pickle_.nodes.empty()) {
    refuse(source_, "it is a zip file without data.pkl", "Check that this is a file of torch.save");
  }
  const ZipEntry* order = zip_->find(root_ + "byteorder");
  constexpr std::string_view kLittle = "little";
  if (order != nullptr && (order->bytes.size() != kLittle.size() || std::memcmp(order->bytes.data(), kLittle.data(), 6) != 0)) {
    refuse(source_, "its numbers are big endian (record byteorder)", "Load and save it in PyTorch on a little-endian machine");
  }
}

// Five pickles (magic number, protocol, system, the value, keys of the storages), then each storage: element count, bytes.
void TorchContent::open_legacy() {
  std::vector<Pickle> heads;
  uint64_t position = 0;
  for (int i = 0; i < 5; ++i) {
    const auto rest = file_.subspan(position);
    heads.push_back(read_pickle(rest.subspan(0, std::min<uint64_t>(rest.size(), kMaxPickleBytes)), source_));
    position += heads.back().bytes;
  }
  check_legacy_header(heads);
  pickle_ = std::move(heads[3]);
  find_legacy_storages(heads[4], position);
}

void TorchContent::check_legacy_header(std::vector<Pickle>& heads) const {
  const PickleNode& magic = heads[0].top();
  if (magic.kind != PickleKind::BigInt || magic.text != kLegacyMagic)
    refuse(source_, "the magic number of torch.save is missing");
  if (heads[1].top().kind != PickleKind::Int || heads[1].top().integer != kLegacyProtocol) {
    refuse(source_, cat("unknown version of the legacy format: version=", heads[1].top().integer));
  }
  const PickleNode* little = heads[2].find(heads[2].top(), "little_endian");
  if (little == nullptr || little->kind != PickleKind::Bool || little->integer == 0) {
    refuse(source_, "its numbers are big endian (little_endian)", "Load and save it in PyTorch on a little-endian machine");
  }
}

void TorchContent::find_legacy_storages(const Pickle& keys, uint64_t position) {
  std::map<std::string_view, uint64_t> item_bytes;
  for (const PickleNode& node : pickle_.nodes) {
    if (node.kind == PickleKind::Storage) item_bytes[node.text] = dtype_bytes(node.dtype);
  }
  ByteCursor cursor(file_, kComponent, source_, position);
  if (keys.top().kind != PickleKind::List) refuse(source_, "the list of its storages is missing");
  for (const PickleId id : keys.top().items) {
    const std::string& key = keys[id].text;
    const auto known = item_bytes.find(key);
    if (known == item_bytes.end()) refuse(source_, "it holds a storage that no tensor uses");
    const auto elements = cursor.little<uint64_t>();
    const auto too_many = [&] { refuse(source_, cat("a storage is too large: elements=", elements)); };
    if (!legacy_.emplace(key, cursor.take(checked_mul(elements, known->second, too_many))).second) {
      refuse(source_, "two storages have one name");
    }
  }
}

// Checks that the bytes of all storages exist, before anything is allocated for them.
void TorchContent::check_storages() const {
  std::unordered_map<std::string_view, uint64_t> seen;
  for (const PickleNode& node : pickle_.nodes) {
    if (node.kind != PickleKind::Storage) continue;
    const auto too_many = [&] { refuse(source_, cat("a storage is too large: elements=", node.integer)); };
    const uint64_t claimed = checked_mul(static_cast<uint64_t>(node.integer), dtype_bytes(node.dtype), too_many);
    const auto [row, first] = seen.emplace(node.text, 0);
    if (first) row->second = storage(node).size();
    if (claimed != row->second) {
      refuse(source_, cat("a storage has another size than its tensors say: claimed bytes=", claimed, ", bytes=", row->second));
    }
  }
}

std::span<const std::byte> TorchContent::storage(const PickleNode& node) const {
  if (const auto found = legacy_.find(node.text); found != legacy_.end()) return found->second;
  const ZipEntry* entry = zip_ ? zip_->find(cat(root_, "data/", node.text)) : nullptr;
  if (entry == nullptr) refuse(source_, cat("a storage is missing: elements=", node.integer));
  return entry->bytes;
}

uint64_t TorchContent::bytes_of(const PickleNode& tensor) {
  const auto overflow = [] { throw DataError(kComponent, "a tensor is too large", "The file is damaged or made by hand"); };
  const auto elements = static_cast<uint64_t>(checked_product(tensor.shape, overflow));
  return checked_mul(elements, dtype_bytes(tensor.dtype), overflow);
}

std::vector<std::byte> TorchContent::row_major(const PickleNode& tensor) const {
  WELKIN_CHECK(tensor.kind == PickleKind::Tensor, "the values of something that is no tensor");
  const PickleNode& owner = pickle_[tensor.items[0]];
  const auto stored = storage(owner);
  const uint64_t bytes = bytes_of(tensor);
  if (bytes > kFreeBytes && bytes / kMostRepeats > stored.size()) {
    refuse(source_, cat("a tensor repeats few stored bytes: bytes=", bytes, ", stored=", stored.size()),
           "Save a contiguous copy of it");
  }
  if (zip_ && verified_.emplace(owner.text, true).second) zip_->verify(cat(root_, "data/", owner.text));
  std::vector<std::byte> values(bytes);
  if (bytes == 0) return values;
  const uint64_t item = dtype_bytes(tensor.dtype);
  const std::byte* from = stored.data() + static_cast<uint64_t>(tensor.integer) * item;
  std::byte* out = values.data();
  if (row_major_strides(tensor)) {
    std::memcpy(out, from, bytes);
  } else {
    gather(tensor, 0, from, item, out);
  }
  return values;
}

}  // namespace welkin::archive
