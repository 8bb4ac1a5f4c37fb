// SPDX-License-Identifier: Apache-2.0
#include "data/storage/fingerprint.h"

#include <algorithm>
#include <array>
#include <map>

#include "core/hash.h"
#include "core/text.h"
#include "data/storage/watched_file.h"

namespace welkin::data {
namespace {

constexpr uint64_t kFingerprintPieceBytes = 4096;
constexpr uint64_t kFingerprintPieces = 5;
constexpr size_t kMostNamed = 4;

void add_piece(const WatchedFile& file, uint64_t offset, Xxh3& hash) {
  std::array<std::byte, kFingerprintPieceBytes> piece{};
  const auto bytes = std::span(piece).first(static_cast<size_t>(std::min(kFingerprintPieceBytes, file.size() - offset)));
  file.read(offset, bytes);
  hash.update(bytes);
}

// Fingerprint of a folder (Zarr): names and sizes of its files, and the beginnings of a few at equal distances in their list.
FileFingerprint fingerprint_of_folder(const std::filesystem::path& path) {
  FileFingerprint print{.name = path.filename().string(), .bytes = 0, .hash = 0};
  std::map<std::string, uint64_t> sizes;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    if (entry.is_regular_file()) sizes[entry.path().lexically_relative(path).string()] = entry.file_size();
  }
  Xxh3 hash;
  for (const auto& [name, size] : sizes) {
    print.bytes += size;
    hash.update(as_byte_span(cat(name, " ", size, "\n")));
  }
  std::vector<std::string> names;
  for (const auto& [name, size] : sizes) names.push_back(name);
  for (uint64_t i = 0; i < kFingerprintPieces && !names.empty(); ++i) {
    add_piece(WatchedFile(path / names[i * (names.size() - 1) / (kFingerprintPieces - 1)]), 0, hash);
  }
  print.hash = hash.digest();
  return print;
}

}  // namespace

FileFingerprint fingerprint_of(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path)) return fingerprint_of_folder(path);
  const WatchedFile file(path);
  FileFingerprint print{.name = path.filename().string(), .bytes = file.size(), .hash = 0};
  Xxh3 hash;
  const uint64_t last = print.bytes > kFingerprintPieceBytes ? print.bytes - kFingerprintPieceBytes : 0;
  for (uint64_t i = 0; i < kFingerprintPieces; ++i) {
    const uint64_t offset =
        last / (kFingerprintPieces - 1) * i + (i == kFingerprintPieces - 1 ? last % (kFingerprintPieces - 1) : 0);
    add_piece(file, offset, hash);
  }
  print.hash = hash.digest();
  return print;
}

std::string fingerprint_changes(const std::vector<FileFingerprint>& before, const std::vector<FileFingerprint>& now) {
  std::map<std::string, FileFingerprint> known;
  for (const FileFingerprint& print : before) known.emplace(print.name, print);
  std::vector<std::string> changes;
  for (const FileFingerprint& print : now) {
    const auto old = known.extract(print.name);
    if (old.empty()) {
      changes.push_back(cat(print.name, " is new"));
    } else if (old.mapped().bytes != print.bytes) {
      changes.push_back(cat(print.name, " had ", old.mapped().bytes, " bytes and has ", print.bytes));
    } else if (old.mapped().hash != print.hash) {
      changes.push_back(cat(print.name, " has other content"));
    }
  }
  for (const auto& [name, print] : known) changes.push_back(cat(name, " is missing"));
  const size_t count = changes.size();
  if (count > kMostNamed) changes.resize(kMostNamed), changes.push_back(cat("and ", count - kMostNamed, " more"));
  return join(changes, ", ");
}

}  // namespace welkin::data
