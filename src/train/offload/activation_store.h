// SPDX-License-Identifier: Apache-2.0
// Where bytes of activations are between a block's forward and its backward pass: in a file, or in the host's memory.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace welkin::train {

// Pieces of one block, one behind the other, each aligned to kPieceAlignment. When it goes, its room is free for others.
class StoredPieces {
 public:
  virtual ~StoredPieces() = default;
  // Begins to bring them back, without waiting; a second call does nothing. MemoryError where there is no room for them.
  virtual void start() = 0;
  // (bytes) uint8 on the device, waited for.
  virtual at::Tensor bytes() = 0;
};

inline constexpr size_t kPieceAlignment = 64;

class ActivationStore {
 public:
  virtual ~ActivationStore() = default;
  // `pieces`: (n) uint8 each, on the device. When it returns they may be let go.
  virtual std::unique_ptr<StoredPieces> put(const std::vector<at::Tensor>& pieces) = 0;
  virtual std::string place() const = 0;
  virtual size_t memory_bytes() const = 0;  // of the host, that it holds all the time
};

// Offset of each piece; the last entry is the length of all, whole pages.
std::vector<size_t> piece_offsets(const std::vector<at::Tensor>& pieces);

// Through `buffer_bytes` at a time: copied into one of three buffers, and written from there by threads; read by them into memory
// that is taken for it.
std::unique_ptr<ActivationStore> file_activations(std::filesystem::path folder, c10::Device device, int64_t buffer_bytes);
// Pinned, over a stream of its own; on a CPU plain copies.
std::unique_ptr<ActivationStore> host_activations(c10::Device device);

}  // namespace welkin::train
