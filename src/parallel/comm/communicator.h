// SPDX-License-Identifier: Apache-2.0
// The interface to a communication back end. It moves contiguous buffers. Checks, deadlines and records are in collectives.cpp,
// its only caller. The one implementation is c10d's (c10d_connection.cpp).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace welkin::parallel {

enum class Reduction { Sum, Max };

// A transfer under way; it keeps its buffers alive.
class BackendWork {
 public:
  virtual ~BackendWork() = default;
  virtual void wait() = 0;  // after an exception the communicator must not be used
  // Calls `tell` on any thread when the transfer has ended. False: not supported.
  virtual bool when_done(std::function<void()> /*tell*/) { return false; }
};
using BackendWorkPtr = std::unique_ptr<BackendWork>;

// What goes to the member at place `peer`, or comes from it.
struct Message {
  at::Tensor values;
  int64_t peer = 0;
};

// Ranks are places in the group. Every member makes the same calls in the same order.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual BackendWorkPtr all_reduce(const at::Tensor& in_place, Reduction reduction) = 0;
  virtual BackendWorkPtr all_gather(const at::Tensor& out, const at::Tensor& part) = 0;        // out (size * part)
  virtual BackendWorkPtr reduce_scatter(const at::Tensor& part, const at::Tensor& whole) = 0;  // sums; whole (size * part)
  virtual BackendWorkPtr all_to_all(const at::Tensor& out, const at::Tensor& in, const std::vector<int64_t>& out_counts,
                                    const std::vector<int64_t>& in_counts) = 0;  // flat, counts in elements
  virtual BackendWorkPtr broadcast(const at::Tensor& in_place, int64_t root) = 0;
  virtual BackendWorkPtr send(const at::Tensor& values, int64_t to) = 0;
  virtual BackendWorkPtr receive(const at::Tensor& values, int64_t from) = 0;
  // As one call: none of them waits for another of them. What leaves may leave after the end of the call, so nobody changes it.
  virtual BackendWorkPtr exchange(const std::vector<Message>& leaving, const std::vector<Message>& arriving) = 0;
  virtual BackendWorkPtr barrier() = 0;
  // Whether calls on a GPU can be part of a recorded graph: not where they go through host memory.
  virtual bool can_record() const { return true; }
};

}  // namespace welkin::parallel
