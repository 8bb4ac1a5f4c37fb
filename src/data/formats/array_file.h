// SPDX-License-Identifier: Apache-2.0
// Opening a file or folder of arrays by its content, never by its name. Torch-free.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "data/storage/chunk_cache.h"
#include "data/storage/stored_array.h"

namespace welkin::data {

enum class ArrayFormat { Unknown, Hdf5, Npy, Zarr, Tar, Lmdb, Raw };

// Format by the first bytes of a file, or by the entries of a folder. DataError when it cannot be opened.
ArrayFormat array_format_of(const std::filesystem::path& path);
std::string_view array_format_name(ArrayFormat format);

// DataError naming the file when it is in no known format, or broken.
// `cache`: of decoded chunks, for several files that are read together; null: the file has its own.
ArrayFile open_array_file(const std::filesystem::path& path, std::shared_ptr<ChunkCache> cache = nullptr);

}  // namespace welkin::data
