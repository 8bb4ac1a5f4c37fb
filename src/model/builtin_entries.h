// SPDX-License-Identifier: Apache-2.0
// Rows of the registry for built-in models whose builders are outside of builtin_models.cpp.
#pragma once

#include "model/registry.h"

namespace welkin::model {

ModelEntry afno_entry();
ModelEntry sfno_entry();
ModelEntry swin_entry();
ModelEntry unet2d_entry();

}  // namespace welkin::model
