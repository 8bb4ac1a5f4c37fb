// SPDX-License-Identifier: Apache-2.0
#include "ops/device/device_ops.h"

namespace welkin::ops {

// Within a function: the initialisers of a library fill it.
DeviceOps& device_ops() {
  static DeviceOps ops;
  return ops;
}

}  // namespace welkin::ops
