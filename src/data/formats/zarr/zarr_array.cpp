// SPDX-License-Identifier: Apache-2.0
#include "data/formats/zarr/zarr_array.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "core/checked.h"
#include "core/error.h"
#include "core/text.h"
#include "data/storage/stored_values.h"
#include "data/storage/watched_file.h"

namespace welkin::data {
namespace {

constexpr uint64_t kMostShardChunks = uint64_t{1} << 24;

// Byte strides of a decoded chunk along the array's axes.
Extents decoded_strides(const Extents& chunk, const std::vector<size_t>& order, Dtype dtype) {
  const auto width = static_cast<int64_t>(dtype_bytes(dtype));
  Extents shape = chunk;
  for (size_t i = 0; i < order.size(); ++i) shape[i] = chunk[order[i]];
  const Extents encoded = c_strides(shape);
  Extents strides(chunk.size());
  for (size_t i = 0; i < chunk.size(); ++i) strides[order.empty() ? i : order[i]] = encoded[i] * width;
  return strides;
}

class ZarrStoredArray : public StoredArray {
 public:
  ZarrStoredArray(std::filesystem::path folder, ZarrArray array, ArrayFacts facts, std::shared_ptr<ChunkCache> cache)
      : StoredArray(std::move(facts)), folder_(std::move(folder)), array_(std::move(array)), cache_(std::move(cache)) {
    const ZarrEncoding& encoding = this->encoding();
    chunk_bytes_ = zarr_chunk_bytes(array_.decoded_chunk(), array_.dtype, this->facts().source);
    byte_stride_ = decoded_strides(array_.decoded_chunk(), encoding.order, array_.dtype);
    if (array_.shard) count_shard_chunks();
    if (cache_) cache_number_ = cache_->new_array();
  }

 protected:
  void read_stored(const ArrayRegion& region, const ValueTarget& target) const override {
    const Extents& chunk = array_.chunk;
    Extents index(chunk.size());
    for (size_t d = 0; d < chunk.size(); ++d) index[d] = region.begin[d] / chunk[d];
    for (;;) {
      read_file_part(index, region, target);
      size_t d = chunk.size();
      while (d > 0 && ++index[d - 1] * chunk[d - 1] >= region.end[d - 1]) {
        --d;
        index[d] = region.begin[d] / chunk[d];
      }
      if (d == 0) return;
    }
  }

 private:
  const ZarrEncoding& encoding() const { return array_.shard ? array_.shard->inner : array_.encoding; }

  void count_shard_chunks() {
    const auto refuse = [&] { refuse_json(facts().source, "chunk_shape", "more than 16 million chunks in a shard"); };
    uint64_t count = 1;
    for (size_t d = 0; d < array_.chunk.size(); ++d) {
      shard_grid_.push_back(array_.chunk[d] / array_.shard->inner_chunk[d]);
      count = checked_mul(count, static_cast<uint64_t>(shard_grid_.back()), refuse);
    }
    if (count > kMostShardChunks) refuse();
    num_shard_chunks_ = count;
  }

  static std::optional<uint64_t> file_size(const std::filesystem::path& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) {
      if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
      throw file_error("look at", path, errno);
    }
    return static_cast<uint64_t>(status.st_size);
  }

  // The part of the region that one file of chunks holds.
  void read_file_part(const Extents& index, const ArrayRegion& region, const ValueTarget& target) const {
    const std::filesystem::path path = folder_ / array_.chunk_file(index);
    const auto size = file_size(path);
    ArrayRegion part = region;
    for (size_t d = 0; d < index.size(); ++d) {
      part.begin[d] = std::max(part.begin[d], index[d] * array_.chunk[d]);
      part.end[d] = std::min(part.end[d], (index[d] + 1) * array_.chunk[d]);
    }
    if (!size) return fill_part(path, index, part, region, target);
    const WatchedFile file(path);
    if (array_.shard) return read_shard(file, index, part, region, target);
    if (encoding().codecs.empty()) return copy_plain(file, index, part, region, target);
    read_chunk(file, 0, file.size(), index, part, region, target);
  }

  std::string chunk_source(const std::filesystem::path& path, const Extents& index, uint64_t offset) const {
    return cat(path.string(), ", dataset=", facts().name, ", chunk=", extents_text(index), ", offset=", offset);
  }

  void read_chunk(const WatchedFile& file, uint64_t offset, uint64_t size, const Extents& index, const ArrayRegion& part,
                  const ArrayRegion& region, const ValueTarget& target) const {
    const std::string source = chunk_source(file.path(), index, offset);
    if (size > chunk_bytes_ + chunk_bytes_ / 8 + (1 << 16)) {
      throw DataError("data",
                      cat("a chunk that is larger than its values: path=", source, ", bytes=", size, ", values=", chunk_bytes_),
                      "The file is damaged: restore or make it again");
    }
    const ChunkCache::Key key{cache_number_, chunk_number(index)};
    ChunkCache::Chunk values = cache_ ? cache_->find(key) : nullptr;
    if (!values) {
      ByteBuffer stored(static_cast<size_t>(size));
      file.read(offset, stored.span());
      values = std::make_shared<const ByteBuffer>(decode_chunk(encoding().codecs, stored.span(), chunk_bytes_, source));
      if (cache_) cache_->insert(key, values);
    }
    copy_part(values->data(), index, part, region, target);
  }

  // Number of a chunk in the grid of decoded chunks, row-major.
  int64_t chunk_number(const Extents& index) const {
    int64_t number = 0;
    for (size_t d = 0; d < index.size(); ++d) {
      const int64_t chunk = array_.decoded_chunk()[d];
      number = number * ((array_.shape[d] + chunk - 1) / chunk) + index[d];
    }
    return number;
  }

  // Copies the needed values of a chunk whose bytes are stored plainly.
  void copy_plain(const WatchedFile& file, const Extents& index, const ArrayRegion& part, const ArrayRegion& region,
                  const ValueTarget& target) const {
    if (file.size() != chunk_bytes_) {
      throw DataError("data",
                      cat("a chunk cannot be decoded: path=", chunk_source(file.path(), index, 0),
                          ", reason=bytes_expected=", chunk_bytes_, ", bytes_found=", file.size()),
                      "The file is damaged: restore or make it again");
    }
    const auto wanted = static_cast<uint64_t>(part.num_values()) * dtype_bytes(array_.dtype);
    file.copy(0, wanted, [&](const std::byte* bytes) { copy_part(bytes, index, part, region, target); });
  }

  // `chunk` holds the decoded bytes of the chunk at `index` of the decoded grid.
  void copy_part(const std::byte* chunk, const Extents& index, const ArrayRegion& part, const ArrayRegion& region,
                 const ValueTarget& target) const {
    const Extents& size = array_.decoded_chunk();
    std::array<int64_t, kMostArrayDims> extent{};
    const std::byte* from = chunk;
    for (size_t d = 0; d < size.size(); ++d) {
      extent[d] = part.end[d] - part.begin[d];
      from += (part.begin[d] - index[d] * size[d]) * byte_stride_[d];
    }
    copy_values({.from = from,
                 .type = {array_.dtype, encoding().big_endian},
                 .extent = {extent.data(), size.size()},
                 .from_stride = byte_stride_,
                 .to = place_in(target, part, region),
                 .to_double = target.is_double,
                 .to_stride = {target.stride, size.size()}});
  }

  static void* place_in(const ValueTarget& target, const ArrayRegion& part, const ArrayRegion& region) {
    int64_t place = 0;
    for (size_t d = 0; d < part.begin.size(); ++d) place += (part.begin[d] - region.begin[d]) * target.stride[d];
    return static_cast<std::byte*>(target.to) + place * (target.is_double ? 8 : 4);
  }

  // zarr-python 3 writes no chunk of zeros, also where an array of version 2 has no fill value: the coordinate of a single start,
  // member or level.
  bool is_lone_value(const Extents& index) const {
    if (array_.version != 2 || index.size() != 1) return false;
    return std::min(array_.chunk[0], array_.shape[0] - index[0] * array_.chunk[0]) == 1;
  }

  void fill_part(const std::filesystem::path& path, const Extents& index, const ArrayRegion& part, const ArrayRegion& region,
                 const ValueTarget& target) const {
    // Without its metadata the array itself is gone.
    const bool exists = file_size(folder_ / (array_.version == 2 ? ".zarray" : "zarr.json")).has_value();
    const auto fill = array_.fill ? array_.fill : is_lone_value(index) ? std::optional(0.0) : std::nullopt;
    if (!fill || !exists) {
      throw DataError("data", cat("a chunk is missing: path=", chunk_source(path, index, 0)),
                      "Restore the file, or make the array again");
    }
    const Extents extent = part.extent(), still(extent.size(), 0);
    copy_values({.from = reinterpret_cast<const std::byte*>(&*fill),
                 .type = {Dtype::F64, false},
                 .extent = extent,
                 .from_stride = still,
                 .to = place_in(target, part, region),
                 .to_double = target.is_double,
                 .to_stride = {target.stride, extent.size()}});
  }

  std::vector<ShardPlace> shard_index(const WatchedFile& file, const Extents& index) const {
    const uint64_t bytes = num_shard_chunks_ * 16 + (array_.shard->index_has_checksum ? 4 : 0);
    const std::string source =
        chunk_source(file.path(), index, array_.shard->index_at_start || file.size() < bytes ? 0 : file.size() - bytes);
    try {
      if (file.size() < bytes) throw CodecFailure{cat("the index of a shard needs ", bytes, " bytes, bytes_found=", file.size())};
      ByteBuffer stored(static_cast<size_t>(bytes));
      file.read(array_.shard->index_at_start ? 0 : file.size() - bytes, stored.span());
      return parse_shard_index(stored.span(), array_.shard->index_has_checksum, file.size());
    } catch (const CodecFailure& failure) {
      throw DataError("data", cat("a shard cannot be read: path=", source, ", reason=", failure.reason),
                      "The file is damaged: restore or make it again");
    }
  }

  void read_shard(const WatchedFile& file, const Extents& shard, const ArrayRegion& part, const ArrayRegion& region,
                  const ValueTarget& target) const {
    const std::vector<ShardPlace> places = shard_index(file, shard);
    for (const ArrayRegion& piece : pieces(part)) {
      Extents index(shard.size());
      size_t place = 0;
      for (size_t d = 0; d < shard.size(); ++d) {
        index[d] = piece.begin[d] / array_.shard->inner_chunk[d];
        place = place * static_cast<size_t>(shard_grid_[d]) + static_cast<size_t>(index[d] - shard[d] * shard_grid_[d]);
      }
      if (places[place].size == 0) {
        fill_part(file.path(), index, piece, region, target);
      } else {
        read_chunk(file, places[place].offset, places[place].size, index, piece, region, target);
      }
    }
  }

  std::filesystem::path folder_;
  ZarrArray array_;
  std::shared_ptr<ChunkCache> cache_;  // null: nothing is kept
  int64_t cache_number_ = 0;           // of this array in the cache
  size_t chunk_bytes_ = 0;
  Extents byte_stride_;  // of a decoded chunk
  Extents shard_grid_;   // chunks in a shard along each axis
  uint64_t num_shard_chunks_ = 0;
};

std::vector<std::string> codec_names(const std::vector<Codec>& codecs) {
  std::vector<std::string> names;
  for (const Codec& codec : codecs) names.push_back(codec_name(codec));
  return names;
}

}  // namespace

std::vector<ShardPlace> parse_shard_index(std::span<const std::byte> index, bool has_checksum, uint64_t file_bytes) {
  ByteBuffer checked;
  if (has_checksum) {
    checked = decode({.kind = CodecKind::Crc32c}, index, index.size());
    index = checked.span();
  }
  std::vector<ShardPlace> places(index.size() / 16);
  for (size_t i = 0; i < places.size(); ++i) {
    uint64_t offset = 0, size = 0;
    std::memcpy(&offset, index.data() + i * 16, 8);
    std::memcpy(&size, index.data() + i * 16 + 8, 8);
    if (offset == ~uint64_t{0} && size == ~uint64_t{0}) continue;
    if (offset > file_bytes || size > file_bytes - offset || size == 0) {
      throw CodecFailure{cat("chunk ", i, " of the shard lies beyond the file: offset=", offset, ", bytes=", size)};
    }
    places[i] = {offset, size};
  }
  return places;
}

StoredArrayPtr make_zarr_array(const std::filesystem::path& folder, ZarrArray array, ArrayFacts facts,
                               std::shared_ptr<ChunkCache> cache) {
  facts.shape = array.shape;
  facts.chunk = array.decoded_chunk();
  facts.dtype = array.dtype;
  facts.axes = array.axes;
  const ZarrEncoding& encoding = array.shard ? array.shard->inner : array.encoding;
  facts.big_endian = encoding.big_endian;
  facts.fortran_order = encoding.order.size() > 1;
  facts.codecs = codec_names(encoding.codecs);
  if (array.shard) facts.codecs.push_back(cat("shards ", extents_text(array.chunk)));
  add_packing(array.attributes, facts);
  return std::make_shared<ZarrStoredArray>(folder, std::move(array), std::move(facts), std::move(cache));
}

}  // namespace welkin::data
