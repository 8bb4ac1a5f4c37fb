// SPDX-License-Identifier: Apache-2.0
// HDF5 filters that the library leaves to plug-ins: zstd (32015), blosc (32001), lz4 (32004), decoded and encoded by our codecs,
// so that no plug-in path is needed. Torch-free.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "data/storage/codec.h"

namespace welkin::data {

inline constexpr int kHdf5Blosc = 32001, kHdf5Lz4 = 32004, kHdf5Zstd = 32015;

// Called once under Hdf5Lock, before a file is opened.
void register_hdf5_filters();

// The codec of a filter with its parameters, for values of `width` bytes; nullopt for filters that are not ours. For readers
// that decode chunks without the library.
std::optional<Codec> codec_of_hdf5_filter(int filter, std::span<const unsigned> parameters, size_t width);

// The parameters for H5Pset_filter, for a chunk of so many bytes. The codec is one of the three.
struct Hdf5FilterSettings {
  int filter = 0;
  std::vector<unsigned> parameters;
};
Hdf5FilterSettings hdf5_filter_of(const Codec& codec, size_t chunk_bytes);

}  // namespace welkin::data
