// SPDX-License-Identifier: Apache-2.0
#include "data/formats/hdf5/hdf5_chunks.h"

#include <algorithm>
#include <cstring>

#include "core/checked.h"
#include "core/text.h"

namespace welkin::data {
namespace {

// Tables of places stay below 256 MiB; the library reads data sets of more chunks.
constexpr int64_t kMostChunks = int64_t{1} << 24;
// Larger ones are decoded by the library, which has its own limit at 4 GiB.
constexpr int64_t kMostChunkBytes = int64_t{1} << 30;

Extents chunk_grid(const ChunkLayout& layout) {
  Extents grid;
  for (size_t a = 0; a < layout.shape.size(); ++a) grid.push_back((layout.shape[a] + layout.chunk[a] - 1) / layout.chunk[a]);
  return grid;
}

int64_t product_of(const Extents& extents) {
  int64_t product = 1;
  for (const int64_t extent : extents) product *= extent;
  return product;
}

// Steps through the multi-index `at` within [low, high), last axis fastest. False after the last.
bool advance(Extents& at, const Extents& low, const Extents& high) {
  for (size_t a = at.size(); a-- > 0;) {
    if (++at[a] < high[a]) return true;
    at[a] = low[a];
  }
  return false;
}

// Row-major place of `cell` in a block of size `extent` that begins at `begin`.
int64_t place_in(const Extents& cell, const Extents& begin, const Extents& extent) {
  int64_t place = 0;
  for (size_t a = 0; a < cell.size(); ++a) place = place * extent[a] + cell[a] - begin[a];
  return place;
}

ChunkScratch& thread_scratch() {
  thread_local ChunkScratch scratch;
  return scratch;
}

}  // namespace

bool Hdf5Chunks::can_hold(const ChunkLayout& layout) {
  const auto refuse = [] { throw DataError("hdf5", "a chunk grid that does not fit", "Make the file again"); };
  try {
    const int64_t bytes = checked_mul(checked_product(layout.chunk, refuse), static_cast<int64_t>(layout.fill.size()), refuse);
    return checked_product(chunk_grid(layout), refuse) <= kMostChunks && bytes <= kMostChunkBytes;
  } catch (const DataError&) {
    return false;
  }
}

Hdf5Chunks::Hdf5Chunks(std::shared_ptr<const Hdf5File> file, std::shared_ptr<const WatchedFile> bytes, std::string dataset,
                       ChunkLayout layout, std::shared_ptr<ChunkCache> cache)
    : file_(std::move(file)),
      bytes_(std::move(bytes)),
      dataset_(std::move(dataset)),
      layout_(std::move(layout)),
      grid_(chunk_grid(layout_)),
      cache_(std::move(cache)),
      cache_number_(cache_->new_array()) {}

Extents Hdf5Chunks::first_cell(int64_t number) const {
  Extents cell(grid_.size());
  for (size_t a = grid_.size(); a-- > 0; number /= grid_[a]) cell[a] = number % grid_[a] * layout_.chunk[a];
  return cell;
}

std::vector<ChunkPlace> Hdf5Chunks::find_places(const std::vector<int64_t>& chunks) const {
  const std::lock_guard lock(mutex_);
  if (known_.empty()) {
    places_.resize(static_cast<size_t>(product_of(grid_)));
    known_.resize(places_.size());
  }
  std::vector<ChunkPlace> found;
  std::optional<Hdf5Lock> library;  // taken once for all that are not known yet
  for (const int64_t number : chunks) {
    const auto i = static_cast<size_t>(number);
    if (!known_[i]) {
      if (!library) library.emplace();
      places_[i] = file_->chunk_place(dataset_, first_cell(number));
      known_[i] = true;
    }
    found.push_back(places_[i]);
  }
  return found;
}

void Hdf5Chunks::decode(int64_t number, const ChunkPlace& place, std::span<std::byte> out) const {
  if (place.bytes == 0) {
    const size_t width = layout_.fill.size();
    for (size_t i = 0; i < out.size(); i += width) std::memcpy(out.data() + i, layout_.fill.data(), width);
    return;
  }
  ChunkScratch& scratch = thread_scratch();
  const bool inside = place.offset <= bytes_->size() && place.bytes <= bytes_->size() - place.offset;
  std::string why = inside ? "" : cat("it ends beyond the file's ", bytes_->size(), " bytes");
  if (inside) {
    scratch.stored.resize(place.bytes);
    bytes_->read(place.offset, scratch.stored);
    why = decode_chunk(layout_.pipeline, place.filter_mask, scratch.stored, scratch, out);
  }
  if (why.empty()) return;
  throw DataError("hdf5",
                  cat("a damaged chunk: path=", bytes_->path().string(), ", dataset=", dataset_, ", chunk_from=(",
                      join(first_cell(number), ", "), "), offset=", place.offset, ", bytes=", place.bytes, ", reason=", why),
                  "Copy or make the file again");
}

ChunkCache::Chunk Hdf5Chunks::chunk(int64_t number, const ChunkPlace& place) const {
  const ChunkCache::Key key{cache_number_, number};
  if (ChunkCache::Chunk held = cache_->find(key)) return held;
  auto values = std::make_shared<ByteBuffer>(static_cast<size_t>(product_of(layout_.chunk)) * layout_.fill.size());
  decode(number, place, values->span());
  cache_->insert(key, values);
  return values;
}

void Hdf5Chunks::read(const ArrayRegion& region, StoredType type, const ValueTarget& target) const {
  const size_t rank = layout_.shape.size();
  const auto width = static_cast<int64_t>(layout_.fill.size());
  Extents low(rank), high(rank), byte_stride = c_strides(layout_.chunk);
  for (size_t a = 0; a < rank; ++a) {
    low[a] = region.begin[a] / layout_.chunk[a];
    high[a] = (region.end[a] - 1) / layout_.chunk[a] + 1;
    byte_stride[a] *= width;
  }
  std::vector<int64_t> numbers;
  Extents at = low;
  const Extents origin(rank, 0);
  do {
    numbers.push_back(place_in(at, origin, grid_));
  } while (advance(at, low, high));
  const std::vector<ChunkPlace> places = find_places(numbers);
  for (size_t i = 0; i < numbers.size(); ++i) {
    const Extents first = first_cell(numbers[i]);
    const ChunkCache::Chunk values = chunk(numbers[i], places[i]);
    Extents extent(rank);
    int64_t from = 0, to = 0;
    for (size_t a = 0; a < rank; ++a) {
      const int64_t begin = std::max(first[a], region.begin[a]);
      extent[a] = std::min(first[a] + layout_.chunk[a], region.end[a]) - begin;
      from += (begin - first[a]) * byte_stride[a];
      to += (begin - region.begin[a]) * target.stride[a];
    }
    copy_values({.from = values->data() + from,
                 .type = type,
                 .extent = extent,
                 .from_stride = byte_stride,
                 .to = static_cast<std::byte*>(target.to) + to * (target.is_double ? 8 : 4),
                 .to_double = target.is_double,
                 .to_stride = {target.stride, rank}});
  }
  bytes_->check_unchanged(places.empty() ? 0 : places.front().offset);
}

}  // namespace welkin::data
