// SPDX-License-Identifier: Apache-2.0
// Training on the caller's pairs: the functions of welkin.h whose names begin with welkin_train_.
#pragma once

#include "apps/capi/functions.h"

namespace welkin::apps::capi {

welkin_status train_open(const char* options, welkin_training** training, char* error);
welkin_status train_set_channel(welkin_training* training, const char* channel, const char* unit, double mean, double deviation,
                                char* error);
welkin_status train_set_grid(welkin_training* training, const double* latitude, const double* longitude, char* error);
int train_shape(const welkin_training* training, int64_t* shape);
welkin_status train_set_field(welkin_training* training, welkin_side side, const char* channel, const void* values,
                              welkin_type type, const int64_t* strides, char* error);
welkin_status train_give(welkin_training* training, int64_t milliseconds, char* error);
welkin_status train_progress(const welkin_training* training, welkin_progress* progress, char* error);
const char* train_folder(const welkin_training* training);
welkin_status train_close(welkin_training* training, char* error);

}  // namespace welkin::apps::capi
