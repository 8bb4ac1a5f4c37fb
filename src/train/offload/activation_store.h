// SPDX-License-Identifier: Apache-2.0
// A store for the bytes of activations between a block's forward and its backward pass: a file, or the host's memory.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace welkin::train {

// Pieces of one block, one behind the other, each aligned to kPieceAlignment. Its destructor frees their space.
class StoredPieces {
 public:
  virtual ~StoredPieces() = default;
  // Begins to bring them back, without waiting; a second call does nothing. MemoryError if there is no memory for them.
  virtual void start() = 0;
  // (bytes) uint8 on the device; waits for them.
  virtual at::Tensor bytes() = 0;
};

inline constexpr size_t kPieceAlignment = 64;

class ActivationStore {
 public:
  virtual ~ActivationStore() = default;
  // `pieces`: (n) uint8 each, on the device. They may be freed when it returns.
  virtual std::unique_ptr<StoredPieces> put(const std::vector<at::Tensor>& pieces) = 0;
  virtual std::string place() const = 0;
  virtual size_t memory_bytes() const = 0;  // host memory that it always holds
};

// Offset of each piece; the last entry is the total length in whole pages.
std::vector<size_t> piece_offsets(const std::vector<at::Tensor>& pieces);

// A store in a file, through buffers of `buffer_bytes`. Bytes are copied into one of three buffers, from which threads write
// them; threads read them into newly allocated memory.
std::unique_ptr<ActivationStore> file_activations(std::filesystem::path folder, c10::Device device, int64_t buffer_bytes);
// A store in pinned memory, over a stream of its own; on a CPU plain copies.
std::unique_ptr<ActivationStore> host_activations(c10::Device device);

}  // namespace welkin::train
