// SPDX-License-Identifier: Apache-2.0
#include "ops/device/device_ops.h"

namespace welkin::ops {

// A function's static variable, since the library's initialisers fill it.
DeviceOps& device_ops() {
  static DeviceOps ops;
  return ops;
}

}  // namespace welkin::ops
