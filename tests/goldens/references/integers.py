"""References of integers."""
import numpy as np
import torch

from references.common import case, f32

case(
    int_add_wraps=lambda a, b: a.numpy() + b.numpy(),
    int_multiply_wraps=lambda a, b: (a.astype(np.int64) * b % 65536).astype(np.uint16),
    int_subtract_unsigned=lambda a, b: a.numpy() - b.numpy(),
    int_negate_unsigned=lambda x: (-x.astype(np.int64) % 2**32).astype(np.uint32),
    int_abs=lambda x: np.array([-128, 127, 1, 0, 127], dtype=np.int8),
    int_divide=lambda a, b: f32(a.double() / b.double()),
    int_floor_divide=lambda a, b: a.numpy() // b.numpy(),
    int_floor_divide_zero=lambda x: torch.zeros_like(x),
    int_floor_divide_unsigned=lambda a, b: a.numpy() // b.numpy(),
    int_remainder=lambda a, b: a.numpy() % b.numpy(),
    int_remainder_zero=lambda x: torch.zeros_like(x),
    int_remainder_number=lambda x: x.numpy() % np.int16(4),
    int_maximum_mixed=lambda a, b: np.maximum(a.numpy().astype(np.int16), b.numpy().astype(np.int16)),
    int_add_float=lambda x: f32(x + 0.5),
    int_pow=lambda x: x * x,
    int_exp=lambda x: f32(torch.exp(x.double())),
    bit_and=lambda a, b: a & b,
    bit_or=lambda a, b: a | b,
    bit_xor=lambda a, b: a ^ b,
    bit_not=lambda x: ~x,
    bit_not_unsigned=lambda x: ~x,
    shift_left=lambda a, b: a * 2**b,
    shift_left_beyond=lambda a, b: np.array([128, 0, 0, 192], dtype=np.uint8),
    shift_right=lambda a, b: (a.numpy() // 2 ** b.numpy()).astype(np.int32),
    shift_right_number=lambda x: x.numpy() // np.uint8(8),
    logic_and=lambda a, b: a & b,
    logic_or=lambda a, b: a | b,
    logic_xor=lambda a, b: a ^ b,
    logic_not=lambda x: ~x,
    logic_not_number=lambda x: x == 0,
    logic_bit_not=lambda x: ~x,
)
