// SPDX-License-Identifier: Apache-2.0
// On made-up machines.
#include "launch/gpu_places.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "core/text.h"

namespace welkin::launch {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

void add_gpu(const fs::path& root, const std::string& address, const std::string& uuid, int64_t node) {
  write(root / "proc/driver/nvidia/gpus" / address / "information",
        cat("Model: \t\t NVIDIA A100-SXM4-40GB\nIRQ:   \t\t 225\nGPU UUID: \t ", uuid, "\nDevice Minor: \t 0\n"));
  write(root / "sys/bus/pci/devices" / address / "numa_node", cat(node, "\n"));
}

// Four GPUs whose order on the bus is the reverse of their NUMA nodes'.
class GpuPlaces : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/gpus_XXXXXX";
    folder_ = mkdtemp(name.data());
    add_gpu(folder_, "0000:c1:00.0", "GPU-dddd0000", 0);
    add_gpu(folder_, "0000:03:00.0", "GPU-aaaa0000", 3);
    add_gpu(folder_, "0000:82:00.0", "GPU-cccc0000", 1);
    add_gpu(folder_, "0000:41:00.0", "GPU-bbbb0000", 2);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::vector<int64_t> nodes(const char* visible) const { return gpu_numa_nodes(visible, folder_); }
  fs::path folder_;
};

TEST_F(GpuPlaces, StandInTheOrderOfTheBus) { EXPECT_THAT(nodes(nullptr), ElementsAre(3, 2, 1, 0)); }

TEST_F(GpuPlaces, AreThoseThatCudaShows) {
  EXPECT_THAT(nodes("2,0"), ElementsAre(1, 3));
  EXPECT_THAT(nodes("GPU-bbbb0000,GPU-dd"), ElementsAre(2, 0));
  EXPECT_THAT(nodes(""), IsEmpty());
}

TEST_F(GpuPlaces, AreNotGuessed) {
  EXPECT_THAT(nodes("0,4"), IsEmpty());
  EXPECT_THAT(nodes("0,MIG-1234"), IsEmpty());
  EXPECT_THAT(nodes("GPU-eeee"), IsEmpty());
  EXPECT_THAT(nodes("0,,1"), IsEmpty());
  write(folder_ / "sys/bus/pci/devices/0000:41:00.0/numa_node", "-1\n");
  EXPECT_THAT(nodes(nullptr), IsEmpty());
  EXPECT_THAT(nodes("0"), ElementsAre(3));
  EXPECT_THAT(gpu_numa_nodes(nullptr, folder_ / "nothing"), IsEmpty());
}

}  // namespace
}  // namespace welkin::launch
