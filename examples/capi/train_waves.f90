! SPDX-License-Identifier: Apache-2.0
! A shallow-water model that trains its own emulator: it hands over pairs of states ten steps apart from its time loop, and when it
! has enough of them, the emulator forecasts a wave that it has never seen.
!
! gfortran PREFIX/include/welkin.f90 PREFIX/include/welkin_train.f90 train_waves.f90 -L PREFIX/lib -lwelkin_c -Wl,-rpath,PREFIX/lib -o train_waves
! ./train_waves WAVES PAIRS "--yaml_config waves.yaml --config waves --log_root logs"
! Hands over PAIRS pairs of each of WAVES waves. Prints where the run is, and the errors of the emulator and of persistence.
program train_waves
  use, intrinsic :: iso_fortran_env, only: real64, error_unit
  use welkin
  use welkin_train
  implicit none
  integer, parameter :: width = 64, height = 32, steps_per_pair = 10
  real(real64), parameter :: gravity = 9.81_real64, depth = 1000, spacing = 1e5_real64, time_step = 200
  type :: wave_state
    real(real64) :: surface(width, height), east(width, height), north(width, height)
  end type
  type(wave_state) :: now, before
  type(welkin_training) :: training
  type(welkin_progress) :: progress
  type(welkin_model) :: model
  character(1024) :: word
  character(:), allocatable :: folder
  real(real64) :: forecast(width, height)
  integer :: waves, pairs, wave, pair, status
  real(real64) :: error, persistence

  call get_command_argument(1, word)
  read (word, *) waves
  call get_command_argument(2, word)
  read (word, *) pairs
  call get_command_argument(3, word)
  call check(welkin_train_open(trim(word), training))
  call check(welkin_train_set_channel(training, 'surface', 'm'))
  call check(welkin_train_set_channel(training, 'east', 'm s-1'))
  call check(welkin_train_set_channel(training, 'north', 'm s-1'))

  simulation: do wave = 1, waves
    call begin_wave(now, wave)
    do pair = 1, pairs
      before = now
      call advance(now)
      call hand_over(welkin_input, before)
      call hand_over(welkin_target, now)
      status = welkin_train_give(training)  ! waits while the buffer is full
      if (status == welkin_over) exit simulation
      call check(status)
    end do
  end do simulation
  call check(welkin_train_progress(training, progress))
  print '(3(a, i0), a, f0.2, a)', 'handed over ', progress%pairs, ' pairs; the run is at step ', progress%step, ' of ', &
    progress%total_steps, '; waited ', progress%waited_seconds, ' s'
  folder = welkin_train_folder(training)
  call check(welkin_train_close(training))  ! what is in the buffer is used up, and the run is saved
  print '(2a)', 'trained: ', folder

  call check(welkin_open(folder, '--device cpu', model))
  call begin_wave(now, waves + 1)
  do pair = 1, 3
    call advance(now)
  end do
  call check(welkin_set_field(model, 'surface', now%surface))
  call check(welkin_set_field(model, 'east', now%east))
  call check(welkin_set_field(model, 'north', now%north))
  call check(welkin_step(model))
  call check(welkin_get_field(model, 'surface', forecast))
  before = now
  call advance(now)
  error = sqrt(sum((forecast - now%surface)**2)/size(forecast))
  persistence = sqrt(sum((before%surface - now%surface)**2)/size(forecast))
  print '(2(a, es10.3), a)', 'surface of a new wave: RMSE ', error, ' m, persistence ', persistence, ' m'
  call welkin_close(model)

contains

  subroutine begin_wave(state, number)
    type(wave_state), intent(out) :: state
    integer, intent(in) :: number
    integer :: i, j, from_centre(2)
    from_centre = [mod(number*23, width), mod(number*13, height)]
    do concurrent(i=1:width, j=1:height)
      state%surface(i, j) = 5*exp(-((i - width/2)**2 + (j - height/2)**2)/(6._real64 + mod(number, 7)))
    end do
    state%surface = cshift(cshift(state%surface, from_centre(1), 1), from_centre(2), 2)
    state%east = 0
    state%north = 0
  end subroutine

  ! Forward-backward in time on staggered grids, periodic both ways.
  subroutine advance(state)
    type(wave_state), intent(inout) :: state
    integer :: step
    do step = 1, steps_per_pair
      state%east = state%east - gravity*time_step/spacing*(cshift(state%surface, 1, 1) - state%surface)
      state%north = state%north - gravity*time_step/spacing*(cshift(state%surface, 1, 2) - state%surface)
      state%surface = state%surface - depth*time_step/spacing*(state%east - cshift(state%east, -1, 1) + &
                                                               state%north - cshift(state%north, -1, 2))
    end do
  end subroutine

  subroutine hand_over(side, state)
    integer, intent(in) :: side
    type(wave_state), intent(in) :: state
    call check(welkin_train_set_field(training, side, 'surface', state%surface))
    call check(welkin_train_set_field(training, side, 'east', state%east))
    call check(welkin_train_set_field(training, side, 'north', state%north))
  end subroutine

  subroutine check(code)
    integer, intent(in) :: code
    if (code == welkin_ok) return
    write (error_unit, '(2a)') 'train_waves: ', welkin_error_text()
    stop 1
  end subroutine
end program
