// SPDX-License-Identifier: Apache-2.0
#include "data/tools/inspect_bench.h"

#include <gmock/gmock.h>

#include "core/error.h"
#include "data_files.h"

namespace welkin::data::tests {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(InspectBench, AmplificationFollowsFromChunksAndReads) {
  EXPECT_DOUBLE_EQ(read_amplification({4, 512, 512, 512}, {}, {4, 64, 64, 64}), 1);
  EXPECT_DOUBLE_EQ(read_amplification({100, 20, 360, 720}, {1, 1, 360, 720}, {1, 20, 360, 720}), 1);
  EXPECT_DOUBLE_EQ(read_amplification({100, 20, 360, 720}, {8, 20, 360, 720}, {1, 20, 360, 720}), 8);
  // A read of 64 that begins anywhere touches 1 + 63 / 64 chunks of 64 on average.
  EXPECT_DOUBLE_EQ(read_amplification({512}, {64}, {64}), 1 + 63.0 / 64);
}

TEST(InspectBench, SaysWhatAFileDelivers) {
  const DataFolder folder;
  write_field_file(folder / "year.h5", {.chunked = true});
  write_box_file(folder / "box.h5", 12);
  const FileBenchOptions options{.crop = 4, .seconds = 0.01, .num_threads = 2};
  const std::string year = bench_file(folder / "year.h5", options);
  EXPECT_THAT(year, HasSubstr("fields (6, 2, 4, 6), chunks of (1, 1, 4, 6), shuffle, deflate"));
  EXPECT_THAT(year, HasSubstr("reads of (1, 2, 4, 6): 1 thread "));
  EXPECT_THAT(year, HasSubstr("values decoded per value wanted 1, bytes asked of the file per byte delivered "));
  const std::string box = bench_file(folder / "box.h5", options);
  EXPECT_THAT(box, HasSubstr("Nbody (4, 12, 12, 12), in one piece"));
  EXPECT_THAT(box, HasSubstr("bytes asked of the file per byte delivered 1\n"));
}

TEST(InspectBench, AFileWithoutTrainingDataIsAnError) {
  const DataFolder folder;
  Hdf5File file = Hdf5File::create(folder / "a.h5");
  file.create_dataset("x", {.shape = {4}, .chunk = {}});
  file.close();
  EXPECT_THAT([&] { bench_file(folder / "a.h5"); },
              ThrowsMessage<DataError>(HasSubstr("[data] nothing that training reads: path=")));
}

}  // namespace
}  // namespace welkin::data::tests
