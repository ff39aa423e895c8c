// Element-wise operations on integers as limbs, a tile of numbers at a time: one row of limbs after another,
// so that neighbouring numbers are in one vector.
#include "rns/limbs.cuh"

#include <algorithm>

#include "bindings.hpp"

namespace rns {

namespace {

using Counts64 = nb::ndarray<const i64, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using MutableCounts64 = Written<i64, nb::ndim<1>, nb::c_contig>;
using MutableOrder8 = Written<i8, nb::ndim<1>, nb::c_contig>;

// Limbs of numbers, or of one number for all; above its own rows a number goes on by its sign.
struct LimbOperand {
  Residues limbs;
  bool is_signed;

  LimbOperand(const Matrix32& array, bool has_sign) : limbs(array), is_signed(has_sign) {
    require(limbs.moduli > 0, "a number has at least one limb");
  }
  // Row i of a tile; the buffer is for a row that is not in memory.
  const u32* row(i64 i, i64 first, i64 width, u32* buffer) const {
    const bool is_one = limbs.count == 1;
    if (i < limbs.moduli && !is_one) return limbs.row(i) + first;
    const u32* highest = limbs.row(std::min(i, limbs.moduli - 1)) + (is_one ? 0 : first);
    for (i64 j = 0; j < width; ++j) {
      const u32 limb = highest[is_one ? 0 : j];
      buffer[j] = i < limbs.moduli ? limb : limb_beyond(limb, is_signed);
    }
    return buffer;
  }
};

// One number for all, or as many as there are.
void check_count(const LimbOperand& x, i64 count) {
  require(x.limbs.count == 1 || x.limbs.count == count, "operands must be of as many numbers");
}

RNS_VECTORISED void add_rows(const u32* x, const u32* y, u32 flip, i64 width, u32* __restrict__ carries,
                             u32* __restrict__ out) {
  for (i64 j = 0; j < width; ++j) out[j] = add_limbs(x[j], y[j] ^ flip, carries[j]);
}

RNS_VECTORISED void add_tops(const u32* x, bool x_signed, const u32* y, bool y_signed, bool subtract,
                             i64 width, i32 bits, bool is_signed, const u32* __restrict__ carries,
                             u32* __restrict__ out, u8* __restrict__ flags) {
  for (i64 j = 0; j < width; ++j) {
    bool fits;
    const i64 exact = exact_top(signed_top(x[j], x_signed), signed_top(y[j], y_signed), carries[j], subtract);
    out[j] = wrapped_top(exact, bits, is_signed, fits);
    flags[j] = !fits;
  }
}

void add(const LimbOperand& x, const LimbOperand& y, bool subtract, i32 top_bits, bool is_signed, u32* out,
         i64 rows, i64 count, u8* flags) {
  alignas(64) u32 carries[kTile], x_row[kTile], y_row[kTile];
  const u32 flip = subtract ? ~0u : 0u;
  for (i64 first = 0; first < count; first += kTile) {
    const i64 width = std::min(kTile, count - first);
    std::fill_n(carries, width, flip & 1u);
    for (i64 i = 0; i < rows; ++i) {
      const u32 *a = x.row(i, first, width, x_row), *b = y.row(i, first, width, y_row);
      u32* sums = out + i * count + first;
      if (i + 1 < rows) {
        add_rows(a, b, flip, width, carries, sums);
      } else {
        add_tops(a, x.is_signed, b, y.is_signed, subtract, width, top_bits, is_signed, carries, sums,
                 flags + first);
      }
    }
  }
}

// Returns whether all numbers are told apart.
RNS_VECTORISED bool compare_rows(const u32* x, const u32* y, u32 flip, i64 width, i32* __restrict__ order) {
  i32 equal = 0;
  for (i64 j = 0; j < width; ++j) {
    order[j] = order[j] != 0 ? order[j] : order_of_limbs(x[j] ^ flip, y[j] ^ flip);
    equal |= order[j] == 0;
  }
  return equal == 0;
}

void compare(const LimbOperand& x, const LimbOperand& y, i64 count, i8* out) {
  alignas(64) u32 x_row[kTile], y_row[kTile];
  alignas(64) i32 order[kTile];
  for (i64 first = 0; first < count; first += kTile) {
    const i64 width = std::min(kTile, count - first);
    std::fill_n(order, width, 0);
    u32 flip = x.is_signed ? 1u << 31 : 0u;  // of the highest limbs alone
    for (i64 i = x.limbs.moduli - 1; i >= 0; --i, flip = 0) {
      const u32 *a = x.row(i, first, width, x_row), *b = y.row(i, first, width, y_row);
      if (compare_rows(a, b, flip, width, order)) break;
    }
    std::copy_n(order, width, out + first);
  }
}

// A shift by no bits leaves nothing of the higher limb.
RNS_VECTORISED void shift_row(const u32* low, const u32* high, i32 bits, i64 width, u32* __restrict__ out) {
  for (i64 j = 0; j < width; ++j) out[j] = (low[j] >> bits) | (high[j] << 1 << (31 - bits));
}

RNS_VECTORISED void trim_row(i32 top_bits, bool is_signed, i64 width, u32* __restrict__ out) {
  bool fits;
  for (i64 j = 0; j < width; ++j) out[j] = wrapped_top(out[j], top_bits, is_signed, fits);
}

// Numbers times 2^count, rounded down and wrapped: by one count of bits for all, or by one for each.
struct Shift {
  LimbOperand x;
  i32 top_bits;
  u32* out;
  i64 rows;
  i64 count;

  const u32* row(i64 i, i64 first, i64 width, u32* buffer) const {
    if (i >= 0) return x.row(i, first, width, buffer);
    std::fill_n(buffer, width, 0u);
    return buffer;
  }
  void by_one(i64 bits) const {
    alignas(64) u32 low_row[kTile], high_row[kTile];
    const i64 right = -bits, places = right >> 5;  // limbs to the right, and bits of a limb
    const i32 rest = static_cast<i32>(right & 31);
    for (i64 first = 0; first < count; first += kTile) {
      const i64 width = std::min(kTile, count - first);
      for (i64 i = 0; i < rows; ++i) {
        const u32* low = row(i + places, first, width, low_row);
        const u32* high = rest == 0 ? low : row(i + places + 1, first, width, high_row);
        shift_row(low, high, rest, width, out + i * count + first);
      }
      trim_row(top_bits, x.is_signed, width, out + (rows - 1) * count + first);
    }
  }
  u32 limb(i64 i, i64 j) const {
    if (i < 0) return 0;
    const u32* highest = x.limbs.row(std::min(i, x.limbs.moduli - 1)) + (x.limbs.count == 1 ? 0 : j);
    return i < x.limbs.moduli ? *highest : limb_beyond(*highest, x.is_signed);
  }
  void by_each(const i64* bits) const {
    bool fits;
    for (i64 j = 0; j < count; ++j) {
      const i64 right = -bits[j], places = right >> 5;
      u32 low = limb(places, j);
      for (i64 i = 0; i < rows; ++i) {
        const u32 high = limb(i + places + 1, j);
        out[i * count + j] = shifted_limb(low, high, static_cast<i32>(right & 31));
        low = high;
      }
      u32& top = out[(rows - 1) * count + j];
      top = wrapped_top(top, top_bits, x.is_signed, fits);
    }
  }
};

RNS_VECTORISED void count_row(const u32* x, const u32* __restrict__ inverted, i64 i, i64 width, bool ones,
                              u32* __restrict__ carries, i64* __restrict__ counts) {
  for (i64 j = 0; j < width; ++j) {
    counts[j] = counted(counts[j], magnitude_limb(x[j], inverted[j], carries[j]), i, ones);
  }
}

void count_bits(const LimbOperand& x, i32 what, i64* counts) {
  alignas(64) u32 inverted[kTile], carries[kTile];
  const i64 rows = x.limbs.moduli, count = x.limbs.count;
  for (i64 first = 0; first < count; first += kTile) {
    const i64 width = std::min(kTile, count - first);
    for (i64 j = 0; j < width; ++j) {
      inverted[j] = limb_beyond(x.limbs.row(rows - 1)[first + j], x.is_signed);
      carries[j] = what == kTwosLength ? 0 : inverted[j] & 1u;
    }
    std::fill_n(counts + first, width, 0);
    for (i64 i = 0; i < rows; ++i) {
      count_row(x.limbs.row(i) + first, inverted, i, width, what == kOnes, carries, counts + first);
    }
  }
}

void check_top(i32 bits) { require(bits >= 1 && bits <= 32, "the highest limb has 1 to 32 bits"); }

}  // namespace

void bind_limbs(nb::module_& module) {
  module.def(
      "positional_add", [](const Matrix32& x, bool x_signed, const Matrix32& y, bool y_signed, bool subtract,
                           i32 top_bits, bool is_signed, MutableMatrix32 out, Vector8 flags) {
        const LimbOperand a(x, x_signed), b(y, y_signed);
        const i64 rows = static_cast<i64>(out.shape(0)), count = static_cast<i64>(out.shape(1));
        check_count(a, count);
        check_count(b, count);
        check_top(top_bits);
        require(static_cast<i64>(flags.shape(0)) == count && rows > 0, "flags must be of as many numbers");
        nb::gil_scoped_release release;
        add(a, b, subtract, top_bits, is_signed, out.data(), rows, count, flags.data());
      });
  module.def("positional_compare",
             [](const Matrix32& x, const Matrix32& y, bool is_signed, MutableOrder8 order) {
               const LimbOperand a(x, is_signed), b(y, is_signed);
               const i64 count = static_cast<i64>(order.shape(0));
               check_count(a, count);
               check_count(b, count);
               require(a.limbs.moduli == b.limbs.moduli, "operands must have as many limbs");
               nb::gil_scoped_release release;
               compare(a, b, count, order.data());
             });
  module.def("positional_shift", [](const Matrix32& x, Counts64 bits, i32 top_bits, bool is_signed,
                                    MutableMatrix32 out) {
    const i64 rows = static_cast<i64>(out.shape(0)), count = static_cast<i64>(out.shape(1));
    const i64 counts = static_cast<i64>(bits.shape(0));
    const Shift shift{{x, is_signed}, top_bits, out.data(), rows, count};
    check_count(shift.x, count);
    check_top(top_bits);
    require(rows > 0 && (counts == 1 || counts == count), "counts must be one, or as many as numbers");
    nb::gil_scoped_release release;
    if (counts == 1) {
      shift.by_one(bits.data()[0]);
    } else {
      shift.by_each(bits.data());
    }
  });
  module.def("positional_count", [](const Matrix32& x, bool is_signed, i32 what, MutableCounts64 counts) {
    const LimbOperand a(x, is_signed);
    require(static_cast<i64>(counts.shape(0)) == a.limbs.count, "counts must be of as many numbers");
    require(what >= kLength && what <= kTwosLength, "what is counted is 0, 1 or 2");
    nb::gil_scoped_release release;
    count_bits(a, what, counts.data());
  });
}

}  // namespace rns
