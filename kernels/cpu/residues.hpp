// What the CPU kernels share: views of NumPy arrays, tiles, and dispatch to the processor's vectors.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "rns/base.cuh"

// One binary serves every x86-64 machine: the loops are compiled for three levels of vector
// instructions and the loader picks one (GNU ifunc). Elsewhere the compiler's default target is used.
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__) && \
    __GNUC__ >= 12
#define RNS_VECTORISED __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#define RNS_X86_LEVELS  // what target_clones picks from
#define RNS_AVX512 __attribute__((target("arch=x86-64-v4")))
#define RNS_AVX512_INLINE __attribute__((target("arch=x86-64-v4"), always_inline)) inline
#define RNS_IFMA __attribute__((target("arch=x86-64-v4,avx512ifma")))
#define RNS_IFMA_INLINE __attribute__((target("arch=x86-64-v4,avx512ifma"), always_inline)) inline
#else
#define RNS_VECTORISED
#endif

namespace rns {

namespace nb = nanobind;

// Columns handled at a time: the tile's running sums stay in the first-level cache while the rows
// of residues stream through.
constexpr i64 kTile = 1024;

// An array that a kernel writes. It is taken as it is: nanobind would pass a copy of one in another order or
// of another type, and what is written there would be lost.
template <class... Args>
struct Written : nb::ndarray<Args..., nb::device::cpu> {
  using Array = nb::ndarray<Args..., nb::device::cpu>;
  Written() = default;
  explicit Written(const Array& array) : Array(array) {}
};

using Matrix32 = nb::ndarray<const u32, nb::ndim<2>, nb::device::cpu>;
using Table32 = nb::ndarray<const u32, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using MutableMatrix32 = Written<u32, nb::ndim<2>, nb::c_contig>;
using Vector8 = Written<u8, nb::ndim<1>, nb::c_contig>;
using MutableVectorI64 = Written<i64, nb::ndim<1>, nb::c_contig>;
using Vector32 = nb::ndarray<const u32, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Vector64 = nb::ndarray<const u64, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using MutableVector32 = Written<u32, nb::ndim<1>, nb::c_contig>;
using MutableVector64 = Written<u64, nb::ndim<1>, nb::c_contig>;

// Residues of `count` numbers: row i holds the residues modulo m_i, `stride` apart from the next row.
struct Residues {
  const u32* data;
  i64 moduli;
  i64 count;
  i64 stride;

  explicit Residues(const Matrix32& array)
      : data(array.data()),
        moduli(static_cast<i64>(array.shape(0))),
        count(static_cast<i64>(array.shape(1))),
        stride(array.stride(0)) {
    if (count > 1 && array.stride(1) != 1)
      throw nb::value_error("residues: the numbers' axis must be contiguous");
  }

  const u32* row(i64 i) const { return data + i * stride; }
};

// The logarithm of a power of two.
inline int bit_count(i64 length) {
  int count = 0;
  for (; length > 1; length /= 2) ++count;
  return count;
}

inline void require(bool condition, const char* message) {
  if (!condition) throw nb::value_error(message);
}

}  // namespace rns

namespace nanobind::detail {

template <class... Args>
struct type_caster<rns::Written<Args...>> {
  using Array = typename rns::Written<Args...>::Array;
  NB_TYPE_CASTER(rns::Written<Args...>, make_caster<Array>::Name)

  bool from_python(handle source, uint32_t flags, cleanup_list* cleanup) noexcept {
    make_caster<Array> array;
    const uint32_t as_it_is = flags & ~static_cast<uint32_t>(cast_flags::convert);
    if (!array.from_python(source, as_it_is, cleanup)) return false;
    value = Value(array.value);
    return true;
  }
};

}  // namespace nanobind::detail
