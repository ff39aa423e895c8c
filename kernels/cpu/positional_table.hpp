// The loops of one level of instructions: included after all of them.

constexpr PositionalLoops kLoops = {
    kLanes,       kDigitBits,      kLeastHalvedDigits,  montgomery_digits,
    multiply,     load_montgomery, montgomery_multiply, montgomery_power,
    load_divisor, divide,          mod_multiply,        invert,
};
