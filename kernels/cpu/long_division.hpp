// Long division in words of 64 bits, with floor semantics: what floor_divide of rns/divide.cuh gives, with
// wider words and a reciprocal that is made once for each divisor.
//
// Algorithm D of D. E. Knuth, "The Art of Computer Programming", vol. 2, 4.3.1. A digit is estimated from
// three words by two: Algorithm 4 of N. Moller and T. Granlund, "Improved division by invariant integers",
// IEEE Trans. Computers 60(2), 2011.
#pragma once

#include <algorithm>
#include <vector>

#include "residues.hpp"

namespace rns {

using u128 = unsigned __int128;

inline u64 high_word(u128 x) { return static_cast<u64>(x >> 64); }
inline u128 two_words(u64 high, u64 low) { return static_cast<u128>(high) << 64 | low; }

inline void negate_words(u64* words, i64 count) {
  bool carry = true;
  for (i64 i = 0; i < count; ++i) {
    words[i] = ~words[i] + (carry ? 1 : 0);
    carry = carry && words[i] == 0;
  }
}

// The magnitude of `count` limbs in (count + 1) / 2 words; returns how many these are without leading zeros.
inline i64 load_magnitude(const u32* limbs, i64 count, bool negative, u64* words) {
  i64 used = (count + 1) / 2;
  for (i64 i = 0; i < count / 2; ++i) words[i] = static_cast<u64>(limbs[2 * i + 1]) << 32 | limbs[2 * i];
  if (count % 2 != 0) words[used - 1] = static_cast<u64>(negative ? ~0u : 0u) << 32 | limbs[count - 1];
  if (negative) negate_words(words, used);
  while (used > 0 && words[used - 1] == 0) --used;
  return used;
}

// A magnitude, the top one of its words 0, as `width` limbs in two's complement, which must hold it.
inline void store_magnitude(u64* words, i64 count, bool negative, u32* limbs, i64 width) {
  if (negative) negate_words(words, count);
  const i64 stored = std::min(2 * count, width);
  for (i64 i = 0; i < stored / 2; ++i) {
    limbs[2 * i] = static_cast<u32>(words[i]);
    limbs[2 * i + 1] = static_cast<u32>(words[i] >> 32);
  }
  if (stored % 2 != 0) limbs[stored - 1] = static_cast<u32>(words[stored / 2]);
  std::fill(limbs + stored, limbs + width, static_cast<u32>(words[count - 1] >> 32));
}

inline void shift_left(u64* words, i64 count, u32 bits) {
  if (bits == 0) return;
  for (i64 i = count - 1; i > 0; --i) words[i] = words[i] << bits | words[i - 1] >> (64 - bits);
  words[0] <<= bits;
}

inline void shift_right(u64* words, i64 count, u32 bits) {
  if (bits == 0) return;
  for (i64 i = 0; i + 1 < count; ++i) words[i] = words[i] >> bits | words[i + 1] << (64 - bits);
  words[count - 1] >>= bits;
}

// x -= digit d, over the words of d; returns what is to be subtracted from the next word.
using SubtractMultiple = u64 (*)(u64* x, const u64* d, i64 count, u64 digit);

inline u64 subtract_words(u64* x, const u64* d, i64 count, u64 digit, u64 borrow) {
  for (i64 i = 0; i < count; ++i) {
    const u128 product = static_cast<u128>(digit) * d[i] + borrow;
    const u64 low = static_cast<u64>(product);
    borrow = high_word(product) + (x[i] < low ? 1 : 0);
    x[i] -= low;
  }
  return borrow;
}

inline u64 subtract_multiple_portably(u64* x, const u64* d, i64 count, u64 digit) {
  return subtract_words(x, d, count, digit, 0);
}

#ifdef RNS_X86_LEVELS
// Compilers do not keep two carries in flags. Here the carry flag adds the halves of products that meet, and
// the overflow flag adds them to the complement of x, for ~(~x + y) = x - y: four words at a time.
inline u64 subtract_multiple_adx(u64* x, const u64* d, i64 count, u64 digit) {
  u64 borrow = 0;
  i64 i = 0;
  for (; i + 4 <= count; i += 4) {
    u64 low, even, odd, x0 = ~x[i], x1 = ~x[i + 1], x2 = ~x[i + 2], x3 = ~x[i + 3];
    asm("xorl %k[low], %k[low]\n\t"
        "mulx %[d0], %[low], %[even]\n\t adcx %[borrow], %[low]\n\t adox %[low], %[x0]\n\t"
        "mulx %[d1], %[low], %[odd]\n\t adcx %[even], %[low]\n\t adox %[low], %[x1]\n\t"
        "mulx %[d2], %[low], %[even]\n\t adcx %[odd], %[low]\n\t adox %[low], %[x2]\n\t"
        "mulx %[d3], %[low], %[borrow]\n\t adcx %[even], %[low]\n\t adox %[low], %[x3]\n\t"
        "movl $0, %k[low]\n\t adcx %[low], %[borrow]\n\t adox %[low], %[borrow]"
        : [x0] "+&r"(x0), [x1] "+&r"(x1), [x2] "+&r"(x2), [x3] "+&r"(x3), [borrow] "+&r"(borrow),
          [low] "=&r"(low), [even] "=&r"(even), [odd] "=&r"(odd)
        : "d"(digit), [d0] "m"(d[i]), [d1] "m"(d[i + 1]), [d2] "m"(d[i + 2]), [d3] "m"(d[i + 3])
        : "cc");
    x[i] = ~x0;
    x[i + 1] = ~x1;
    x[i + 2] = ~x2;
    x[i + 3] = ~x3;
  }
  return subtract_words(x + i, d + i, count - i, digit, borrow);
}
#endif

// x = d - x.
inline void subtract_from(const u64* d, i64 count, u64* x) {
  u64 borrow = 0;
  for (i64 i = 0; i < count; ++i) {
    const u128 difference = static_cast<u128>(d[i]) - x[i] - borrow;
    x[i] = static_cast<u64>(difference);
    borrow = high_word(difference) & 1;
  }
}

inline void add_to(const u64* d, i64 count, u64* x) {
  u64 carry = 0;
  for (i64 i = 0; i < count; ++i) {
    const u128 sum = static_cast<u128>(x[i]) + d[i] + carry;
    x[i] = static_cast<u64>(sum);
    carry = high_word(sum);
  }
}

// The leading two words of a divisor, whose highest bit is set, and their reciprocal
// floor((2^192 - 1) / (d1 2^64 + d0)) - 2^64.
struct LeadingWords {
  u64 d1 = 0;
  u64 d0 = 0;
  u64 reciprocal = 0;

  LeadingWords() = default;
  LeadingWords(u64 high, u64 low)
      : d1(high), d0(low), reciprocal(static_cast<u64>(two_words(~high, ~u64{0}) / high)) {
    // That of d1 alone, made smaller by 1 for each time that d0 takes it past the power.
    u64 p = d1 * reciprocal + d0;
    if (p < d0) {
      --reciprocal;
      if (p >= d1) {
        --reciprocal;
        p -= d1;
      }
      p -= d1;
    }
    const u128 t = static_cast<u128>(d0) * reciprocal;
    p += high_word(t);
    if (p < high_word(t)) {
      --reciprocal;
      if (two_words(p, static_cast<u64>(t)) >= two_words(d1, d0)) --reciprocal;
    }
  }

  // The floor of three words by the two, or 2^64 - 1 if it is more.
  u64 estimate_digit(u64 x2, u64 x1, u64 x0) const {
    const u128 d = two_words(d1, d0);
    if (two_words(x2, x1) >= d) return ~u64{0};
    const u128 q = static_cast<u128>(reciprocal) * x2 + two_words(x2, x1);
    u64 digit = high_word(q) + 1;
    u128 rest = two_words(x1 - high_word(q) * d1, x0) - d - static_cast<u128>(d0) * high_word(q);
    if (high_word(rest) >= static_cast<u64>(q)) {
      --digit;
      rest += d;
    }
    return rest >= d ? digit + 1 : digit;
  }
};

// A divisor and what it divides. The divisor is read once for all of these, and scaled by a power of two so
// that its highest bit is the highest of a word, and it has two words at least.
class LongDivision {
 public:
  explicit LongDivision(SubtractMultiple subtract_multiple) : subtract_multiple_(subtract_multiple) {}

  void set_divisor(const u32* limbs, i64 limb_count, bool is_signed) {
    d_.assign(std::max<i64>(2, (limb_count + 1) / 2), 0);
    is_signed_ = is_signed;
    negative_ = is_negative(limbs, limb_count);
    count_ = load_magnitude(limbs, limb_count, negative_, d_.data());
    padding_ = shift_ = 0;
    if (count_ == 0) return;
    padding_ = count_ == 1 ? 1 : 0;
    if (padding_ != 0) std::swap(d_[0], d_[1]);
    count_ += padding_;
    shift_ = static_cast<u32>(__builtin_clzll(d_[count_ - 1]));
    shift_left(d_.data(), count_, shift_);
    leading_ = LeadingWords(d_[count_ - 1], d_[count_ - 2]);
  }

  // Quotient and remainder in `width` limbs each: at least as many as the divisor has and as x and, signed,
  // one more. By 0 they mean nothing.
  void divide(const u32* x, i64 limb_count, u32* quotient, u32* remainder, i64 width) {
    const bool negative = is_negative(x, limb_count);
    load(x, limb_count, negative);
    divide_magnitudes();
    if (negative != negative_) round_away();
    shift_right(x_.data(), count_, shift_);
    const i64 quotient_words = used_words(q_);
    most_ = std::max(most_, 2 * quotient_words);
    store_magnitude(q_.data(), quotient_words + 1, negative != negative_, quotient, width);
    store_magnitude(x_.data() + padding_, count_ - padding_ + 1, negative_, remainder, width);
  }

  // The limbs that hold the magnitude of every quotient so far.
  i64 quotient_limbs() const { return most_; }

 private:
  bool is_negative(const u32* limbs, i64 count) const { return is_signed_ && limbs[count - 1] >> 31 != 0; }

  // The number, scaled as the divisor is, and zeros above. There is one word at least above both.
  void load(const u32* x, i64 limb_count, bool negative) {
    const i64 words = (limb_count + 1) / 2;
    x_.assign(std::max(padding_ + words, count_) + 1, 0);
    q_.assign(words + 2, 0);
    x_count_ = padding_ + load_magnitude(x, limb_count, negative, x_.data() + padding_) + 1;
    shift_left(x_.data(), x_count_, shift_);
  }

  void divide_magnitudes() {
    if (count_ == 0) return;
    for (i64 j = x_count_ - count_ - 1; j >= 0; --j) {
      u64* part = x_.data() + j;
      u64& top = part[count_];
      q_[j] = leading_.estimate_digit(top, part[count_ - 1], part[count_ - 2]);
      const u64 borrow = subtract_multiple_(part, d_.data(), count_, q_[j]);
      if (top < borrow) {  // the estimate is right or one too great
        --q_[j];
        add_to(d_.data(), count_, part);
      }
      top = 0;
    }
  }

  // From the quotient and the remainder of the magnitudes to those of numbers of different signs, where the
  // floor is further from 0 unless the remainder is 0.
  void round_away() {
    if (std::all_of(x_.begin(), x_.begin() + count_, [](u64 word) { return word == 0; })) return;
    for (i64 i = 0; ++q_[i] == 0; ++i) {
    }
    subtract_from(d_.data(), count_, x_.data());
  }

  static i64 used_words(const std::vector<u64>& words) {
    i64 used = static_cast<i64>(words.size()) - 1;
    while (used > 0 && words[used - 1] == 0) --used;
    return used;
  }

  SubtractMultiple subtract_multiple_;
  std::vector<u64> d_, x_, q_;
  LeadingWords leading_;
  i64 count_ = 0, padding_ = 0, x_count_ = 0, most_ = 0;  // words, but for the last, limbs
  u32 shift_ = 0;
  bool is_signed_ = false, negative_ = false;
};

}  // namespace rns
