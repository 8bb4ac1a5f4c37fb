// SPDX-License-Identifier: Apache-2.0
// Walks through all of an HDF5 file that a reader may ask the library for, short of its values. Damage that makes the library
// end its process ends this one. For the program that check_hdf5_in_children starts.
#pragma once

#include <filesystem>
#include <functional>

namespace welkin::data {

// Reads facts, attributes, the index of chunks, and the first and last value of every data set; all values where only the
// library decodes a filter. Errors are left to the reader. `progress` is called between any two of them.
void walk_hdf5_file(const std::filesystem::path& path, const std::function<void()>& progress);

}  // namespace welkin::data
