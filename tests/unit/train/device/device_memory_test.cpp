// SPDX-License-Identifier: Apache-2.0
#include "train/device/device_memory.h"

#include <ATen/Context.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "core/process/host.h"

namespace welkin::train {
namespace {

constexpr double kGigabyte = 1 << 30;

// The management library would be asked by another number wherever devices are reordered; what stands in for the runtime here
// records by which number it is asked.
TEST(TutorialDefects, D27MemoryIsThatOfTheRunsOwnDevice) {
  std::vector<int> asked;
  const DeviceMemory runtime = [&](c10::DeviceIndex index) {
    asked.push_back(index);
    return (int64_t{index} + 1) << 30;
  };
  setenv("CUDA_VISIBLE_DEVICES", "3,2,1,0", 1);
  EXPECT_EQ(memory_in_use_gb({at::kCUDA, 2}, runtime), 3.0);
  EXPECT_EQ(memory_in_use_gb({at::kCUDA, 0}, runtime), 1.0);
  unsetenv("CUDA_VISIBLE_DEVICES");
  EXPECT_THAT(asked, ::testing::ElementsAre(2, 0)) << "torch's own numbers, whatever the order of the devices";
}

TEST(DeviceMemoryLines, OfACpuAreTheProcess) {
  const double before = static_cast<double>(resident_bytes()) / kGigabyte;
  const double now = memory_in_use_gb(at::kCPU);
  EXPECT_GE(now, 0.5 * before);
  EXPECT_LE(now, 2 * before);
  EXPECT_THAT(scaffolding_memory_line(at::kCPU), ::testing::MatchesRegex("Scaffolding memory high watermark: [0-9.]+ GB\\."));
  EXPECT_THAT(forward_pass_memory_line(at::kCPU), ::testing::MatchesRegex(" Memory usage after forward pass: [0-9.]+ GB\\."));
}

// torch's allocator of a GPU as far as it is asked for its count.
class CountedDevice final : public c10::DeviceAllocator {
 public:
  CountedDevice() : former_(at::hasCUDA() ? c10::GetAllocator(c10::kCUDA) : nullptr) { c10::SetAllocator(c10::kCUDA, this); }
  ~CountedDevice() override { c10::SetAllocator(c10::kCUDA, former_); }
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex index) override {
    c10::CachingDeviceAllocator::DeviceStats stats;
    stats.allocated_bytes[0].current = now + index;
    stats.allocated_bytes[0].peak = peak + index;
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex) override { peak = now; }
  c10::DataPtr allocate(size_t) override { return {}; }
  void copy_data(void*, const void*, std::size_t) const override {}

  int64_t now = 0, peak = 0;

 private:
  c10::Allocator* former_;
};

TEST(DeviceMemoryPeak, IsOfTensorsOnThatGpuSinceItWasForgotten) {
  CountedDevice device;
  device.now = 100, device.peak = 900;
  EXPECT_EQ(max_memory_allocated(0), 900);
  EXPECT_EQ(max_memory_allocated(2), 902);
  reset_peak_memory(0);
  EXPECT_EQ(max_memory_allocated(0), 100);
}

constexpr const char* kTorchsMessage =
    "CUDA out of memory. Tried to allocate 20.50 MiB. GPU 0 has a total capacity of 79.19 GiB of which 10.00 MiB is free. "
    "Process 1 has 79.18 GiB memory in use. Of the allocated memory 78.00 GiB is allocated by PyTorch";

TEST(DeviceMemoryError, SaysWhatTorchsErrorSays) {
  EXPECT_EQ(requested_bytes(kTorchsMessage), 41 * 512 * 1024);
  EXPECT_EQ(requested_bytes("Tried to allocate 2.00 GiB. GPU"), int64_t{2} << 30);
  EXPECT_EQ(requested_bytes("Tried to allocate 1.00 KiB. GPU"), 1024);
  EXPECT_EQ(requested_bytes("Tried to allocate 512 bytes. GPU"), 512);
  EXPECT_EQ(requested_bytes("DefaultCPUAllocator: can't allocate memory: you tried to allocate 64 bytes. Error code 12"), 64);
  for (const char* other :
       {"", "Tried to allocate ", "Tried to allocate many bytes", "out of memory", "Tried to allocate 3 cows"}) {
    EXPECT_EQ(requested_bytes(other), 0) << other;
  }
}

TEST(DeviceMemoryError, LimitIsTheSmallerOfWhatIsSetAndWhatThereIs) {
  const DeviceMemoryState state{.allocated = int64_t{60} << 20, .cached = int64_t{30} << 20, .free = int64_t{10} << 20};
  const MemoryError full = device_memory_error(kTorchsMessage, state, 0);
  EXPECT_EQ(full.exit_code(), ExitCode::Other);
  EXPECT_THAT(full.what(), ::testing::HasSubstr("requested=20.5 MiB, free=40.0 MiB, limit=100 MiB"));
  EXPECT_EQ(device_memory_error(kTorchsMessage, state, int64_t{70} << 20).use().limit, int64_t{70} << 20);
  EXPECT_EQ(device_memory_error(kTorchsMessage, state, int64_t{1} << 40).use().limit, int64_t{100} << 20);
}

TEST(DeviceMemoryError, TheRuntimeAndTheLibrariesSayItTheirOwnWay) {
  const c10::SourceLocation here{__func__, __FILE__, __LINE__};
  EXPECT_TRUE(is_device_out_of_memory(c10::OutOfMemoryError(here, "CUDA out of memory. Tried to allocate 20.00 MiB.")));
  EXPECT_TRUE(is_device_out_of_memory(c10::AcceleratorError(here, 2, "CUDA error: out of memory")));
  EXPECT_FALSE(is_device_out_of_memory(c10::AcceleratorError(here, 700, "CUDA error: an illegal memory access was encountered")));
  EXPECT_TRUE(
      is_device_out_of_memory(c10::Error(here, "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")));
  EXPECT_TRUE(is_device_out_of_memory(c10::Error(here, "cuDNN error: CUDNN_STATUS_ALLOC_FAILED")));
  EXPECT_FALSE(is_device_out_of_memory(c10::Error(here, "cuDNN error: CUDNN_STATUS_NOT_SUPPORTED")));
}

TEST(DeviceMemoryLimit, OfAGpuNeedsTheCudaLibrary) {
  limit_memory({at::kCUDA, 0}, 0);
  EXPECT_THAT(
      [] {
        limit_memory({at::kCUDA, 0}, 1.5);
      },
      ::testing::ThrowsMessage<ConfigError>(
          ::testing::HasSubstr("[memory] limiting GPU memory needs libwelkin_cuda.so: memory_limit_gib=1.5. Build it with")));
}

}  // namespace
}  // namespace welkin::train
