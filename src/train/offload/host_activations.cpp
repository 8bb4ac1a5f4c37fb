// SPDX-License-Identifier: Apache-2.0
// Copies to the host run on a stream of their own, behind the device's computation. Their sources must live until they are
// done.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <optional>
#include <utility>

#include "train/offload/activation_store.h"

namespace welkin::train {
namespace {

// The device's current stream and a side stream; on a CPU neither.
class SideStream {
 public:
  explicit SideStream(c10::Device device) : device_(device) {
    if (!device.is_cpu())
      side_ = c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device, /*isHighPriority=*/false);
  }

  // Runs work() on the side stream, after all work so far on the current stream.
  template <typename Work>
  void run(const Work& work) const {
    if (!side_) return work();
    wait_for(*side_, current());
    const c10::StreamGuard guard(*side_);
    work();
  }
  // The current stream waits for all work so far on the side stream.
  void join() const {
    if (side_) wait_for(current(), *side_);
  }
  // The tensor's memory is not reused before the side stream is done with it.
  void keeps(const at::Tensor& tensor) const {
    if (side_) tensor.record_stream(*side_);
  }

 private:
  c10::Stream current() const { return c10::impl::VirtualGuardImpl(device_.type()).getStream(device_); }
  void wait_for(const c10::Stream& who, const c10::Stream& whom) const {
    c10::Event reached(device_.type());
    reached.record(whom);
    who.wait(reached);
  }

  c10::Device device_;
  std::optional<c10::Stream> side_;
};

class PiecesInHost : public StoredPieces {
 public:
  PiecesInHost(const SideStream& stream, c10::Device device, at::Tensor host)
      : stream_(stream), device_(device), host_(std::move(host)) {}

  void start() override {
    if (memory_.defined()) return;
    const at::NoGradGuard no_grad;
    memory_ = at::empty(host_.sizes(), at::TensorOptions(at::kByte).device(device_));
    stream_.run([&] { memory_.copy_(host_, /*non_blocking=*/true); });
    stream_.keeps(memory_);
  }
  at::Tensor bytes() override {
    start();
    stream_.join();
    return memory_;
  }

 private:
  SideStream stream_;
  c10::Device device_;
  at::Tensor host_, memory_;
};

class HostActivations : public ActivationStore {
 public:
  explicit HostActivations(c10::Device device) : device_(device), stream_(device) {}

  std::unique_ptr<StoredPieces> put(const std::vector<at::Tensor>& pieces) override {
    const at::NoGradGuard no_grad;
    const std::vector<size_t> offsets = piece_offsets(pieces);
    const at::Tensor host =
        at::empty({static_cast<int64_t>(offsets.back())}, at::TensorOptions(at::kByte).pinned_memory(device_.is_cuda()));
    stream_.run([&] {
      for (size_t i = 0; i < pieces.size(); ++i) {
        host.narrow(0, static_cast<int64_t>(offsets[i]), pieces[i].numel()).copy_(pieces[i], /*non_blocking=*/true);
      }
    });
    for (const at::Tensor& piece : pieces) stream_.keeps(piece);
    return std::make_unique<PiecesInHost>(stream_, device_, host);
  }
  std::string place() const override { return "in the host's memory"; }
  size_t memory_bytes() const override { return 0; }

 private:
  c10::Device device_;
  SideStream stream_;
};

}  // namespace

std::unique_ptr<ActivationStore> host_activations(c10::Device device) { return std::make_unique<HostActivations>(device); }

}  // namespace welkin::train
