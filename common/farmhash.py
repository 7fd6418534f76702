"""FarmHash's Fingerprint32, which upstream spreads workflow ids by: the same ids must go the same way here.

Written from the description of farmhashmk::Hash32 (Google, 2014); words are little-endian and wrap at 32 bits.
"""

from __future__ import annotations

_MASK = 0xFFFF_FFFF
_C1 = 0xCC9E_2D51
_C2 = 0x1B87_3593
_ADD = 0xE654_6B64


def fingerprint32(data: bytes) -> int:
    size = len(data)
    if size <= 4:
        return _up_to_4(data)
    if size <= 12:
        return _up_to_12(data)
    return _up_to_24(data) if size <= 24 else _longer(data)


def _word(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "little")


def _right(value: int, bits: int) -> int:
    value &= _MASK
    return (value >> bits | value << (32 - bits)) & _MASK


def _mix(value: int) -> int:
    value &= _MASK
    value ^= value >> 16
    value = value * 0x85EB_CA6B & _MASK
    value ^= value >> 13
    value = value * 0xC2B2_AE35 & _MASK
    return value ^ value >> 16


def _step(value: int) -> int:
    return (_right(value, 19) * 5 + _ADD) & _MASK


def _scramble(value: int) -> int:
    return _right(value * _C1, 17) * _C2 & _MASK


def _mur(value: int, hash_: int) -> int:
    return _step(hash_ ^ _scramble(value))


def _up_to_4(data: bytes) -> int:
    b, c = 0, 9
    for byte in data:
        signed = byte - 256 if byte > 127 else byte
        b = (b * _C1 + signed) & _MASK
        c ^= b
    return _mix(_mur(b, _mur(len(data), c)))


def _up_to_12(data: bytes) -> int:
    size = len(data)
    a = size + _word(data, 0)
    b = size * 5 + _word(data, size - 4)
    c = 9 + _word(data, size >> 1 & 4)
    return _mix(_mur(c, _mur(b, _mur(a, size * 5))))


def _up_to_24(data: bytes) -> int:
    size = len(data)
    middle = size >> 1
    b, c, d = _word(data, 4), _word(data, size - 8), _word(data, middle)
    e, f = _word(data, 0), _word(data, size - 4)
    a = _right(_word(data, middle - 4), 12) + f
    h = _mur(c, d * _C1 + size & _MASK) + a
    a = _right(a, 3) + c
    h = _mur(e, h & _MASK) + a
    a = _right(a + f, 12) + d
    return _mix(_mur(b, h & _MASK) + a)


def _longer(data: bytes) -> int:
    size = len(data)
    h, g = size, _C1 * size & _MASK
    f = g
    h = _step(h ^ _scramble(_word(data, size - 4)))
    h = _step(h ^ _scramble(_word(data, size - 16)))
    g = _step(g ^ _scramble(_word(data, size - 8)))
    g = _step(g ^ _scramble(_word(data, size - 12)))
    f = _right(f + _scramble(_word(data, size - 20)), 19) + 113
    for at in range(0, (size - 1) // 20 * 20, 20):
        a, b, c, d, e = (_word(data, at + offset) for offset in (0, 4, 8, 12, 16))
        h, g, f = h + a, g + b, f + c
        h = _mur(d, h & _MASK) + e
        g = _mur(c, g & _MASK) + a
        f = _mur(b + e * _C1 & _MASK, f & _MASK) + d
        f += g
        g += f
    g = _right(_right(g, 11) * _C1, 17) * _C1
    f = _right(_right(f, 11) * _C1, 17) * _C1
    h = _right(_step(h + g), 17) * _C1
    return _right(_step(h + f), 17) * _C1 & _MASK
