// SPDX-License-Identifier: Apache-2.0
#include "train/nodes/folder_stream.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "train/checkpoint/checkpoint_store.h"

namespace welkin::train {
namespace {

TEST(Listing, IsReadBack) {
  const auto files = parse_listing(listing_of({{"index.json", 17}, {"model-r1-2.safetensors", int64_t{1} << 40}}));
  ASSERT_TRUE(files);
  ASSERT_EQ(files->size(), 2u);
  EXPECT_EQ(files->at(0).name, "index.json");
  EXPECT_EQ(files->at(1).bytes, int64_t{1} << 40);
  EXPECT_TRUE(parse_listing(listing_of({}))->empty());
}

TEST(Listing, NamesNothingOutsideOfItsFolder) {
  for (const std::string& name : {std::string(), std::string("../x"), std::string("/etc/x"), std::string(".."), std::string(".x"),
                                  std::string("a/b"), std::string("a\0b", 3), std::string(300, 'a')}) {
    EXPECT_FALSE(parse_listing(listing_of({{name, 1}}))) << name;
  }
  for (const char* text :
       {"", "{}x", "[1]", R"([{"name": "a"}])", R"([{"name": "a", "bytes": -1}])", R"([{"name": 1, "bytes": 1}])"}) {
    EXPECT_FALSE(parse_listing(text)) << text;
  }
}

TEST(CheckpointPlaces, NameTheNodeOfALocalDisk) {
  config::LoopConfig config;
  config.checkpoint_dirs = {"fast:/disk/{node}/x{node}:5:1:neighbour", "safe:/far/{node}"};
  const auto places = checkpoint_places(config, "/logs/base/8GPU/00/checkpoints", 3);
  ASSERT_EQ(places.size(), 3u);
  EXPECT_EQ(places[1].store.folder(), "/disk/3/x3/base/8GPU/00");
  EXPECT_TRUE(places[1].on_nodes);
  EXPECT_EQ(places[2].store.folder(), "/far/{node}/base/8GPU/00");
  EXPECT_FALSE(places[2].on_nodes);
}

}  // namespace
}  // namespace welkin::train
