! SPDX-License-Identifier: Apache-2.0
! Welkin in a Fortran 2008 program: a model is trained on pairs of fields that the program hands over. welkin.h has the contract of
! each call, welkin.f90, to be compiled before this file, how fields may lie.
!
! Functions return 0, or a code of welkin_status; welkin_error_text() then says what it was. welkin_full and welkin_over, of
! welkin_train_give, are no errors.
module welkin_train
  use, intrinsic :: iso_c_binding
  use welkin, only: welkin_text_at, welkin_strides_of, welkin_ok, welkin_input, welkin_target, welkin_error_text
  implicit none
  private
  public :: welkin_training, welkin_progress, welkin_train_open, welkin_train_set_channel, welkin_train_set_grid
  public :: welkin_train_shape, welkin_train_set_field, welkin_train_give, welkin_train_progress, welkin_train_folder
  public :: welkin_train_close
  public :: welkin_ok, welkin_input, welkin_target, welkin_error_text
  integer, parameter, public :: welkin_full = 100, welkin_over = 101

  type :: welkin_training
    type(c_ptr) :: handle = c_null_ptr
  end type

  ! Where a run is: welkin.h has what each component means.
  type, bind(c) :: welkin_progress
    integer(c_int64_t) :: step, total_steps, epoch, pairs
    real(c_double) :: train_loss, valid_loss, waited_seconds
    integer(c_int) :: is_running
  end type

  interface welkin_train_set_field
    procedure train_set_real32_2, train_set_real64_2, train_set_real32_3, train_set_real64_3
  end interface

  interface
    integer(c_int) function c_train_open(options, training) bind(c, name='welkin_train_open')
      import :: c_int, c_char, c_ptr
      character(kind=c_char), intent(in) :: options(*)
      type(c_ptr), intent(out) :: training
    end function
    integer(c_int) function c_train_set_channel(training, channel, unit, mean, deviation) bind(c, name='welkin_train_set_channel')
      import :: c_int, c_char, c_ptr, c_double
      type(c_ptr), value :: training
      character(kind=c_char), intent(in) :: channel(*), unit(*)
      real(c_double), value :: mean, deviation
    end function
    integer(c_int) function c_train_set_grid(training, latitude, longitude) bind(c, name='welkin_train_set_grid')
      import :: c_int, c_ptr, c_double
      type(c_ptr), value :: training
      real(c_double), intent(in) :: latitude(*), longitude(*)
    end function
    integer(c_int) function c_train_shape(training, dims) bind(c, name='welkin_train_shape')
      import :: c_int, c_ptr, c_int64_t
      type(c_ptr), value :: training
      integer(c_int64_t), intent(out) :: dims(3)
    end function
    integer(c_int) function c_train_set(training, side, channel, values, kind, strides) bind(c, name='welkin_train_set_field')
      import :: c_int, c_ptr, c_char, c_int64_t
      type(c_ptr), value :: training, values
      integer(c_int), value :: side, kind
      character(kind=c_char), intent(in) :: channel(*)
      integer(c_int64_t), intent(in) :: strides(*)
    end function
    integer(c_int) function c_train_give(training, milliseconds) bind(c, name='welkin_train_give')
      import :: c_int, c_ptr, c_int64_t
      type(c_ptr), value :: training
      integer(c_int64_t), value :: milliseconds
    end function
    integer(c_int) function c_train_progress(training, progress) bind(c, name='welkin_train_progress')
      import :: c_int, c_ptr, welkin_progress
      type(c_ptr), value :: training
      type(welkin_progress), intent(out) :: progress
    end function
    type(c_ptr) function c_train_folder(training) bind(c, name='welkin_train_folder')
      import :: c_ptr
      type(c_ptr), value :: training
    end function
    integer(c_int) function c_train_close(training) bind(c, name='welkin_train_close')
      import :: c_int, c_ptr
      type(c_ptr), value :: training
    end function
  end interface

contains

  ! options: flags of `welkin train`, '--yaml_config online.yaml --config run'
  integer function welkin_train_open(options, training) result(status)
    character(*), intent(in) :: options
    type(welkin_training), intent(out) :: training
    status = c_train_open(trim(options)//c_null_char, training%handle)
  end function

  ! Before the first pair. mean and deviation: both or neither; without them they are those of the first pairs.
  integer function welkin_train_set_channel(training, channel, unit, mean, deviation) result(status)
    type(welkin_training), intent(in) :: training
    character(*), intent(in) :: channel
    character(*), intent(in), optional :: unit
    real(c_double), intent(in), optional :: mean, deviation
    character(:), allocatable :: text
    real(c_double) :: numbers(2)
    text = ''
    if (present(unit)) text = trim(unit)
    numbers = 0
    if (present(mean)) numbers(1) = mean
    if (present(deviation)) numbers(2) = deviation
    status = c_train_set_channel(training%handle, trim(channel)//c_null_char, text//c_null_char, numbers(1), numbers(2))
  end function

  ! Before the first pair: degrees of each row and each column.
  integer function welkin_train_set_grid(training, latitude, longitude) result(status)
    type(welkin_training), intent(in) :: training
    real(c_double), contiguous, intent(in) :: latitude(:), longitude(:)
    status = c_train_set_grid(training%handle, latitude, longitude)
  end function

  ! The dims of a field in the model's order: (H, W) or (D, H, W).
  function welkin_train_shape(training) result(dims)
    type(welkin_training), intent(in) :: training
    integer, allocatable :: dims(:)
    integer(c_int64_t) :: all_dims(3)
    integer :: n
    n = c_train_shape(training%handle, all_dims)
    dims = int(all_dims(1:n))
  end function

  ! milliseconds: how long to wait at most where the buffer is full; for ever without it
  integer function welkin_train_give(training, milliseconds) result(status)
    type(welkin_training), intent(in) :: training
    integer, intent(in), optional :: milliseconds
    integer(c_int64_t) :: patience
    patience = -1
    if (present(milliseconds)) patience = milliseconds
    status = c_train_give(training%handle, patience)
  end function

  integer function welkin_train_progress(training, progress) result(status)
    type(welkin_training), intent(in) :: training
    type(welkin_progress), intent(out) :: progress
    status = c_train_progress(training%handle, progress)
  end function

  function welkin_train_folder(training) result(folder)
    type(welkin_training), intent(in) :: training
    character(:), allocatable :: folder
    folder = welkin_text_at(c_train_folder(training%handle))
  end function

  integer function welkin_train_close(training) result(status)
    type(welkin_training), intent(inout) :: training
    status = c_train_close(training%handle)
    training%handle = c_null_ptr
  end function

  integer function train_set_real32_2(training, side, channel, field, same_order) result(status)
    type(welkin_training), intent(in) :: training
    integer, intent(in) :: side
    character(*), intent(in) :: channel
    real(c_float), contiguous, target, intent(in) :: field(:, :)
    logical, intent(in), optional :: same_order
    status = c_train_set(training%handle, int(side, c_int), trim(channel)//c_null_char, c_loc(field), 0_c_int, &
                         welkin_strides_of(welkin_train_shape(training), shape(field), same_order))
  end function

  integer function train_set_real32_3(training, side, channel, field, same_order) result(status)
    type(welkin_training), intent(in) :: training
    integer, intent(in) :: side
    character(*), intent(in) :: channel
    real(c_float), contiguous, target, intent(in) :: field(:, :, :)
    logical, intent(in), optional :: same_order
    status = c_train_set(training%handle, int(side, c_int), trim(channel)//c_null_char, c_loc(field), 0_c_int, &
                         welkin_strides_of(welkin_train_shape(training), shape(field), same_order))
  end function

  integer function train_set_real64_2(training, side, channel, field, same_order) result(status)
    type(welkin_training), intent(in) :: training
    integer, intent(in) :: side
    character(*), intent(in) :: channel
    real(c_double), contiguous, target, intent(in) :: field(:, :)
    logical, intent(in), optional :: same_order
    status = c_train_set(training%handle, int(side, c_int), trim(channel)//c_null_char, c_loc(field), 1_c_int, &
                         welkin_strides_of(welkin_train_shape(training), shape(field), same_order))
  end function

  integer function train_set_real64_3(training, side, channel, field, same_order) result(status)
    type(welkin_training), intent(in) :: training
    integer, intent(in) :: side
    character(*), intent(in) :: channel
    real(c_double), contiguous, target, intent(in) :: field(:, :, :)
    logical, intent(in), optional :: same_order
    status = c_train_set(training%handle, int(side, c_int), trim(channel)//c_null_char, c_loc(field), 1_c_int, &
                         welkin_strides_of(welkin_train_shape(training), shape(field), same_order))
  end function
end module
