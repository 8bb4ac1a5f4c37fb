// SPDX-License-Identifier: Apache-2.0
#include "data/storage/fingerprint.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "data_files.h"

namespace welkin::data::tests {
namespace {

TEST(Fingerprint, TellsACopyFromAChange) {
  const DataFolder folder;
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(folder / name, std::ios::binary) << text;
    return fingerprint_of(folder / name);
  };
  std::filesystem::create_directory(folder / "copy");
  const std::string text(100'000, 'x');
  const FileFingerprint first = write("1979.h5", text);
  EXPECT_EQ(write("copy/1979.h5", text), first);
  const FileFingerprint grown = write("copy/1979.h5", text + "y");
  const FileFingerprint other = write("copy/1979.h5", text.substr(1) + "y");
  EXPECT_EQ(fingerprint_changes({first}, {first}), "");
  EXPECT_EQ(fingerprint_changes({first}, {grown}), "1979.h5 had 100000 bytes and has 100001");
  EXPECT_EQ(fingerprint_changes({first}, {other}), "1979.h5 has other content");
  EXPECT_EQ(fingerprint_changes({first}, {first, write("1980.h5", "z")}), "1980.h5 is new");
  EXPECT_EQ(fingerprint_changes({first, write("1980.h5", "z")}, {first}), "1980.h5 is missing");
  EXPECT_EQ(write("empty", "").bytes, 0u);
  std::filesystem::create_directories(folder / "a.zarr");
  write("a.zarr/0.0", "chunk"), write("a.zarr/0.1", "chunk"), write("a.zarr/.zarray", "{}");
  const FileFingerprint zarr = fingerprint_of(folder / "a.zarr");
  EXPECT_EQ(fingerprint_of(folder / "a.zarr"), zarr);
  write("a.zarr/0.1", "other");
  EXPECT_EQ(fingerprint_changes({zarr}, {fingerprint_of(folder / "a.zarr")}), "a.zarr has other content");
}

}  // namespace
}  // namespace welkin::data::tests
