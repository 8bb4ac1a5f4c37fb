! SPDX-License-Identifier: Apache-2.0
! Welkin in a Fortran 2008 program: a trained model is opened, fields are set by name, it makes a step, and fields are read back.
! Compile this file with the compiler of the program and link with -lwelkin_c; welkin.h has the contract of each call.
!
! Fields are whole, contiguous arrays in either order of their dims, and neither is rearranged before the call:
!   a(W, H) or a(W, H, D)   the first index runs along the last dim of the model: what a grid model in Fortran has (the default)
!   a(H, W) or a(D, H, W)   the model's own order of indices: same_order=.true.
! Functions return 0, or a code of welkin_status; welkin_error_text() then says what it was.
module welkin
  use, intrinsic :: iso_c_binding
  implicit none
  private
  public :: welkin_model, welkin_open, welkin_close, welkin_shape, welkin_num_channels, welkin_channel_name
  public :: welkin_set_field, welkin_step, welkin_get_field, welkin_advance, welkin_error_text
  public :: welkin_text_at, welkin_strides_of ! for the module welkin_train
  integer, parameter, public :: welkin_ok = 0, welkin_input = 0, welkin_target = 1

  type :: welkin_model
    type(c_ptr) :: handle = c_null_ptr
  end type

  interface welkin_set_field
    procedure set_real32_2, set_real64_2, set_real32_3, set_real64_3
  end interface
  interface welkin_get_field
    procedure get_real32_2, get_real64_2, get_real32_3, get_real64_3
  end interface

  interface
    integer(c_int) function c_open(folder, options, model) bind(c, name='welkin_open')
      import :: c_int, c_char, c_ptr
      character(kind=c_char), intent(in) :: folder(*), options(*)
      type(c_ptr), intent(out) :: model
    end function
    subroutine c_close(model) bind(c, name='welkin_close')
      import :: c_ptr
      type(c_ptr), value :: model
    end subroutine
    integer(c_int) function c_shape(model, dims) bind(c, name='welkin_shape')
      import :: c_int, c_ptr, c_int64_t
      type(c_ptr), value :: model
      integer(c_int64_t), intent(out) :: dims(3)
    end function
    integer(c_int) function c_num_channels(model, side) bind(c, name='welkin_num_channels')
      import :: c_int, c_ptr
      type(c_ptr), value :: model
      integer(c_int), value :: side
    end function
    type(c_ptr) function c_channel_name(model, side, channel) bind(c, name='welkin_channel_name')
      import :: c_int, c_ptr
      type(c_ptr), value :: model
      integer(c_int), value :: side, channel
    end function
    integer(c_int) function c_set(model, channel, values, kind, strides) bind(c, name='welkin_set_field')
      import :: c_int, c_ptr, c_char, c_int64_t
      type(c_ptr), value :: model, values
      character(kind=c_char), intent(in) :: channel(*)
      integer(c_int), value :: kind
      integer(c_int64_t), intent(in) :: strides(*)
    end function
    integer(c_int) function c_get(model, channel, values, kind, strides) bind(c, name='welkin_get_field')
      import :: c_int, c_ptr, c_char, c_int64_t
      type(c_ptr), value :: model, values
      character(kind=c_char), intent(in) :: channel(*)
      integer(c_int), value :: kind
      integer(c_int64_t), intent(in) :: strides(*)
    end function
    integer(c_int) function c_step(model) bind(c, name='welkin_step')
      import :: c_int, c_ptr
      type(c_ptr), value :: model
    end function
    integer(c_int) function c_advance(model) bind(c, name='welkin_advance')
      import :: c_int, c_ptr
      type(c_ptr), value :: model
    end function
    type(c_ptr) function c_last_error() bind(c, name='welkin_last_error')
      import :: c_ptr
    end function
    integer(c_size_t) function c_strlen(text) bind(c, name='strlen')
      import :: c_ptr, c_size_t
      type(c_ptr), value :: text
    end function
  end interface

contains

  ! options: flags of `welkin predict`, '--checkpoint newest --device cpu'
  integer function welkin_open(folder, options, model) result(status)
    character(*), intent(in) :: folder, options
    type(welkin_model), intent(out) :: model
    status = c_open(trim(folder)//c_null_char, trim(options)//c_null_char, model%handle)
  end function

  subroutine welkin_close(model)
    type(welkin_model), intent(inout) :: model
    call c_close(model%handle)
    model%handle = c_null_ptr
  end subroutine

  ! The dims of a field in the model's order: (H, W) or (D, H, W).
  function welkin_shape(model) result(dims)
    type(welkin_model), intent(in) :: model
    integer, allocatable :: dims(:)
    integer(c_int64_t) :: all_dims(3)
    integer :: n
    n = c_shape(model%handle, all_dims)
    dims = int(all_dims(1:n))
  end function

  integer function welkin_num_channels(model, side)
    type(welkin_model), intent(in) :: model
    integer, intent(in) :: side
    welkin_num_channels = c_num_channels(model%handle, int(side, c_int))
  end function

  ! channel counts from 1
  function welkin_channel_name(model, side, channel) result(name)
    type(welkin_model), intent(in) :: model
    integer, intent(in) :: side, channel
    character(:), allocatable :: name
    name = welkin_text_at(c_channel_name(model%handle, int(side, c_int), int(channel - 1, c_int)))
  end function

  integer function welkin_step(model)
    type(welkin_model), intent(in) :: model
    welkin_step = c_step(model%handle)
  end function

  integer function welkin_advance(model)
    type(welkin_model), intent(in) :: model
    welkin_advance = c_advance(model%handle)
  end function

  function welkin_error_text() result(text)
    character(:), allocatable :: text
    text = welkin_text_at(c_last_error())
  end function

  function welkin_text_at(address) result(text)
    type(c_ptr), intent(in) :: address
    character(:), allocatable :: text
    character(kind=c_char), pointer :: letters(:)
    integer :: i, n
    text = ''
    if (.not. c_associated(address)) return
    n = int(c_strlen(address))
    call c_f_pointer(address, letters, [n])
    text = repeat(' ', n)
    do i = 1, n
      text(i:i) = letters(i)
    end do
  end function

  ! Elements between neighbours along each dim of `wanted`, the model's, for an array of the shape `dims`; 0, which is refused, where
  ! it does not fit.
  function welkin_strides_of(wanted, dims, same_order) result(strides)
    integer, intent(in) :: wanted(:), dims(:)
    logical, intent(in), optional :: same_order
    integer(c_int64_t) :: strides(3), step
    integer :: i, n
    logical :: is_same
    n = size(dims)
    is_same = .false.
    if (present(same_order)) is_same = same_order
    strides = 1
    step = 1
    do i = 1, n
      if (is_same) then
        strides(i) = step
      else
        strides(n + 1 - i) = step
      end if
      step = step*dims(i)
    end do
    if (size(wanted) == 0) return ! there is no model, which the call says
    if (is_same) then
      if (.not. fits(wanted, dims)) strides = 0
    else
      if (.not. fits(wanted, dims(n:1:-1))) strides = 0
    end if
  end function

  logical function fits(wanted, dims)
    integer, intent(in) :: wanted(:), dims(:)
    fits = size(wanted) == size(dims)
    if (fits) fits = all(wanted == dims)
  end function

  integer function set_real32_2(model, channel, field, same_order) result(status)
    type(welkin_model), intent(in) :: model
    character(*), intent(in) :: channel
    real(c_float), contiguous, target, intent(in) :: field(:, :)
    logical, intent(in), optional :: same_order
    status = c_set(model%handle, trim(channel)//c_null_char, c_loc(field), 0_c_int, &
                   welkin_strides_of(welkin_shape(model), shape(field), same_order))
  end function

  integer function set_real64_2(model, channel, field, same_order) result(status)
    type(welkin_model), intent(in) :: model
    character(*), intent(in) :: channel
    real(c_double), contiguous, target, intent(in) :: field(:, :)
    logical, intent(in), optional :: same_order
    status = c_set(model%handle, trim(channel)//c_null_char, c_loc(field), 1_c_int, &
                   welkin_strides_of(welkin_shape(model), shape(field), same_order))
  end function

  integer function set_real32_3(model, channel, field, same_order) result(status)
    type(welkin_model), intent(in) :: model
    character(*), intent(in) :: channel
    real(c_float), contiguous, target, intent(in) :: field(:, :, :)
    logical, intent(in), optional :: same_order
    status = c_set(model%handle, trim(channel)//c_null_char, c_loc(field), 0_c_int, &
                   welkin_strides_of(welkin_shape(model), shape(field), same_order))
  end function

  integer function set_real64_3(model, channel, field, same_order) result(status)
    type(welkin_model), intent(in) :: model
    character(*), intent(in) :: channel
    real(c_double), contiguous, target, intent(in) :: field(:, :, :)
    logical, intent(in), optional :: same_order
    status = c_set(model%handle, trim(channel)//c_null_char, c_loc(field), 1_c_int, &
                   welkin_strides_of(welkin_shape(model), shape(field), same_order))
  end function

  integer function get_real32_2(model, channel, field, same_order) result(status)
    type(welkin_model), intent(in) :: model
    character(*), intent(in) :: channel
    real(c_float), contiguous, target, intent(inout) :: field(:, :)
    logical, intent(in), optional :: same_order
    status = c_get(model%handle, trim(channel)//c_null_char, c_loc(field), 0_c_int, &
                   welkin_strides_of(welkin_shape(model), shape(field), same_order))
  end function

  integer function get_real64_2(model, channel, field, same_order) result(status)
    type(welkin_model), intent(in) :: model
    character(*), intent(in) :: channel
    real(c_double), contiguous, target, intent(inout) :: field(:, :)
    logical, intent(in), optional :: same_order
    status = c_get(model%handle, trim(channel)//c_null_char, c_loc(field), 1_c_int, &
                   welkin_strides_of(welkin_shape(model), shape(field), same_order))
  end function

  integer function get_real32_3(model, channel, field, same_order) result(status)
    type(welkin_model), intent(in) :: model
    character(*), intent(in) :: channel
    real(c_float), contiguous, target, intent(inout) :: field(:, :, :)
    logical, intent(in), optional :: same_order
    status = c_get(model%handle, trim(channel)//c_null_char, c_loc(field), 0_c_int, &
                   welkin_strides_of(welkin_shape(model), shape(field), same_order))
  end function

  integer function get_real64_3(model, channel, field, same_order) result(status)
    type(welkin_model), intent(in) :: model
    character(*), intent(in) :: channel
    real(c_double), contiguous, target, intent(inout) :: field(:, :, :)
    logical, intent(in), optional :: same_order
    status = c_get(model%handle, trim(channel)//c_null_char, c_loc(field), 1_c_int, &
                   welkin_strides_of(welkin_shape(model), shape(field), same_order))
  end function
end module
