// SPDX-License-Identifier: Apache-2.0
// Internal to array_file.cpp, formats/ and the description of HDF5: how each format is opened, once its content has been
// recognised. Torch-free.
#pragma once

#include <filesystem>
#include <memory>

#include "data/storage/chunk_cache.h"
#include "data/storage/stored_array.h"

namespace welkin::data {

class Hdf5File;

ArrayFile open_hdf5_arrays(const std::filesystem::path& path);
ArrayFile open_hdf5_arrays(const std::filesystem::path& path, std::shared_ptr<ChunkCache> cache);
ArrayFile open_hdf5_arrays(const std::shared_ptr<const Hdf5File>& hdf5, std::shared_ptr<ChunkCache> cache);  // open already
ArrayFile open_npy_array(const std::filesystem::path& path);
ArrayFile open_zarr_arrays(const std::filesystem::path& path);  // a folder
ArrayFile open_zarr_arrays(const std::filesystem::path& path, std::shared_ptr<ChunkCache> cache);
ArrayFile open_tar_arrays(const std::filesystem::path& path);     // a WebDataset shard
ArrayFile open_lmdb_arrays(const std::filesystem::path& path);    // data.mdb, or the folder that holds it
ArrayFile open_netcdf_arrays(const std::filesystem::path& path);  // classic netCDF, arrays without an unlimited dimension
ArrayFile open_raw_arrays(const std::filesystem::path& path);     // described by a sidecar

}  // namespace welkin::data
