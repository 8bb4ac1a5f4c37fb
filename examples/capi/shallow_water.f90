! SPDX-License-Identifier: Apache-2.0
! A shallow-water model that steps with a network in its loop: gravity waves on a periodic plane, forward-backward in time on staggered
! grids, whose surface is nudged every few steps towards what a trained model makes of it.
!
! gfortran PREFIX/include/welkin.f90 shallow_water.f90 -L PREFIX/lib -lwelkin_c -Wl,-rpath,PREFIX/lib -o shallow_water
! ./shallow_water RUN_FOLDER CHANNEL
! Its surface becomes CHANNEL, scaled around 280; all other inputs stay at 280. Prints the mean and the energy every ten steps.
program shallow_water
  use, intrinsic :: iso_fortran_env, only: real64, error_unit
  use welkin
  implicit none
  real(real64), parameter :: gravity = 9.81_real64, depth = 1000, spacing = 1e5_real64, time_step = 200
  real(real64), parameter :: nudging = 0.05_real64, kelvin_per_metre = 1, offset = 280
  integer, parameter :: steps = 40, network_every = 10
  real(real64), allocatable :: surface(:, :), east(:, :), north(:, :), field(:, :)
  type(welkin_model) :: model
  character(256) :: folder, channel
  integer :: dims(2), i, j, step

  call get_command_argument(1, folder)
  call get_command_argument(2, channel)
  call check(welkin_open(folder, '--device cpu', model))
  dims = welkin_shape(model)  ! (H, W); ours are (W, H), as grid models have them
  allocate (surface(dims(2), dims(1)), east(dims(2), dims(1)), north(dims(2), dims(1)), field(dims(2), dims(1)))
  do concurrent(i=1:dims(2), j=1:dims(1))
    surface(i, j) = 5*exp(-((i - dims(2)/2)**2 + (j - dims(1)/2)**2)/8._real64)
  end do
  east = 0
  north = 0
  field = offset
  do i = 1, welkin_num_channels(model, welkin_input)
    call check(welkin_set_field(model, welkin_channel_name(model, welkin_input, i), field))
  end do

  do step = 1, steps
    east = east - gravity*time_step/spacing*(cshift(surface, 1, 1) - surface)
    north = north - gravity*time_step/spacing*(cshift(surface, 1, 2) - surface)
    surface = surface - depth*time_step/spacing*(east - cshift(east, -1, 1) + north - cshift(north, -1, 2))
    if (mod(step, network_every) /= 0) cycle
    call check(welkin_set_field(model, channel, offset + kelvin_per_metre*surface))
    call check(welkin_step(model))
    call check(welkin_get_field(model, channel, field))
    field = (field - sum(field)/size(field))/kelvin_per_metre  ! its mean is not ours: the water is kept
    surface = surface + nudging*(field - (surface - sum(surface)/size(surface)))
    print '(a, i0, a, es13.6, a, es13.6)', 'step ', step, ' mean ', sum(surface)/size(surface), ' energy ', energy()
  end do
  call welkin_close(model)

contains

  real(real64) function energy()
    energy = sum(gravity*surface**2 + depth*(east**2 + north**2))/2/size(surface)
  end function

  subroutine check(status)
    integer, intent(in) :: status
    if (status == welkin_ok) return
    write (error_unit, '(2a)') 'shallow_water: ', welkin_error_text()
    stop 1
  end subroutine
end program
