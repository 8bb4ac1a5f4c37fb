// SPDX-License-Identifier: Apache-2.0
// A constant tensor (a table, a mask), made once on the host and copied to each device that needs it.
#pragma once

#include <ATen/core/Tensor.h>

#include <mutex>
#include <utility>

namespace welkin::ops {

class DeviceConstant {
 public:
  DeviceConstant() = default;
  explicit DeviceConstant(at::Tensor host) : host_(std::move(host)) {}

  // Copies nothing for the device and type of the last call.
  at::Tensor as(c10::Device device, at::ScalarType type) const {
    const std::lock_guard lock(mutex_);
    const bool is_there = last_.defined() && last_.device() == device && last_.scalar_type() == type;
    if (!is_there) last_ = host_.to(device, type);
    return last_;
  }
  const at::Tensor& host() const { return host_; }

 private:
  at::Tensor host_;
  mutable std::mutex mutex_;
  mutable at::Tensor last_;
};

}  // namespace welkin::ops
