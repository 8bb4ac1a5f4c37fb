// SPDX-License-Identifier: Apache-2.0
// The CUDA kernel of welkin::crop_samples: a block per tile of a sample, 32 columns by 32 cells of another axis, through shared
// memory. After a turn the source's last axis may run along any axis of the output; tiles include that axis. So a warp reads
// neighbours of the source and writes neighbours of the output, channels-last or not.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "ops/cuda/sample_crop.h"

namespace welkin::ops {
namespace {

constexpr int kTile = 32, kRows = 8, kChannels = 8;
constexpr uint32_t kChannelsAtOnce = 4;  // channels whose reads are in flight together
// Warps wait for reads, so many are resident (nvcc 13.0, sm_90: 64 registers, no spills; 33 KiB shared).
constexpr int kBlocksAtOnce = 4;
constexpr int64_t kMostBlocks = 65536;

constexpr int64_t tiles_of(int64_t cells) { return (cells + kTile - 1) / kTile; }

// Tiles along planes or rows, whichever are more: a sample with few tiles leaves blocks idle.
int64_t tiles_of_sample(const CropTarget& target) {
  const int64_t planes = target.size[2], rows = target.size[3];
  const int64_t along_rows = planes * tiles_of(rows), along_planes = rows * tiles_of(planes);
  return (along_rows > along_planes ? along_rows : along_planes) * tiles_of(target.size[4]);
}

int64_t channel_chunks(const CropTarget& target) { return (target.size[1] + kChannels - 1) / kChannels; }

// The axis of the source with contiguous cells.
int nearest_axis(const CropSource& source) {
  int nearest = 2;
  for (int axis = 1; axis >= 0; --axis) {
    const bool is_closer = source.edge[nearest] <= 1 || source.stride[1 + axis] < source.stride[1 + nearest];
    if (source.edge[axis] > 1 && is_closer) nearest = axis;
  }
  return nearest;
}

struct TileGrid {
  uint32_t tiles = 0, chunks = 0, count = 0;  // of a sample, of its channels, of all samples
  int nearest = 2;
};

__device__ float as_float(float value) { return value; }
__device__ float as_float(__half value) { return __half2float(value); }
__device__ float as_float(__nv_bfloat16 value) { return __bfloat162float(value); }
__device__ void store(float value, float* to) { *to = value; }
__device__ void store(float value, __half* to) { *to = __float2half_rn(value); }
__device__ void store(float value, __nv_bfloat16* to) { *to = __float2bfloat16_rn(value); }

// Cells [first, first + count) of an axis of the output.
struct TileSide {
  CropAxis source;
  int64_t stride = 0;  // of the output
  uint32_t first = 0, count = 0;

  __device__ int64_t element(uint32_t cell) const { return source.element(first + cell); }
};

struct Tile {
  TileSide columns, other;
  int64_t from = 0, to = 0;  // offsets of the sample and of the third axis
  bool is_empty = false, reads_columns = false;
};

__device__ TileSide tile_side(const CropSource& source, const CropTarget& target, const CropPlace& place, int axis,
                              uint32_t tile) {
  const auto size = static_cast<uint32_t>(target.size[2 + axis]);
  const uint32_t first = tile * kTile;
  return {crop_axis(source, place, axis), target.stride[2 + axis], first, first + kTile < size ? kTile : size - first};
}

__device__ Tile tile_of(const CropSource& source, const CropTarget& target, const CropPlace& place, int nearest, uint32_t b,
                        uint32_t tile) {
  const int other = place.axis[0] == nearest ? 0 : 1, still = 1 - other;
  const auto across = static_cast<uint32_t>(tiles_of(target.size[4])),
             down = static_cast<uint32_t>(tiles_of(target.size[2 + other]));
  const uint32_t cell = tile / across / down;
  Tile found;
  found.is_empty = cell >= static_cast<uint32_t>(target.size[2 + still]);
  if (found.is_empty) return found;
  found.reads_columns = place.axis[2] == nearest;
  found.columns = tile_side(source, target, place, 2, tile % across);
  found.other = tile_side(source, target, place, other, tile / across % down);
  found.from = place.offset + crop_axis(source, place, still).element(cell);
  found.to = b * target.stride[0] + cell * target.stride[2 + still];
  return found;
}

// One more column separates the banks of a column's lanes, eight more numbers those of a cell's channels.
struct TileValues {
  static constexpr uint32_t kRow = kTile + 1, kChannel = kTile * kRow + 8;
  float values[kChannels * kChannel];

  __device__ float& at(uint32_t channel, uint32_t other, uint32_t column) {
    return values[channel * kChannel + other * kRow + column];
  }
};

// Lanes run along the side that is contiguous in the source.
template <typename From>
__device__ void read_tile(const Tile& tile, int64_t channel_stride, uint32_t num_channels, const int64_t* channels,
                          const CropOp* ops, const From* from, TileValues& values) {
  constexpr uint32_t kRowsOfThread = kTile / kRows;
  const TileSide& lanes = tile.reads_columns ? tile.columns : tile.other;
  const TileSide& rows = tile.reads_columns ? tile.other : tile.columns;
  const uint32_t lane = threadIdx.x;
  if (lane >= lanes.count) return;
  const From* const begin = from + tile.from + lanes.element(lane);
  int64_t places[kRowsOfThread];
#pragma unroll
  for (uint32_t k = 0; k < kRowsOfThread; ++k) {
    const uint32_t row = threadIdx.y + k * kRows;
    places[k] = rows.element(row < rows.count ? row : 0);
  }
  for (uint32_t first = 0; first < num_channels; first += kChannelsAtOnce) {
    float read[kChannelsAtOnce][kRowsOfThread];
    uint32_t negated = 0;  // one bit per channel
#pragma unroll
    for (uint32_t c = 0; c < kChannelsAtOnce; ++c) {
      const int64_t channel = channels[first + c < num_channels ? first + c : first];
      const From* const of_channel = begin + (channel >> 1) * channel_stride;
      negated |= static_cast<uint32_t>(channel & 1) << c;
#pragma unroll
      for (uint32_t k = 0; k < kRowsOfThread; ++k) read[c][k] = as_float(of_channel[places[k]]);
    }
#pragma unroll
    for (uint32_t c = 0; c < kChannelsAtOnce; ++c) {
      if (first + c >= num_channels) continue;
      const CropOp op = ops[first + c];
#pragma unroll
      for (uint32_t k = 0; k < kRowsOfThread; ++k) {
        const uint32_t row = threadIdx.y + k * kRows;
        if (row >= rows.count) continue;
        values.at(first + c, tile.reads_columns ? row : lane, tile.reads_columns ? lane : row) =
            crop_value(read[c][k], (negated >> c & 1) != 0, op);
      }
    }
  }
}

// Lanes run along the columns, and through the channels of each if these are contiguous.
template <typename To>
__device__ void write_tile(const Tile& tile, int64_t channel_stride, uint32_t num_channels, TileValues& values, To* to) {
  To* const begin = to + tile.to + tile.columns.first * tile.columns.stride;
  if (channel_stride != 1) {
    for (uint32_t row = threadIdx.y; row < tile.other.count; row += kRows) {
      To* const line = begin + (tile.other.first + row) * tile.other.stride;
      for (uint32_t column = threadIdx.x; column < tile.columns.count; column += kTile) {
        for (uint32_t c = 0; c < num_channels; ++c) {
          store(values.at(c, row, column), line + column * tile.columns.stride + c * channel_stride);
        }
      }
    }
    return;
  }
  // A lane's next place is 32 numbers further: columns and channels are incremented, without division.
  const uint32_t first_column = threadIdx.x / num_channels, first_channel = threadIdx.x % num_channels;
  const uint32_t more_columns = kTile / num_channels, more_channels = kTile % num_channels;
  for (uint32_t row = threadIdx.y; row < tile.other.count; row += kRows) {
    To* const line = begin + (tile.other.first + row) * tile.other.stride;
    uint32_t column = first_column, c = first_channel;
    while (column < tile.columns.count) {
      store(values.at(c, row, column), line + column * tile.columns.stride + c);
      column += more_columns;
      c += more_channels;
      if (c >= num_channels) {
        c -= num_channels;
        ++column;
      }
    }
  }
}

template <typename From, typename To>
__global__ void __launch_bounds__(kTile* kRows, kBlocksAtOnce)
    cut_kernel(const __grid_constant__ CropSource source, const __grid_constant__ CropTarget target, const TileGrid grid,
               const CropPlace* place, const int64_t* channels, const CropOp* ops, const From* from, To* to) {
  __shared__ TileValues values;
  const auto all_channels = static_cast<uint32_t>(target.size[1]);
  for (uint32_t block = blockIdx.x; block < grid.count; block += gridDim.x) {
    const uint32_t chunk = block / grid.tiles % grid.chunks, b = block / grid.tiles / grid.chunks, first = chunk * kChannels;
    const uint32_t num_channels = all_channels - first < kChannels ? all_channels - first : kChannels;
    const Tile tile = tile_of(source, target, place[b], grid.nearest, b, block % grid.tiles);
    if (tile.is_empty) continue;  // the same for all threads of the block
    read_tile(tile, source.stride[0], num_channels, channels + b * all_channels + first, ops + first, from, values);
    __syncthreads();
    write_tile(tile, target.stride[1], num_channels, values, to + first * target.stride[1]);
    __syncthreads();
  }
}

template <typename From, typename To>
void launch_typed(const CropLaunch& l, cudaStream_t stream) {
  const int64_t tiles = tiles_of_sample(l.target), chunks = channel_chunks(l.target), wanted = l.target.size[0] * chunks * tiles;
  if (wanted == 0) return;
  const TileGrid grid{static_cast<uint32_t>(tiles), static_cast<uint32_t>(chunks), static_cast<uint32_t>(wanted),
                      nearest_axis(l.source)};
  const auto blocks = static_cast<unsigned>(wanted < kMostBlocks ? wanted : kMostBlocks);
  cut_kernel<<<blocks, dim3(kTile, kRows), 0, stream>>>(l.source, l.target, grid, l.place, l.channel, l.op,
                                                        static_cast<const From*>(l.from), static_cast<To*>(l.to));
}

template <typename From>
void launch_from(const CropLaunch& launch, cudaStream_t stream) {
  switch (launch.to_type) {
    case CropType::Float32:
      return launch_typed<From, float>(launch, stream);
    case CropType::Float16:
      return launch_typed<From, __half>(launch, stream);
    case CropType::Bfloat16:
      return launch_typed<From, __nv_bfloat16>(launch, stream);
  }
}

}  // namespace

cudaError_t launch_crop(const CropLaunch& launch, cudaStream_t stream) {
  switch (launch.from_type) {
    case CropType::Float32:
      launch_from<float>(launch, stream);
      break;
    case CropType::Float16:
      launch_from<__half>(launch, stream);
      break;
    case CropType::Bfloat16:
      launch_from<__nv_bfloat16>(launch, stream);
      break;
  }
  return cudaGetLastError();
}

}  // namespace welkin::ops
