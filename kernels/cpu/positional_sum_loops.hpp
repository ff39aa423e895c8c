// Limbs of positional numbers, and sums modulo others, for one level of instructions: included in a namespace
// that has RNS_LEVEL, RNS_LEVEL_INLINE, Lanes, SignedLanes, kLanes, lanes_of, load_limbs and store_limbs. No
// guard: it is included once for each level.

// Limb i, or 0 above the number.
RNS_LEVEL_INLINE void limb_or_zero(const LimbRows& x, i64 i, Lanes& limb) {
  limb = Lanes{};
  if (i < x.limbs) load_limbs(x.row(i), limb);
}

// Limb i of numbers in any limbs, with what is above them.
RNS_LEVEL_INLINE void extended_limb(const LimbRows& x, i64 i, bool is_signed, Lanes& limb) {
  if (i < x.limbs) {
    load_limbs(x.row(i), limb);
  } else {
    limb = Lanes{};
    if (is_signed && x.limbs > 0) {
      load_limbs(x.row(x.limbs - 1), limb);
      limb = (limb >> 31) * kLimbMask;
    }
  }
}

// Adds with a carry, or a borrow of -1, to what is carried.
RNS_LEVEL_INLINE void pass_on(Lanes& sum, Lanes& carried) {
  sum += carried;
  carried = (Lanes)((SignedLanes)sum >> 32);
  sum &= kLimbMask;
}

RNS_LEVEL bool add_modular(const LimbRows& x, const LimbRows& y, const LimbRows& modulus, bool subtract,
                           i64 lanes, const LimbResult& out, PositionalScratch& scratch) {
  scratch.x.resize(out.limbs);
  scratch.y.resize(out.limbs);
  Lanes *sums = lanes_of(scratch.x), *others = lanes_of(scratch.y);
  Lanes carried = {}, other_carried = {}, x_borrow = {}, y_borrow = {};
  for (i64 i = 0; i < out.limbs; ++i) {
    Lanes a, b, m;
    extended_limb(x, i, false, a);
    extended_limb(y, i, false, b);
    extended_limb(modulus, i, false, m);
    sums[i] = subtract ? a - b : a + b;
    pass_on(sums[i], carried);
    others[i] = subtract ? sums[i] + m : sums[i] - m;
    pass_on(others[i], other_carried);
    a -= m;
    pass_on(a, x_borrow);
    b -= m;
    pass_on(b, y_borrow);
  }
  // A sum is too great unless it is below the modulus, a difference if it is negative.
  const Lanes is_other = subtract ? carried : ~(carried + other_carried);
  const Lanes take = (Lanes)((SignedLanes)is_other >> 63);
  for (i64 i = 0; i < out.limbs; ++i) store_limbs((others[i] & take) | (sums[i] & ~take), out.row(i));
  bool are_reduced = true;
  for (i64 j = 0; j < lanes; ++j) are_reduced = are_reduced && (x_borrow[j] & y_borrow[j]) != 0;
  return are_reduced;
}

constexpr ModularSums kModularSums = {kLanes, add_modular};
