// SPDX-License-Identifier: Apache-2.0
// Texts of any length in Zarr arrays, written by hand as numcodecs' VLenUTF8 has them.
#include <gmock/gmock.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/error.h"
#include "data/formats/array_file.h"
#include "data_files.h"

namespace welkin::data::tests {
namespace {

using ::testing::ElementsAre;
namespace fs = std::filesystem;

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

std::string four_bytes(uint32_t value) { return {reinterpret_cast<const char*>(&value), sizeof value}; }

std::string chunk_of(const std::vector<std::string>& texts) {
  std::string bytes = four_bytes(static_cast<uint32_t>(texts.size()));
  for (const std::string& text : texts) bytes += four_bytes(static_cast<uint32_t>(text.size())) + text;
  return bytes;
}

// Five texts in chunks of two.
fs::path zarr2_folder(const DataFolder& folder) {
  const fs::path root = folder / "a.zarr";
  write(root / ".zgroup", R"({"zarr_format": 2})");
  write(root / "channel/.zarray",
        R"({"shape": [5], "chunks": [2], "dtype": "|O", "fill_value": "none", "order": "C", "filters": [{"id": "vlen-utf8"}],
            "dimension_separator": ".", "compressor": null, "zarr_format": 2})");
  write(root / "channel/0", chunk_of({"t2m", ""}));
  write(root / "channel/2", chunk_of({"Gr\u00f6\u00dfe", "none"}));  // a chunk is whole, also where the array ends in it
  return root;
}

TEST(ZarrTexts, OfAnyLengthAreReadChunkByChunk) {
  const DataFolder folder;
  const ArrayFile file = open_array_file(zarr2_folder(folder));
  ASSERT_TRUE(file.text_arrays.contains("channel"));
  EXPECT_THAT(file.text_arrays.at("channel"), ElementsAre("t2m", "", "none", "none", "Gr\u00f6\u00dfe"));
}

TEST(ZarrTexts, OfVersion3HaveACodec) {
  const DataFolder folder;
  const fs::path root = folder / "a.zarr";
  write(root / "zarr.json", R"({"zarr_format": 3, "node_type": "group"})");
  write(root / "channels/zarr.json",
        R"({"zarr_format": 3, "node_type": "array", "shape": [2], "data_type": "string", "fill_value": "",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "codecs": [{"name": "vlen-utf8", "configuration": {}}]})");
  write(root / "channels/c/0", chunk_of({"a", "bc"}));
  EXPECT_THAT(open_array_file(root).text_arrays.at("channels"), ElementsAre("a", "bc"));
}

// Numbers do not need the names: what is wrong with them is no obstacle.
TEST(ZarrTexts, ThatAreDamagedAreNone) {
  const DataFolder folder;
  const fs::path root = zarr2_folder(folder);
  const std::string good = chunk_of({"t2m", ""});
  const auto is_read = [&](const std::string& chunk) {
    write(root / "channel/0", chunk);
    return open_array_file(root).text_arrays.contains("channel");
  };
  EXPECT_TRUE(is_read(good));
  for (size_t size = 0; size < good.size(); ++size) EXPECT_FALSE(is_read(good.substr(0, size))) << size;
  EXPECT_FALSE(is_read(chunk_of({"t2m"}))) << "too few";
  EXPECT_FALSE(is_read(four_bytes(2) + four_bytes(0xffffffff) + "t2m"));
  EXPECT_FALSE(is_read(chunk_of({std::string(5 << 20, 'x'), ""}))) << "too long";
}

// Copies of JSON, and its text, are made level by level.
TEST(ZarrTexts, MetadataNestedWithoutEndIsRefused) {
  const DataFolder folder;
  const std::string nested = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  for (const std::string& type : {std::string("\"|O\""), std::string("\"<U4\""), nested}) {
    const fs::path root = folder / "a.zarr";
    write(root / ".zgroup", R"({"zarr_format": 2})");
    write(root / "channel/.zarray", R"({"shape": [5], "chunks": [2], "dtype": )" + type + R"(, "more": )" + nested + "}");
    EXPECT_THROW(open_array_file(root), DataError);
  }
}

TEST(ZarrTexts, ALongTextInPlaceOfManyChunksIsNotRepeated) {
  const DataFolder folder;
  const fs::path root = folder / "a.zarr";
  write(root / ".zgroup", R"({"zarr_format": 2})");
  write(root / "channel/.zarray", R"({"shape": [65536], "chunks": [1], "dtype": "|O", "fill_value": ")" +
                                      std::string(1 << 16, 'x') +
                                      R"(", "order": "C", "filters": [{"id": "vlen-utf8"}], "compressor": null})");
  EXPECT_FALSE(open_array_file(root).text_arrays.contains("channel"));
}

}  // namespace
}  // namespace welkin::data::tests
