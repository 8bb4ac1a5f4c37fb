# SPDX-License-Identifier: Apache-2.0
"""What tests/number_close.h is for the tests in C++: roundings have a bound from the unit roundoff and their number; a bound that is
no rounding is given with its reason. docs/reference/numerics.md says which is which."""
import numpy as np

ROUNDOFF = {"fp64": 2.0 ** -53, "fp32": 2.0 ** -24, "fp16": 2.0 ** -11, "bf16": 2.0 ** -8}  # src/core/rounding.h


def rounds_to(got, wanted, roundings, *, number="fp32", scale=None, message=""):
    """Elements are apart by at most `roundings` of numbers as large as `scale`; without it, as large as the element itself."""
    bound = roundings * ROUNDOFF[number]
    options = {"rtol": bound, "atol": 0} if scale is None else {"rtol": 0, "atol": bound * float(np.max(np.abs(scale)))}
    np.testing.assert_allclose(np.asarray(got, float), np.asarray(wanted, float), err_msg=message, **options)


def within(got, wanted, bound, reason):
    """Elements are apart by at most `bound`, in their own units, for a reason that is not rounding."""
    np.testing.assert_allclose(np.asarray(got, float), np.asarray(wanted, float), rtol=0, atol=bound, err_msg=f"more than {reason}")


def as_stated(got, text):
    """The number as a document has it: half of its last digit."""
    digits = len(text.partition(".")[2])
    within(got, float(text), 0.5 * 10.0 ** -digits, f"half of the last digit of {text}")
