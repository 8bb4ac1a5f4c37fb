// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/box_array.h"

#include <algorithm>
#include <span>

#include "core/checked.h"
#include "core/philox.h"
#include "core/process/host.h"
#include "core/process/thread_pool.h"
#include "core/text.h"
#include "data/storage/array_views.h"
#include "data/storage/axis_names.h"
#include "data/storage/host_memory.h"
#include "data/storage/strided_copy.h"

namespace welkin::data {
namespace {

using Strides = std::array<int64_t, 4>;  // channel, then the box's axes

Strides channel_first(const BoxShape& shape) {
  const auto& n = shape.extent;
  return {n[0] * n[1] * n[2], n[1] * n[2], n[2], 1};
}

int64_t num_values(const BoxShape& shape) {
  const std::array<int64_t, 4> sizes{shape.channels, shape.extent[0], shape.extent[1], shape.extent[2]};
  return checked_product(sizes, [&] {
    throw DataError("data", cat("a box is too large for any machine: channels=", shape.channels, ", edge=", shape.extent[0]),
                    "Check box_size");
  });
}

const ChannelOp* op_of(const BoxPiece& piece, int64_t channel) {
  if (piece.ops == nullptr || piece.ops[channel].is_identity()) return nullptr;
  return piece.ops + channel;
}

// Channels that are read from one after another become one block.
int64_t run_length(const BoxPiece& piece, int64_t channel) {
  if (op_of(piece, channel) != nullptr) return 1;
  int64_t end = channel + 1;
  while (end < piece.num_channels && piece.channels[end] == piece.channels[end - 1] + 1 && op_of(piece, end) == nullptr) ++end;
  return end - channel;
}

// Copies from an array at `base` whose strides are `stride`.
void copy_piece(const float* base, const Strides& stride, const BoxPiece& piece) {
  for (int64_t c = 0; c < piece.num_channels;) {
    const int64_t count = run_length(piece, c);
    StridedBlock block;
    block.from = base + piece.channels[c] * stride[0];
    block.to = piece.to + c * piece.to_stride[0];
    block.to_stride = piece.to_stride;
    block.from_stride[0] = stride[0];
    block.extent[0] = count;
    block.op = op_of(piece, c);
    for (size_t a = 0; a < 3; ++a) {
      const auto axis = static_cast<size_t>(piece.turn.axis[a]);
      block.from += piece.first[axis] * stride[axis + 1];
      block.from_stride[a + 1] = piece.turn.flip[a] ? -stride[axis + 1] : stride[axis + 1];
      block.extent[a + 1] = piece.extent[a];
    }
    copy_strided(block);
    c += count;
  }
}

class MappedBox : public BoxArray {
 public:
  MappedBox(const BoxShape& shape, std::shared_ptr<const WatchedFile> file, uint64_t offset, const Strides& stride)
      : BoxArray(shape), file_(std::move(file)), offset_(offset), stride_(stride) {
    const auto bytes = static_cast<uint64_t>(num_values(shape)) * sizeof(float);
    if (offset <= file_->size() && bytes <= file_->size() - offset) return;
    throw DataError("data",
                    cat("the file is truncated: path=", file_->path().string(), ", bytes_needed=", offset + bytes,
                        ", bytes_found=", file_->size()),
                    "Copy or make it again");
  }

  void read(const BoxPiece& piece) const override {
    const auto cells = static_cast<uint64_t>(piece.extent[0] * piece.extent[1] * piece.extent[2]);
    file_->copy(first_byte(piece), cells * static_cast<uint64_t>(piece.num_channels) * sizeof(float),
                [&](const std::byte* file) { copy_piece(reinterpret_cast<const float*>(file + offset_), stride_, piece); });
  }
  uint64_t bytes_requested() const override { return file_->bytes_requested(); }
  std::filesystem::path path() const override { return file_->path(); }

 private:
  uint64_t first_byte(const BoxPiece& piece) const {
    int64_t place = piece.channels[0] * stride_[0];
    for (size_t a = 0; a < 3; ++a) place += piece.first[a] * stride_[a + 1];
    return offset_ + static_cast<uint64_t>(place) * sizeof(float);
  }

  std::shared_ptr<const WatchedFile> file_;
  uint64_t offset_;  // a multiple of 4
  Strides stride_;
};

class MemoryBox : public BoxArray {
 public:
  MemoryBox(const BoxShape& shape, std::vector<float> values)
      : BoxArray(shape), values_(std::move(values)), stride_(channel_first(shape)) {
    WELKIN_CHECK(static_cast<int64_t>(values_.size()) == num_values(shape), "the values do not fill the box");
  }
  void read(const BoxPiece& piece) const override { copy_piece(values_.data(), stride_, piece); }

 private:
  std::vector<float> values_;
  Strides stride_;
};

// Scratch memory of this thread for a piece before it is turned. It keeps its size: fresh memory costs as much as the copy.
std::span<float> turning_scratch(int64_t count) {
  thread_local std::vector<float> scratch;
  if (static_cast<int64_t>(scratch.size()) < count) scratch.resize(static_cast<size_t>(count));
  return std::span(scratch).first(static_cast<size_t>(count));
}

// Reads a piece, then turns it. A piece that is not turned is read straight to its place.
class DecodedBox : public BoxArray {
 public:
  DecodedBox(const BoxShape& shape, StoredArrayPtr array, std::filesystem::path path)
      : BoxArray(shape), array_(std::move(array)), path_(std::move(path)) {}

  uint64_t bytes_requested() const override { return array_->bytes_requested(); }
  std::filesystem::path path() const override { return path_; }

  void read(const BoxPiece& piece) const override {
    if (piece.turn == Orientation{}) return read_unturned(piece);
    BoxShape cut{piece.num_channels, {}};
    Extents begin{0, 0, 0, 0}, extent{1, 0, 0, 0};
    BoxPiece inner = piece;
    for (size_t a = 0; a < 3; ++a) {
      const auto axis = static_cast<size_t>(piece.turn.axis[a]);
      cut.extent[axis] = extent[axis + 1] = piece.extent[a];
      begin[axis + 1] = piece.turn.flip[a] ? piece.first[axis] - piece.extent[a] + 1 : piece.first[axis];
      inner.first[axis] = piece.turn.flip[a] ? piece.extent[a] - 1 : 0;
    }
    const std::span<float> values = turning_scratch(num_values(cut));
    const Strides stride = channel_first(cut);
    std::vector<int64_t> order;
    for (int64_t c = 0; c < piece.num_channels; ++c) {
      order.push_back(c);
    }
    for (int64_t c = 0; c < piece.num_channels;) {
      const int64_t count = run_length(piece, c);
      begin[0] = piece.channels[c];
      extent[0] = count;
      ArrayRegion region{begin, begin};
      for (size_t d = 0; d < region.end.size(); ++d) region.end[d] += extent[d];
      array_->read(region, values.subspan(static_cast<size_t>(c * stride[0]), static_cast<size_t>(count * stride[0])));
      c += count;
    }
    inner.channels = order.data();
    copy_piece(values.data(), stride, inner);
  }

 private:
  void read_unturned(const BoxPiece& piece) const {
    for (int64_t c = 0; c < piece.num_channels;) {
      const int64_t count = run_length(piece, c);
      ArrayRegion region{{piece.channels[c], piece.first[0], piece.first[1], piece.first[2]}, {}};
      region.end = region.begin;
      region.end[0] += count;
      for (size_t a = 0; a < 3; ++a) region.end[a + 1] += piece.extent[a];
      float* to = piece.to + c * piece.to_stride[0];
      array_->read(region, to, piece.to_stride);
      if (const ChannelOp* op = op_of(piece, c)) apply_rows(*op, piece, to);
      c += count;
    }
  }

  static void apply_rows(const ChannelOp& op, const BoxPiece& piece, float* to) {
    for (int64_t i = 0; i < piece.extent[0]; ++i) {
      for (int64_t j = 0; j < piece.extent[1]; ++j) {
        apply(op, to + i * piece.to_stride[1] + j * piece.to_stride[2], piece.extent[2]);
      }
    }
  }

  StoredArrayPtr array_;
  std::filesystem::path path_;
};

void check_memory(const BoxShape& shape, const std::string& what) {
  check_fits_memory(static_cast<uint64_t>(num_values(shape)) * sizeof(float), what);
}

bool is_channel_last(const Extents& shape, ChannelAxis expected, int64_t channels) {
  const bool last = expected == ChannelAxis::Last;
  const int64_t here = last ? shape[3] : shape[0], there = last ? shape[0] : shape[3];
  return here != channels && there == channels ? !last : last;
}

// The array as (C, D, H, W), whatever the order in the file.
StoredArrayPtr channel_first_array(const StoredArrayPtr& array, ChannelAxis expected, int64_t channels) {
  const ArrayFacts& facts = array->facts();
  if (facts.shape.size() != 4 || std::ranges::count(facts.shape, 0) > 0) {
    throw DataError("data", cat("a box of wrong shape: path=", facts.source, ", shape=", extents_text(facts.shape)),
                    cat("Give an array ", expected == ChannelAxis::Last ? "(D, H, W, C)" : "(C, D, H, W)"));
  }
  if (facts.axes.size() == 4) {  // dimensions of HDF5 may have names without a meaning
    const auto channel = std::ranges::find_if(facts.axes, is_channel_axis);
    const auto wanted = [](AxisKind kind) {
      const auto names = axis_names(kind);
      return std::vector<std::string_view>(names.begin(), names.end());
    };
    auto turned = array;
    if (channel != facts.axes.end())
      turned = with_axes(array, {{*channel}, wanted(AxisKind::Depth), wanted(AxisKind::Height), wanted(AxisKind::Width)});
    if (turned != array || channel == facts.axes.begin()) return turned;
  }
  return is_channel_last(facts.shape, expected, channels) ? permuted(array, {3, 0, 1, 2}) : array;
}

}  // namespace

BoxArrayPtr open_box(const ArrayFile& file, const std::string& dataset, ChannelAxis expected, int64_t channels) {
  StoredArrayPtr array = channel_first_array(file.array(dataset), expected, channels);
  const Extents& n = array->facts().shape;
  const BoxShape shape{n[0], {n[1], n[2], n[3]}};
  const auto floats = array->mapped();
  if (!floats || floats->missing) return std::make_shared<DecodedBox>(shape, std::move(array), file.path);
  const Extents& stride = floats->stride;
  return std::make_shared<MappedBox>(shape, floats->file, floats->offset, Strides{stride[0], stride[1], stride[2], stride[3]});
}

BoxArrayPtr make_box(const BoxShape& shape, std::vector<float> values) {
  return std::make_shared<MemoryBox>(shape, std::move(values));
}

BoxArrayPtr load_box(const BoxArray& box) {
  const BoxShape& shape = box.shape();
  check_memory(shape, box.path().string());
  std::vector<float> values(static_cast<size_t>(num_values(shape)));
  const Strides stride = channel_first(shape);
  for (int64_t c = 0; c < shape.channels; ++c) {
    for (int64_t d = 0; d < shape.extent[0]; ++d) {
      box.read({.first = {d, 0, 0},
                .extent = {1, shape.extent[1], shape.extent[2]},
                .turn = {},
                .channels = &c,
                .num_channels = 1,
                .to = values.data() + c * stride[0] + d * stride[1],
                .to_stride = stride});
    }
  }
  return make_box(shape, std::move(values));
}

BoxArrayPtr make_normal_box(const BoxShape& shape, uint64_t seed) {
  check_memory(shape, "synthetic");
  std::vector<float> values(static_cast<size_t>(num_values(shape)));
  const uint64_t key = stream_key(seed, "synthetic box");
  constexpr int64_t kPieceBlocks = 1 << 16;
  const auto blocks = static_cast<int64_t>((values.size() + 3) / 4);
  ThreadPool pool({.num_threads = usable_cores(), .name = "synthetic"});
  pool.parallel_for((blocks + kPieceBlocks - 1) / kPieceBlocks, [&](int64_t piece) {
    for (int64_t b = piece * kPieceBlocks; b < std::min(blocks, (piece + 1) * kPieceBlocks); ++b) {
      const PhiloxBlock words = philox(key, 0, static_cast<uint64_t>(b));
      const auto low = normal_pair(words[0], words[1]), high = normal_pair(words[2], words[3]);
      const std::array<double, 4> normals{low[0], low[1], high[0], high[1]};
      const auto first = static_cast<size_t>(b) * 4;
      for (size_t i = 0; i < std::min<size_t>(4, values.size() - first); ++i) values[first + i] = static_cast<float>(normals[i]);
    }
  });
  return make_box(shape, std::move(values));
}

}  // namespace welkin::data
