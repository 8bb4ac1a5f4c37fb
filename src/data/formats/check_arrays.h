// SPDX-License-Identifier: Apache-2.0
// Files that a child process looks at before they are opened here, because the library that reads them may end the process on a
// damaged one: HDF5. Off until check_hdf5_in_children was called. Torch-free.
#pragma once

#include <filesystem>
#include <span>

#include "data/check/check_child.h"

namespace welkin::data {

// Makes a child process open and walk through each HDF5 file first, from now on. `helper` is a program that does so with
// walk_hdf5_file (hdf5/hdf5_walk.h). Called at the program's start.
void check_hdf5_in_children(CheckHelper helper);

// Call it before many files are opened, to check them in parallel. It reports nothing: opening the files does.
void check_array_files(std::span<const std::filesystem::path> paths);

// The same for files that are known to be HDF5.
void check_hdf5_files(std::span<const std::filesystem::path> paths);

}  // namespace welkin::data
