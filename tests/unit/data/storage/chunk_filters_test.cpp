// SPDX-License-Identifier: Apache-2.0
// Chunks of HDF5 that are not what their data set says. Good ones: formats/hdf5/hdf5_chunks_test.cpp.
#include "data/storage/chunk_filters.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace welkin::data {
namespace {

// Under UBSan: there is nothing to copy, and nowhere to copy it to.
TEST(ChunkFilters, AChunkWithoutBytesHasAnotherSize) {
  const ChunkPipeline pipeline{.filters = {{.filter = ChunkFilter::Shuffle}}};
  ChunkScratch scratch;
  std::vector<std::byte> out(4);
  EXPECT_EQ(decode_chunk(pipeline, 0, {}, scratch, out), "it holds 0 bytes instead of 4");
}

}  // namespace
}  // namespace welkin::data
