// SPDX-License-Identifier: Apache-2.0
#include "ops/base/device_timer.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>

#include "core/stopwatch.h"

namespace welkin::ops {

namespace {

constexpr double kMillisecond = 1e-3;
constexpr int64_t kCoverElements = 1 << 25;  // 128 MiB: some tens of microseconds
constexpr int kMostCovers = 4000;

class DeviceClock {
 public:
  explicit DeviceClock(c10::Device device)
      : stream_(c10::impl::VirtualGuardImpl(device.type()).getStream(device)),
        began_(device.type(), c10::EventFlag::BACKEND_DEFAULT),
        ended_(device.type(), c10::EventFlag::BACKEND_DEFAULT) {}

  void begin() { began_.record(stream_); }
  double end() {
    ended_.record(stream_);
    ended_.synchronize();
    return kMillisecond * began_.elapsedTime(ended_);
  }

 private:
  c10::Stream stream_;
  c10::Event began_, ended_;
};

}  // namespace

// Queues enough work first that the host runs ahead of the device; otherwise short work would take as long as its launches.
double seconds_on_device(c10::Device device, const std::function<void()>& work, int repeats) {
  constexpr int kWarmUps = 2;
  DeviceClock clock(device);
  clock.begin();
  work();
  clock.end();
  const Stopwatch host;
  for (int i = 1; i < kWarmUps; ++i) work();
  const double launch_s = host.seconds() * repeats / (kWarmUps - 1);
  const at::Tensor cover = at::empty({kCoverElements}, at::TensorOptions(device).dtype(at::kFloat));
  cover.zero_();
  clock.begin();
  cover.zero_();
  const double cover_s = std::max(clock.end(), 1e-6);
  const int covers = static_cast<int>(std::min<double>(kMostCovers, 2 * launch_s / cover_s + 1));
  for (int i = 0; i < covers; ++i) cover.zero_();
  clock.begin();
  for (int i = 0; i < repeats; ++i) work();
  return clock.end() / repeats;
}

}  // namespace welkin::ops
