// SPDX-License-Identifier: Apache-2.0
// Files: whole reads with a limit, read-only mappings, and writes that are either complete or absent (temporary name, fsync,
// rename).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace welkin {

// The whole of a regular file. Throws DataError when it is absent, not a regular file, or larger than `limit_bytes`.
std::string read_file(const std::filesystem::path& path, uint64_t limit_bytes);

// Writes under a temporary name in the same folder, syncs file and folder, renames. Throws DataError with errno's text (ENOSPC,
// EROFS, ...) and leaves neither the file nor the temporary behind. Folders are not created.
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

// The same for a writer that wants a path (HDF5, PNG): `write` fills the temporary path that it is given.
void write_path_atomically(const std::filesystem::path& path, const std::function<void(const std::filesystem::path&)>& write);

// Moves a finished folder into place: syncs every file in it, renames, syncs the parent. The target must not exist.
void publish_folder(const std::filesystem::path& from, const std::filesystem::path& to);

// The same where `to` may exist. It is then moved to `former`, which must not exist, once `from` is synced and only its rename
// is left. A process that ends in between leaves `former` and no `to`.
void publish_folder_over(const std::filesystem::path& from, const std::filesystem::path& to, const std::filesystem::path& former);

// What a folder has, in no order; nothing where there is no such folder. Throws DataError where the system cannot list it.
std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder);

// Whether something is there, as far as the system can say.
bool is_there(const std::filesystem::path& path);

// Creates a folder and its parents; throws DataError with errno's text and the first missing parent.
void make_folders(const std::filesystem::path& path);

// A read-only mapping of a whole file, unmapped by the destructor. An empty file maps to an empty span.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace welkin
