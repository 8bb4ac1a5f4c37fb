// SPDX-License-Identifier: Apache-2.0
// See gloo/context.h.
#pragma once

#include "gloo/context.h"
