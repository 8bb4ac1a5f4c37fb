// SPDX-License-Identifier: Apache-2.0
// Blocks of CUDA threads as fibers of the calling thread (ucontext).
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

#include "cuda_runtime_api.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace welkin::tests {
namespace {

constexpr unsigned kWarp = 32, kMostThreads = 1024, kMostOfAxis = 65535;
constexpr size_t kStackBytes = size_t{128} << 10U;

// The stack that is left and the one that is entered, for ASan.
void before_switch([[maybe_unused]] void** left, [[maybe_unused]] const void* bottom, [[maybe_unused]] size_t size) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(left, bottom, size);
#endif
}
void after_switch([[maybe_unused]] void* entered, [[maybe_unused]] const void** bottom, [[maybe_unused]] size_t* size) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(entered, bottom, size);
#endif
}

enum class Waits { No, AtWarp, AtBlock, Ended };

struct Fiber {
  CudaPlace place;
  Waits waits = Waits::No;
  size_t shuffles = 0;
  ucontext_t context{};
  char* stack = nullptr;
  void* asan_stack = nullptr;
};

class GridRunner {
 public:
  GridRunner()
      : stacks_(static_cast<char*>(mmap(nullptr, kMostThreads * kStackBytes, PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {
    if (stacks_ == MAP_FAILED) throw std::runtime_error("no memory for the stacks of a block");
  }

  void run(dim3 grid, dim3 block, const std::function<void()>& kernel) {
    kernel_ = &kernel;
    for (unsigned z = 0; z < grid.z; ++z) {
      for (unsigned y = 0; y < grid.y; ++y) {
        for (unsigned x = 0; x < grid.x; ++x) run_block({{}, {x, y, z}, block, grid});
      }
    }
  }

  Fiber& current() { return fibers_.at(current_); }

  void wait(Waits at) {
    Fiber& fiber = current();
    fiber.waits = at;
    before_switch(&fiber.asan_stack, own_stack_, own_stack_size_);
    swapcontext(&fiber.context, &scheduler_);
    after_switch(fiber.asan_stack, &own_stack_, &own_stack_size_);
  }

  uint64_t exchange(unsigned mask, uint64_t mine, int distance) {
    if (mask != ~0U) throw_misuse("a shuffle of a part of a warp");
    const size_t lane = current_;
    // Two arrays in turns: who writes into this one again has seen all lanes arrive at the shuffle between.
    auto& brought = brought_.at(current().shuffles++ % 2);
    brought.at(lane) = mine;
    wait(Waits::AtWarp);
    return brought.at(lane / kWarp * kWarp + ((lane % kWarp) ^ static_cast<size_t>(distance)));
  }

  static GridRunner& instance() {
    static GridRunner runner;
    return runner;
  }

 private:
  [[noreturn]] static void throw_misuse(const char* what) { throw std::logic_error(what); }

  static void begin_fiber() {
    GridRunner& runner = instance();
    after_switch(nullptr, &runner.own_stack_, &runner.own_stack_size_);
    (*runner.kernel_)();
    runner.current().waits = Waits::Ended;
    before_switch(nullptr, runner.own_stack_, runner.own_stack_size_);
    setcontext(&runner.scheduler_);
  }

  // Apart: where getcontext is called the compiler expects every variable to change.
  [[gnu::noinline]] static void prepare(Fiber& fiber) {
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack;
    fiber.context.uc_stack.ss_size = kStackBytes;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, &begin_fiber, 0);
  }

  void run_block(const CudaPlace& place) {
    const dim3 size = place.block_size;
    fibers_.resize(size_t{size.x} * size.y * size.z);
    for (size_t i = 0; i < fibers_.size(); ++i) {
      Fiber& fiber = fibers_[i];
      fiber.place = place;
      const auto number = static_cast<unsigned>(i);
      fiber.place.thread = {number % size.x, number / size.x % size.y, number / size.x / size.y};
      fiber.waits = Waits::No;
      fiber.shuffles = 0;
      fiber.stack = stacks_ + i * kStackBytes;
      prepare(fiber);
    }
    std::vector<size_t> warps((fibers_.size() + kWarp - 1) / kWarp);
    for (size_t i = 0; i < warps.size(); ++i) warps[i] = i;
    do {
      std::shuffle(warps.begin(), warps.end(), random_);
      for (const size_t warp : warps) run_warp(warp * kWarp, std::min((warp + 1) * kWarp, fibers_.size()));
    } while (release_block());
  }

  // As far as it goes before any other moves.
  void run_warp(size_t begin, size_t end) {
    std::vector<size_t> lanes;
    for (size_t i = begin; i < end; ++i) lanes.push_back(i);
    do {
      std::shuffle(lanes.begin(), lanes.end(), random_);
      for (const size_t i : lanes) {
        if (fibers_[i].waits == Waits::No) resume(i);
      }
    } while (release_warp(begin, end));
  }

  void resume(size_t number) {
    current_ = number;
    void* own = nullptr;
    before_switch(&own, fibers_[number].stack, kStackBytes);
    swapcontext(&scheduler_, &fibers_[number].context);
    after_switch(own, nullptr, nullptr);
  }

  bool all(size_t begin, size_t end, Waits at) const {
    return std::all_of(fibers_.begin() + static_cast<std::ptrdiff_t>(begin), fibers_.begin() + static_cast<std::ptrdiff_t>(end),
                       [&](const Fiber& fiber) { return fiber.waits == at; });
  }

  // A shuffle needs all lanes; false where they do not wait for one.
  bool release_warp(size_t begin, size_t end) {
    if (end - begin < kWarp || !all(begin, end, Waits::AtWarp)) return false;
    for (size_t i = begin; i < end; ++i) fibers_[i].waits = Waits::No;
    return true;
  }

  // Threads that have ended are not waited for; false when all have.
  bool release_block() {
    bool goes_on = false;
    for (Fiber& fiber : fibers_) {
      if (fiber.waits == Waits::AtWarp) throw_misuse("threads of a block wait at different barriers for ever");
      if (fiber.waits != Waits::AtBlock) continue;
      fiber.waits = Waits::No;
      goes_on = true;
    }
    return goes_on;
  }

  char* stacks_;
  std::vector<Fiber> fibers_;
  std::array<std::array<uint64_t, kMostThreads>, 2> brought_{};
  size_t current_ = 0;
  ucontext_t scheduler_{};
  const void* own_stack_ = nullptr;  // the scheduler's
  size_t own_stack_size_ = 0;
  const std::function<void()>* kernel_ = nullptr;
  std::minstd_rand random_;
};

cudaError_t& last_error() {
  thread_local cudaError_t error = cudaSuccess;
  return error;
}

}  // namespace

const CudaPlace& cuda_place() { return GridRunner::instance().current().place; }
void cuda_block_barrier() { GridRunner::instance().wait(Waits::AtBlock); }
uint64_t cuda_exchange(unsigned mask, uint64_t mine, int distance) {
  return GridRunner::instance().exchange(mask, mine, distance);
}

void cuda_run(dim3 grid, dim3 block, const std::function<void()>& kernel) {
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  const bool has_grid =
      grid.x > 0 && grid.x <= 0x7FFFFFFFU && grid.y > 0 && grid.y <= kMostOfAxis && grid.z > 0 && grid.z <= kMostOfAxis;
  if (!has_grid || threads == 0 || threads > kMostThreads) {
    last_error() = cudaErrorInvalidConfiguration;
    return;
  }
  static std::mutex one_grid;  // what a block shares is static
  const std::lock_guard lock(one_grid);
  GridRunner::instance().run(grid, block, kernel);
}

}  // namespace welkin::tests

cudaError_t cudaGetLastError() { return std::exchange(welkin::tests::last_error(), cudaSuccess); }
