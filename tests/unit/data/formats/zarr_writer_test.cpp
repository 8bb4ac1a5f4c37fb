// SPDX-License-Identifier: Apache-2.0
// Several ranks write one Zarr folder. What zarr-python and xarray read of it is in tests/e2e/data/formats_test.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "core/file.h"
#include "data/formats/array_file.h"
#include "data/formats/array_writer.h"
#include "data/formats/json_values.h"
#include "data_files.h"

namespace welkin::data::tests {
namespace {

namespace fs = std::filesystem;

OutputFile nested_output() {
  OutputFile output;
  output.arrays.push_back({.name = "run/field",
                           .shape = {2, 3},
                           .chunk = {1, 3},
                           .dtype = Dtype::F32,
                           .codecs = {},
                           .axes = {"y", "x"},
                           .attributes = {{"units", std::vector<std::string>{"K"}}}});
  output.attributes["title"] = std::vector<std::string>{"odd"};
  return output;
}

TEST(ZarrWriter, ConsolidatesWhatItWroteWhileAnotherRankWritesTheSameFiles) {
  const DataFolder folder;
  const fs::path root = folder / "a.zarr";
  const auto first = make_zarr_writer(root, 2, nested_output());
  const auto second = make_zarr_writer(root, 2, nested_output());
  const std::array<float, 6> values{1, 2, 3, 4, 5, 6};
  first->write(0, {{0, 0}, {1, 3}}, std::as_bytes(std::span(values).first(3)));
  second->write(0, {{1, 0}, {2, 3}}, std::as_bytes(std::span(values).last(3)));
  const std::string array = read_file(root / "run/field/.zarray", 4096);
  for (const char* name : {".zgroup", "run/.zgroup", "run/field/.zarray"}) std::ofstream(root / name);  // opened, not yet written
  second->finish();
  const Json metadata = Json::parse(read_file(root / ".zmetadata", 65536)).at("metadata");
  std::vector<std::string> names;
  for (const auto& [name, value] : metadata.items()) names.push_back(name);
  EXPECT_THAT(names,
              testing::UnorderedElementsAre(".zgroup", ".zattrs", "run/.zgroup", "run/field/.zarray", "run/field/.zattrs"));
  EXPECT_EQ(metadata.at("run/field/.zarray"), Json::parse(array));
  EXPECT_EQ(metadata.at("run/field/.zattrs").at("units"), "K");
}

}  // namespace
}  // namespace welkin::data::tests
