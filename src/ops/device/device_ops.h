// SPDX-License-Identifier: Apache-2.0
// The interface of libwelkin_cuda.so: kernels, recorded graphs, marks in streams, memory records, and back end of collectives.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <string>

#include "ops/device/device_graph.h"
#include "ops/device/device_marks.h"
#include "ops/device/device_memory.h"
#include "ops/device/device_tables.h"

namespace c10d {
class Backend;
class Store;
}  // namespace c10d

namespace welkin::ops {

// The back end of member `place` of `size`; the store's keys belong to the group. The first call makes its connections, on the
// GPU of that call's tensors. Throws c10::Error without a GPU.
using MakeDeviceBackend = c10::intrusive_ptr<c10d::Backend> (*)(const c10::intrusive_ptr<c10d::Store>& store, int place, int size,
                                                                std::chrono::milliseconds deadline);

// Name of the current GPU's place: machine and bus address. Parts of one GPU (MIG) share it.
using NameOfGpu = std::string (*)();

struct DeviceOps {
  DeviceGelu gelu;
  DeviceLeakyRelu leaky_relu;
  DeviceBlocks blocks;
  DeviceNorm norm;
  DeviceErrors errors;
  DeviceUpdate update;
  MakeGraphRecorder make_graph_recorder = nullptr;
  MakeStreamMarks make_stream_marks = nullptr;
  DeviceMemoryHistory memory_history;
  LimitDeviceMemory limit_memory = nullptr;
  NameOfGpu gpu_name = nullptr;              // not null if make_backend is not
  MakeDeviceBackend make_backend = nullptr;  // also null if the library was built without NCCL's header
};

// The table of this process. libwelkin_cuda.so fills it while it is loaded; before, every function is null.
DeviceOps& device_ops();

}  // namespace welkin::ops
