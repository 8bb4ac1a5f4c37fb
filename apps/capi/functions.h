// SPDX-License-Identifier: Apache-2.0
// The table of functions that libwelkin_c.so, which does not link torch, calls in libwelkin.so after loading it. Plain C types.
#pragma once

#include "apps/capi/welkin.h"

extern "C" {

// Errors are written into `error`, which holds kWelkinErrorBytes.
struct welkin_functions {
  welkin_status (*open)(const char* run_folder, const char* options, welkin_model** model, char* error);
  void (*close)(welkin_model* model);
  int (*num_channels)(const welkin_model* model, welkin_side side);
  const char* (*channel_name)(const welkin_model* model, welkin_side side, int channel);
  const char* (*channel_unit)(const welkin_model* model, welkin_side side, int channel);
  int (*shape)(const welkin_model* model, int64_t* shape);
  welkin_status (*set_field)(welkin_model* model, const char* channel, const void* values, welkin_type type,
                             const int64_t* strides, char* error);
  welkin_status (*step)(welkin_model* model, char* error);
  welkin_status (*get_field)(const welkin_model* model, const char* channel, void* values, welkin_type type,
                             const int64_t* strides, char* error);
  welkin_status (*advance)(welkin_model* model, char* error);
  welkin_status (*train_open)(const char* options, welkin_training** training, char* error);
  welkin_status (*train_set_channel)(welkin_training* training, const char* channel, const char* unit, double mean,
                                     double deviation, char* error);
  welkin_status (*train_set_grid)(welkin_training* training, const double* latitude, const double* longitude, char* error);
  int (*train_shape)(const welkin_training* training, int64_t* shape);
  welkin_status (*train_set_field)(welkin_training* training, welkin_side side, const char* channel, const void* values,
                                   welkin_type type, const int64_t* strides, char* error);
  welkin_status (*train_give)(welkin_training* training, int64_t milliseconds, char* error);
  welkin_status (*train_progress)(const welkin_training* training, welkin_progress* progress, char* error);
  const char* (*train_folder)(const welkin_training* training);
  welkin_status (*train_close)(welkin_training* training, char* error);
};

inline constexpr int kWelkinErrorBytes = 4096;
inline constexpr const char* kWelkinFunctionsName = "welkin_functions_2";  // a changed table gets a new number

}  // extern "C"
