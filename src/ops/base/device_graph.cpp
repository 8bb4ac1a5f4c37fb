// SPDX-License-Identifier: Apache-2.0
#include "ops/base/device_graph.h"

namespace welkin::ops {

// Filled in by the initialisers of a library, before main's context exists.
MakeGraphRecorder& make_graph_recorder() {
  static MakeGraphRecorder make = nullptr;
  return make;
}

}  // namespace welkin::ops
