// Transforms of a tile of columns by a block of threads, which exchange values through shared memory.
//
// Stockham's order: a stage transforms the highest bits of the index that are left, in registers, and makes
// them the highest of those that are done. So both ends are in natural order and nothing is reversed.
//
// With x^half = r^(2 k + 1) for a root r of order 4 half, of N = 2 half values, decimation in time finds
// those of a polynomial at the odd powers of a root of order 2N: the negacyclic transform. Decimation in
// frequency by the same factors multiplies the values of a cyclic transform by powers of that root: the
// inverse one. With x^half = w^k, for w of order 2 half, both are the cyclic transform.
#pragma once

#include <rns/ntt.cuh>
#include <rns/wide_ntt.cuh>

#include "grid.cuh"

namespace rns {

// A power of a root of unity of the table at 8 or 16 bytes a factor, through the cache for what is only read.
__device__ inline Factor load_factor(const Factor* table, i64 k) {
  const uint2 pair = __ldg(reinterpret_cast<const uint2*>(table) + k);
  return {pair.x, pair.y};
}
__device__ inline WideFactor load_factor(const WideFactor* table, i64 k) {
  const ulonglong2 pair = __ldg(reinterpret_cast<const ulonglong2*>(table) + k);
  return {pair.x, pair.y};
}

// A factor that shared memory holds, by one access.
__device__ inline Factor shared_factor(const Factor* w) {
  const uint2 pair = *reinterpret_cast<const uint2*>(w);
  return {pair.x, pair.y};
}
__device__ inline WideFactor shared_factor(const WideFactor* w) {
  const ulonglong2 pair = *reinterpret_cast<const ulonglong2*>(w);
  return {pair.x, pair.y};
}

// What is transformed, by decimation in frequency unless a name says otherwise: as it is; with values times
// the powers of a root after; with coefficients times these before.
enum class Kind { kCyclic, kCyclicInTime, kTwistedAfter, kTwistedInTime };

// 2^kLogLength rows of 2^kLogColumns columns, of which each thread has 2^kLogValues values: element r of
// column c is number (r << kLogColumns) + c, and thread t's value m is number t + m kThreads. In a `kTurned`
// tile values are first those of column t / kGroup instead, elements t % kGroup + m kGroup.
template <class F, i32 kLogLength, i32 kLogColumns, i32 kLogValues, bool kTurned, Kind kKind = Kind::kCyclic>
struct Tile {
  typedef typename F::Word Word;
  typedef typename F::Pair Pair;
  static constexpr i32 kValues = 1 << kLogValues;
  static constexpr i32 kLogGroup = kLogLength - kLogValues;
  static constexpr i32 kGroup = 1 << kLogGroup;
  static constexpr i32 kLogThreads = kLogGroup + kLogColumns;
  static constexpr i32 kThreads = 1 << kLogThreads;
  static constexpr bool kOneStage = kLogGroup == 0;
  static constexpr bool kInTime = kKind == Kind::kCyclicInTime || kKind == Kind::kTwistedInTime;
  static constexpr bool kTwisted = kKind == Kind::kTwistedAfter || kKind == Kind::kTwistedInTime;

  // What the numbers of shared words are spread by, so that the first exchange writes to different banks: in
  // a turned tile threads of a warp may be of several columns. The banks hold 32 words of 4 bytes or 16 of 8.
  static constexpr i32 kLogBanks = sizeof(Word) == 4 ? 5 : 4;
  static constexpr i32 kBits = kLogColumns + kLogValues;
  static constexpr i32 kPadShift = kBits < kLogBanks ? kLogBanks : kBits;
  static constexpr i32 kLogApart = kLogGroup < kLogBanks ? kLogBanks - kLogGroup : 0;
  static constexpr i32 kPadStep = 1 << (kTurned && kLogApart < kLogColumns ? kLogApart : kLogColumns);
  static constexpr RNS_INLINE i32 padded(i32 number) { return number + (number >> kPadShift) * kPadStep; }
  static constexpr i32 kWords = kOneStage ? 0 : padded((1 << (kLogLength + kLogColumns)) - 1) + 1;

  // Up to 5 bits. With a loop, which compilers do not unroll here, registers would be indexed by comparisons.
  static constexpr RNS_INLINE i32 reversed(i32 k, i32 bits) {
    return ((k & 1) << 4 | (k & 2) << 2 | (k & 4) | (k & 8) >> 2 | (k & 16) >> 4) >> (5 - bits);
  }

  static __device__ void synchronise() {
    if constexpr (kThreads <= 32) {
      __syncwarp();
    } else {
      __syncthreads();
    }
  }

  // Levels of butterflies between values of one thread by decimation in frequency. Of kDone bits of the
  // numbers that are done, the rest is k 2^kLogRest + t, and roots[half + k] is the power k of a root of
  // order 2 half, or 2 k + 1 of one of order 4 half.
  template <i32 kDone, i32 kStage, i32 kLogRest>
  static __device__ void merge_values(Word (&x)[kValues], i32 thread, const Pair* roots, Word last) {
    constexpr i32 kSets = kValues >> kStage;
    const Pair* of_thread = roots + (kLogRest == 0 ? 0 : thread >> kDone);
#pragma unroll
    for (i32 level = kStage - 1; level >= 0; --level) {
      const i32 half = 1 << level;
#pragma unroll
      for (i32 pair = 0; pair < kValues / 2; ++pair) {
        const i32 set = pair % kSets, k = pair / kSets % half, group = pair / kSets / half;
        const i32 first = 2 * half * group + k;
        Word &a = x[set + kSets * first], &b = x[set + kSets * (first + half)];
        if (!kTwisted && kLogRest == 0 && k == 0) {
          F::butterfly(a, b, last);
        } else {
          const i32 t = kLogRest == 0 ? 0 : (set << kLogThreads) >> kDone;
          F::butterfly(a, b, load_factor(of_thread, ((half + k) << kLogRest) + t), last);
        }
      }
    }
  }

  // Values before a level are below so many p: 2 at first, and 2 more after each, or than half of the limit.
  static constexpr RNS_INLINE i32 bound(i32 level) {
    constexpr i32 kHalf = F::kLimit / 2, kRoom = kHalf - 1, kPeriod = kHalf > 2 ? kHalf / 2 : 1;
    return level <= kRoom ? 2 + 2 * level : kHalf + 2 + 2 * ((level - kRoom - 1) % kPeriod);
  }

  // The same by decimation in time, where the bits that are done are the number of a polynomial modulo x^half
  // - r, and roots[2^level + k] is the r of polynomial k. `kLow` leaves values below 4 p.
  template <i32 kDone, i32 kStage, bool kLow>
  static __device__ void split_values(Word (&x)[kValues], i32 thread, const Pair* roots, Word last) {
    constexpr i32 kSets = kValues >> kStage, kLevel = kDone - kLogColumns;
    const Pair* of_thread = roots + (kLevel == 0 ? 0 : (thread & ((1 << kDone) - 1)) >> kLogColumns);
#pragma unroll
    for (i32 level = 0; level < kStage; ++level) {
      const i32 half = 1 << (kStage - 1 - level), from = bound(kLevel + level);
      const i32 to = kLow && level == kStage - 1 ? 2 : from + 2 > F::kLimit ? F::kLimit / 2 : from;
#pragma unroll
      for (i32 pair = 0; pair < kValues / 2; ++pair) {
        const i32 set = pair % kSets, k = pair / kSets % half, group = pair / kSets / half;
        const i32 first = 2 * half * group + k;
        Word &a = x[set + kSets * first], &b = x[set + kSets * (first + half)];
        const i32 number = ((1 << level) + reversed(group, level)) << kLevel;
        if (!kTwisted && kLevel == 0 && group == 0) {
          if constexpr (F::kLimit > 1) {
            F::split(a, b, last, from, to);
          } else {
            F::butterfly(a, b, last);
          }
        } else {
          const Pair w = load_factor(of_thread, number + (set << kLogGroup));
          if constexpr (F::kLimit > 1) {
            F::split(a, b, w, last, from, to);
          } else {
            b = F::multiply_between(b, w, last);
            F::butterfly(a, b, last);
          }
        }
      }
    }
  }

  template <i32 kDone, i32 kStage, i32 kLogRest, bool kLow>
  static __device__ void transform_values(Word (&x)[kValues], i32 thread, const Pair* roots, Word last) {
    if constexpr (kInTime) {
      split_values<kDone, kStage, kLow && kLogRest == 0>(x, thread, roots, last);
    } else {
      merge_values<kDone, kStage, kLogRest>(x, thread, roots, last);
    }
    constexpr i32 kSets = kValues >> kStage;
    Word y[kValues];
#pragma unroll
    for (i32 m = 0; m < kValues; ++m) y[m] = x[m];
#pragma unroll
    for (i32 m = 0; m < kValues; ++m) x[m % kSets + kSets * reversed(m / kSets, kStage)] = y[m];
  }

  // From value k of each set, of done bits D and rest t, to number D + k 2^kDone + t 2^(kDone + kStage).
  static constexpr RNS_INLINE i32 place(i32 number, i32 done, i32 stage) {
    return (number & ((1 << done) - 1)) + ((number >> done) << (done + stage));
  }

  template <i32 kDone, i32 kStage>
  static __device__ void exchange(Word (&x)[kValues], i32 thread, i32 from, Word* shared) {
    constexpr i32 kSets = kValues >> kStage;
    synchronise();
    Word* target = shared + padded(place(from, kDone, kStage));
#pragma unroll
    for (i32 m = 0; m < kValues; ++m) {
      const i32 number = place((m % kSets) << kLogThreads, kDone, kStage) + ((m / kSets) << kDone);
      target[padded(number)] = x[m];
    }
    synchronise();
    const Word* source = shared + padded(thread);
#pragma unroll
    for (i32 m = 0; m < kValues; ++m) x[m] = source[padded(m << kLogThreads)];
  }

  // The stages that are left, of kLeft bits.
  template <i32 kDone, i32 kLeft, bool kLow>
  static __device__ void run_stages(Word (&x)[kValues], i32 thread, Word* shared, const Pair* roots,
                                    Word last) {
    constexpr i32 kStage = kLeft < kLogValues ? kLeft : kLogValues;
    constexpr i32 kLogRest = kLeft - kStage;
    i32 from = thread;  // column and element of the first value
    if constexpr (kTurned && kDone == kLogColumns)
      from = (thread >> kLogGroup) | ((thread & (kGroup - 1)) << kLogColumns);
    transform_values<kDone, kStage, kLogRest, kLow>(x, from, roots, last);
    if constexpr (kLogRest > 0) {
      exchange<kDone, kStage>(x, thread, from, shared);
      run_stages<kDone + kStage, kLogRest, kLow>(x, thread, shared, roots, last);
    }
  }

  // Transforms of the columns, to values that `F::multiply` takes, and with `kLow` `residue`; `shared` has
  // kWords for the tile, of threads that all come here.
  template <bool kLow = false>
  static __device__ void transform(Word (&x)[kValues], i32 thread, Word* shared, const Pair* roots,
                                   Word last) {
    run_stages<kLogColumns, kLogLength, kLow>(x, thread, shared, roots, last);
  }

  static RNS_INLINE Word residue(Word x, Word last) {
    if constexpr (kInTime && F::kLimit > 1) {
      return F::reduce(x, last, 4, 1);
    } else {
      return F::residue(x, last);
    }
  }

  // The same, to residues.
  static __device__ void transform_to_residues(Word (&x)[kValues], i32 thread, Word* shared,
                                               const Pair* roots, Word last) {
    transform<true>(x, thread, shared, roots, last);
#pragma unroll
    for (i32 m = 0; m < kValues; ++m) x[m] = residue(x[m], last);
  }

  // Elements of one column to the numbers whose bits are theirs reversed. In shared memory they are spread so
  // that threads, whose highest bits differ then, write to different banks.
  static __device__ void reverse(Word (&x)[kValues], i32 thread, Word* shared) {
    static_assert(kLogColumns == 0 && kLogValues <= 5, "one column");
    if constexpr (kOneStage) {
      Word y[kValues];
#pragma unroll
      for (i32 m = 0; m < kValues; ++m) y[m] = x[m];
#pragma unroll
      for (i32 m = 0; m < kValues; ++m) x[m] = y[reversed(m, kLogValues)];
    } else {
      constexpr i32 kSpread = kLogLength - 5 < kPadShift ? kPadShift : kLogLength - 5;
      const i32 first = static_cast<i32>(__brev(thread) >> (32 - kLogThreads)) << kLogValues;
      synchronise();
#pragma unroll
      for (i32 m = 0; m < kValues; ++m) {
        const i32 number = first + reversed(m, kLogValues);
        shared[number + (number >> kSpread)] = x[m];
      }
      synchronise();
#pragma unroll
      for (i32 m = 0; m < kValues; ++m) {
        const i32 number = thread + (m << kLogThreads);
        x[m] = shared[number + (number >> kSpread)];
      }
    }
  }
};

}  // namespace rns
