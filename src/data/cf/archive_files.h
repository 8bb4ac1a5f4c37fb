// SPDX-License-Identifier: Apache-2.0
// The files and stores of an archive. Torch-free.
#pragma once

#include <filesystem>
#include <vector>

namespace welkin::data {

// `path` itself where it is a file or a store; else the HDF5 (netCDF-4) files and Zarr stores in that folder and in folders
// inside of it, sorted. Links to folders are not followed. Looked at in a child process first (check_arrays.h). DataError when
// there is none.
std::vector<std::filesystem::path> archive_files(const std::filesystem::path& path);

}  // namespace welkin::data
