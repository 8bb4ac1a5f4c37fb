// SPDX-License-Identifier: Apache-2.0
// Rows of the registry for the models that come with Welkin and are not built in builtin_models.cpp itself.
#pragma once

#include "model/registry.h"

namespace welkin::model {

ModelEntry afno_entry();
ModelEntry sfno_entry();
ModelEntry swin_entry();
ModelEntry unet2d_entry();

}  // namespace welkin::model
