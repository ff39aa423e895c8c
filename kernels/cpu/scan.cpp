// Running sums modulo m_i, in one pass over each row of residues.
#include <cstring>
#include <utility>

#include "bindings.hpp"
#include "rns/modular.cuh"

namespace rns {

namespace {

// One step is a modular addition that waits for the one before, so 16 numbers are summed among themselves, in
// four additions of vectors, before one more adds what comes before them.
constexpr i64 kLanes = 16;
using Vector = u32 __attribute__((vector_size(kLanes * sizeof(u32))));
using Lanes = std::make_integer_sequence<int, kLanes>;

// Adds to each lane the one that is kBy below it, where there is one.
template <int kBy, int... k>
RNS_INLINE void add_shifted(Vector& v, const Vector& last, std::integer_sequence<int, k...>) {
  v = mod_add(v, Vector{(k < kBy ? 0 : v[k < kBy ? 0 : k - kBy])...}, last);
}

// A line of numbers next to each other, after one sum.
RNS_VECTORISED void sum_line(const u32* x, i64 length, u32 start, u32 last, u32* out) {
  const Vector lasts = Vector{} + last;
  Vector total = Vector{} + start;
  i64 j = 0;
  for (; j + kLanes <= length; j += kLanes) {
    Vector v;
    std::memcpy(&v, x + j, sizeof(v));
    add_shifted<1>(v, lasts, Lanes());
    add_shifted<2>(v, lasts, Lanes());
    add_shifted<4>(v, lasts, Lanes());
    add_shifted<8>(v, lasts, Lanes());
    v = mod_add(v, total, lasts);
    std::memcpy(out + j, &v, sizeof(v));
    total = Vector{} + v[kLanes - 1];
  }
  for (u32 sum = total[0]; j < length; ++j) out[j] = sum = mod_add(sum, x[j], last);
}

// Lines side by side: one number of each, after the sums before them.
RNS_VECTORISED void sum_next(const u32* x, const u32* before, i64 width, u32 last, u32* out) {
  for (i64 j = 0; j < width; ++j) out[j] = mod_add(before[j], x[j], last);
}

// Lines side by side, too few or too short for vectors.
void sum_few_lines(const u32* x, i64 length, i64 width, const u32* start, u32 last, u32* out) {
  if (length == 0) return;
  for (i64 j = 0; j < width; ++j) out[j] = mod_add(start[j], x[j], last);
  for (i64 j = width; j < length * width; ++j) out[j] = mod_add(out[j - width], x[j], last);
}

void sum_lines(const u32* x, i64 length, i64 width, const u32* start, u32 last, u32* out) {
  if (width == 1 && length >= kLanes) {
    sum_line(x, length, *start, last, out);
  } else if (width < kLanes) {
    sum_few_lines(x, length, width, start, last, out);
  } else {
    for (i64 t = 0; t < length; ++t)
      sum_next(x + t * width, t == 0 ? start : out + (t - 1) * width, width, last, out + t * width);
  }
}

using Blocks = nb::ndarray<const u32, nb::ndim<4>, nb::device::cpu>;
using Starts = nb::ndarray<const u32, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using MutableBlocks = Written<u32, nb::ndim<4>, nb::c_contig>;

}  // namespace

void bind_scan(nb::module_& module) {
  // Along axis 2 of (n, outer, length, inner), after the sums `starts` of (n, outer, inner).
  module.def("running_sums", [](const Blocks& x, const Starts& starts, const Vector32& last,
                                const MutableBlocks& out) {
    const i64 outer = static_cast<i64>(x.shape(1)), length = static_cast<i64>(x.shape(2)),
              inner = static_cast<i64>(x.shape(3));
    for (int k = 0; k < 4; ++k)
      require(out.shape(k) == x.shape(k), "the result must have the operand's shape");
    require(last.shape(0) == x.shape(0) && starts.shape(0) == x.shape(0) && starts.shape(1) == x.shape(1) &&
                starts.shape(2) == x.shape(3),
            "one modulus for each row, and one start for each line are needed");
    require(x.size() == 0 || ((inner == 1 || x.stride(3) == 1) && (length == 1 || x.stride(2) == inner)),
            "lines that go together must be contiguous");
    nb::gil_scoped_release release;
    for (i64 i = 0; i < static_cast<i64>(x.shape(0)); ++i) {
      for (i64 a = 0; a < outer; ++a) {
        const i64 line = i * outer + a;
        sum_lines(x.data() + i * x.stride(0) + a * x.stride(1), length, inner, starts.data() + line * inner,
                  last.data()[i], out.data() + line * length * inner);
      }
    }
  });
}

}  // namespace rns
