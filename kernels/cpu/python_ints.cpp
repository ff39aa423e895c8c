// Python integers from and to 32-bit limbs, by their digits in CPython.
#include <algorithm>
#include <cstring>
#include <vector>

#include "bindings.hpp"

namespace rns {

namespace {

using Limbs = nb::ndarray<const u32, nb::ndim<2>, nb::device::cpu>;

// A Python integer as CPython holds it. The stable ABI does not promise this: rnsdask/backend/cpu/text.py
// compares with Python's own bytes before it calls these functions.
using Digit = u32;
constexpr int kDigitBits = 30;
constexpr u32 kDigitMask = (1u << kDigitBits) - 1;

struct Integer {
  PyObject head;
  Py_ssize_t tag;
  Digit digits[1];  // the least significant first and the last not 0
};

struct Magnitude {
  const Digit* digits;
  i64 count;
  bool negative;
};

// Since CPython 3.12, the tag is the number of digits above three bits, of which the lower two are the sign:
// 0 positive, 1 zero, 2 negative. Before, it is the number of digits, negative for a negative integer.
#if PY_VERSION_HEX >= 0x030C0000

Magnitude magnitude_of(PyObject* value) {
  const Integer& v = *reinterpret_cast<Integer*>(value);
  return {v.digits, v.tag >> 3, (v.tag & 3) == 2};
}

Py_ssize_t tag_of(i64 count, bool negative) { return count << 3 | (negative ? 2 : 0); }

#else

Magnitude magnitude_of(PyObject* value) {
  const Integer& v = *reinterpret_cast<Integer*>(value);
  return {v.digits, v.tag < 0 ? -v.tag : v.tag, v.tag < 0};
}

Py_ssize_t tag_of(i64 count, bool negative) { return negative ? -count : count; }

#endif

// Four digits are 120 bits, which are 15 bytes: packed and unpacked by words of 60 bits, two digits each.
// Sixteen digits are 15 limbs; what is left of a number goes bit by bit.
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "limbs are packed as bytes");
constexpr u64 kPairMask = (u64{1} << 60) - 1;

// 15 bytes, and one of 0.
RNS_INLINE void pack_digits(const Digit* digits, void* bytes) {
  const u64 lower = digits[0] | static_cast<u64>(digits[1]) << 30;
  const u64 upper = digits[2] | static_cast<u64>(digits[3]) << 30;
  const u64 words[2] = {lower | upper << 60, upper >> 4};
  std::memcpy(bytes, words, 16);
}

RNS_INLINE void unpack_digits(const char* bytes, Digit* digits) {
  u64 lower, upper;
  std::memcpy(&lower, bytes, 8);
  std::memcpy(&upper, bytes + 7, 8);
  lower &= kPairMask;
  upper >>= 4;
  digits[0] = static_cast<Digit>(lower & kDigitMask);
  digits[1] = static_cast<Digit>(lower >> 30);
  digits[2] = static_cast<Digit>(upper & kDigitMask);
  digits[3] = static_cast<Digit>(upper >> 30);
}

// Above the lowest limb that is not 0, no carry is left.
RNS_VECTORISED void negate(u32* limbs, i64 count) {
  i64 l = 0;
  while (l < count && limbs[l] == 0) ++l;
  if (l < count) limbs[l] = -limbs[l];
  for (++l; l < count; ++l) limbs[l] = ~limbs[l];
}

// Whether the integer fits into the limbs, in two's complement if `is_signed`, which then hold it.
bool write_limbs(const Magnitude& value, bool is_signed, u32* limbs, i64 count) {
  i64 d = 0, l = 0;
  for (; d + 16 <= value.count && l + 16 <= count; d += 16, l += 15) {
    char* bytes = reinterpret_cast<char*>(limbs + l);
    for (i64 k = 0; k < 4; ++k) pack_digits(value.digits + d + 4 * k, bytes + 15 * k);
  }
  u64 bits = 0;
  int held = 0;
  for (; d < value.count; ++d) {
    bits |= static_cast<u64>(value.digits[d]) << held;
    held += kDigitBits;
    if (held < 32) continue;
    if (l == count) return false;
    limbs[l++] = static_cast<u32>(bits);
    bits >>= 32;
    held -= 32;
  }
  if (bits != 0) {
    if (l == count) return false;
    limbs[l++] = static_cast<u32>(bits);
  }
  std::fill(limbs + l, limbs + count, 0u);
  if (!value.negative) return !is_signed || limbs[count - 1] >> 31 == 0;
  negate(limbs, count);
  return is_signed && limbs[count - 1] >> 31 == 1;
}

bool is_below(const Magnitude& a, const Magnitude& b) {
  if (a.count != b.count) return a.count < b.count;
  for (i64 d = a.count - 1; d >= 0; --d) {
    if (a.digits[d] != b.digits[d]) return a.digits[d] < b.digits[d];
  }
  return false;
}

// A new reference to the integer of a magnitude in limbs.
PyObject* read_magnitude(const u32* limbs, i64 count, bool negative) {
  while (count > 0 && limbs[count - 1] == 0) --count;
  if (count <= 1) {
    const i64 value = count == 0 ? 0 : limbs[0];
    return PyLong_FromLongLong(negative ? -value : value);
  }
  const i64 length = 32 * count - __builtin_clz(limbs[count - 1]);
  const i64 size = (length + kDigitBits - 1) / kDigitBits;
  Integer* value = reinterpret_cast<Integer*>(PyType_GenericAlloc(&PyLong_Type, size));
  if (value == nullptr) return nullptr;
  value->tag = tag_of(size, negative);
  Digit* digits = value->digits;
  i64 d = 0, l = 0;
  for (; d + 16 <= size && l + 15 <= count; d += 16, l += 15) {
    const char* bytes = reinterpret_cast<const char*>(limbs + l);
    for (i64 k = 0; k < 4; ++k) unpack_digits(bytes + 15 * k, digits + d + 4 * k);
  }
  u64 bits = 0;
  int held = 0;
  for (; d < size; ++d) {
    if (held < kDigitBits && l < count) {
      bits |= static_cast<u64>(limbs[l++]) << held;
      held += 32;
    }
    digits[d] = static_cast<Digit>(bits & kDigitMask);
    bits >>= kDigitBits;
    held -= kDigitBits;
  }
  return reinterpret_cast<PyObject*>(value);
}

// The position of the first value that is not an int itself or does not fit; their number if there is none.
i64 write_all(const nb::list& values, bool is_signed, MutableMatrix32 limbs) {
  const i64 count = static_cast<i64>(values.size()), limb_count = static_cast<i64>(limbs.shape(1));
  require(static_cast<i64>(limbs.shape(0)) == count && limb_count > 0, "limbs must have a row a value");
  for (i64 j = 0; j < count; ++j) {
    PyObject* value = PyList_GetItem(values.ptr(), j);
    if (!PyLong_CheckExact(value)) return j;
    if (!write_limbs(magnitude_of(value), is_signed, limbs.data() + j * limb_count, limb_count)) return j;
  }
  return count;
}

nb::list read_all_limbs(const Limbs& limbs, bool is_signed) {
  const i64 count = static_cast<i64>(limbs.shape(0)), limb_count = static_cast<i64>(limbs.shape(1));
  require(limb_count == 1 || (limb_count > 1 && limbs.stride(1) == 1), "the limbs' axis must be contiguous");
  nb::list values = nb::steal<nb::list>(PyList_New(count));
  if (!values.is_valid()) nb::raise_python_error();
  std::vector<u32> negated(limb_count);
  for (i64 j = 0; j < count; ++j) {
    const u32* number = limbs.data() + j * limbs.stride(0);
    const bool negative = is_signed && number[limb_count - 1] >> 31 == 1;
    if (negative) {
      std::copy_n(number, limb_count, negated.data());
      negate(negated.data(), limb_count);
      number = negated.data();
    }
    PyObject* value = read_magnitude(number, limb_count, negative);
    if (value == nullptr) nb::raise_python_error();
    PyList_SetItem(values.ptr(), j, value);
  }
  return values;
}

}  // namespace

void bind_python_ints(nb::module_& module) {
  module.def("ints_to_limbs", write_all);
  module.def("limbs_to_ints", read_all_limbs);
  // The position of a value of the greatest magnitude; -1 if there is none, or a value is not an int itself.
  module.def("greatest_magnitude", [](const nb::list& values) {
    Magnitude greatest = {};
    i64 position = -1;
    for (i64 j = 0; j < static_cast<i64>(values.size()); ++j) {
      PyObject* value = PyList_GetItem(values.ptr(), j);
      if (!PyLong_CheckExact(value)) return i64{-1};
      const Magnitude magnitude = magnitude_of(value);
      if (position >= 0 && !is_below(greatest, magnitude)) continue;
      greatest = magnitude;
      position = j;
    }
    return position;
  });
}

}  // namespace rns
