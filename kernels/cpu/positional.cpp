// Products, quotients, and products and powers by odd moduli, of arrays of positional numbers.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "bindings.hpp"
#include "number_runs.hpp"
#include "positional_digits.hpp"

namespace rns {

namespace {

// Limbs of a run: calls for so few would take longer than copies.
inline void copy_run(const u32* from, i64 width, u32* to) {
  if (width == kRun) {
    std::memcpy(to, from, kRun * sizeof(u32));
  } else {
    std::copy_n(from, width, to);
  }
}

// A run of the numbers of an operand, or one number for all.
class Run {
 public:
  Run() = default;
  Run(const Matrix32& array, i64 count) {
    const Residues rows = operand_rows(array, count);
    data_ = rows.data, limbs_ = rows.moduli, row_ = rows.stride, is_single_ = rows.count == 1;
    copy_.resize(limbs_ * kRun);
    for (i64 i = 0; is_single_ && i < limbs_; ++i) std::fill_n(&copy_[i * kRun], kRun, data_[i * row_]);
  }

  bool is_single() const { return is_single_; }
  void load(i64 first, i64 width) {
    for (i64 i = 0; !is_single_ && i < limbs_; ++i)
      copy_run(data_ + i * row_ + first, width, &copy_[i * kRun]);
  }
  // Numbers after those of the run are what was there before, 0 at first.
  LimbRows tile(i64 start) const { return {copy_.data() + start, limbs_, kRun}; }

 private:
  const u32* data_ = nullptr;
  i64 limbs_ = 0, row_ = 0;
  bool is_single_ = true;
  std::vector<u32> copy_;
};

// operation(first, start, result) for each tile of each run; the results are copied to `out`.
template <class Operation>
void for_tiles(i64 lanes, std::vector<Run*> operands, const MutableMatrix32& out, i64 bits, bool is_signed,
               Operation operation) {
  const i64 limbs = static_cast<i64>(out.shape(0)), count = static_cast<i64>(out.shape(1));
  std::vector<u32> results(limbs * kRun);
  for (i64 first = 0; first < count; first += kRun) {
    const i64 width = std::min(kRun, count - first);
    for (Run* operand : operands) operand->load(first, width);
    for (i64 start = 0; start < width; start += lanes)
      operation(first, start, LimbResult{&results[start], limbs, kRun, bits, is_signed});
    for (i64 i = 0; i < limbs; ++i) copy_run(&results[i * kRun], width, out.data() + i * count + first);
  }
}

// From how many digits on operands are halved.
i64 least_halved_digits(const PositionalLoops& loops, const std::string& algorithm) {
  if (algorithm == "schoolbook") return i64{1} << 62;
  if (algorithm == "karatsuba") return 2 * kDigitTile;
  require(algorithm == "best", "an algorithm is 'best', 'schoolbook' or 'karatsuba'");
  return loops.least_halved_digits;
}

void multiply(const Matrix32& x, const Matrix32& y, const std::optional<Matrix32>& addend, i64 bits,
              bool is_signed, const MutableMatrix32& out, const std::optional<Vector8>& flags,
              const std::string& level, const std::string& algorithm) {
  const i64 count = static_cast<i64>(out.shape(1));
  require(bits > 32 * (static_cast<i64>(out.shape(0)) - 1) && bits <= 32 * static_cast<i64>(out.shape(0)),
          "the result must have the limbs of its bits");
  require(!flags || static_cast<i64>(flags->shape(0)) == count, "there must be a flag for each number");
  const PositionalLoops& loops = positional_loops(level);
  const i64 least = least_halved_digits(loops, algorithm);
  const bool is_square = are_same(x, y);
  Run a(x, count), b = is_square ? Run() : Run(y, count), c = addend ? Run(*addend, count) : Run();
  nb::gil_scoped_release release;
  PositionalScratch scratch;
  for_tiles(loops.lanes, {&a, &b, &c}, out, bits, is_signed,
            [&](i64 first, i64 start, const LimbResult& result) {
              u8 lost[kMostLanes];
              loops.multiply(a.tile(start), is_square ? a.tile(start) : b.tile(start), c.tile(start), result,
                             least, flags ? lost : nullptr, scratch);
              const i64 lanes = std::min(loops.lanes, count - first - start);
              if (flags) std::copy_n(lost, lanes, flags->data() + first + start);
            });
}

// Divisors, of which one for all is loaded once.
class Divisors {
 public:
  Divisors(const Matrix32& divisor, i64 count, bool is_signed, const PositionalLoops& loops)
      : divisor_(divisor, count), is_signed_(is_signed), loops_(loops) {}

  Run& run() { return divisor_; }
  const DivisorTile& at(i64 start, PositionalScratch& scratch) {
    if (!is_loaded_ || !divisor_.is_single())
      loops_.load_divisor(divisor_.tile(start), is_signed_, tile_, scratch);
    is_loaded_ = true;
    return tile_;
  }

 private:
  Run divisor_;
  bool is_signed_;
  const PositionalLoops& loops_;
  DivisorTile tile_;
  bool is_loaded_ = false;
};

void divide(const Matrix32& x, const Matrix32& divisor, bool is_signed, const MutableMatrix32& quotient,
            const MutableMatrix32& remainder, const std::string& level) {
  const i64 count = static_cast<i64>(remainder.shape(1)), limbs = static_cast<i64>(quotient.shape(0));
  require(quotient.shape(1) == remainder.shape(1), "quotients and remainders must be as many");
  require(limbs >= static_cast<i64>(x.shape(0)) + is_signed && remainder.shape(0) == divisor.shape(0),
          "the results need the limbs of the operands");
  const PositionalLoops& loops = positional_loops(level);
  Run a(x, count);
  Divisors divisors(divisor, count, is_signed, loops);
  nb::gil_scoped_release release;
  PositionalScratch scratch;
  std::vector<u32> quotients(limbs * kRun);
  // Runs of quotients are copied after the last tile of each.
  for_tiles(loops.lanes, {&a, &divisors.run()}, remainder, 32 * remainder.shape(0), is_signed,
            [&](i64 first, i64 start, const LimbResult& result) {
              const LimbResult q = {&quotients[start], limbs, kRun, 32 * limbs, is_signed};
              loops.divide(divisors.at(start, scratch), a.tile(start), is_signed, q, result, scratch);
              const i64 width = std::min(kRun, count - first);
              for (i64 i = 0; start + loops.lanes >= width && i < limbs; ++i)
                copy_run(&quotients[i * kRun], width, quotient.data() + i * count + first);
            });
}

void mod_multiply(const Matrix32& x, const Matrix32& y, const Matrix32& modulus, const MutableMatrix32& out,
                  const std::string& level) {
  require(out.shape(0) == modulus.shape(0), "the result must have the limbs of the modulus");
  const i64 count = static_cast<i64>(out.shape(1));
  const PositionalLoops& loops = positional_loops(level);
  const bool is_square = are_same(x, y);
  Run a(x, count), b = is_square ? Run() : Run(y, count);
  Divisors divisors(modulus, count, false, loops);
  nb::gil_scoped_release release;
  PositionalScratch scratch;
  for_tiles(loops.lanes, {&a, &b, &divisors.run()}, out, 32 * out.shape(0), false,
            [&](i64, i64 start, const LimbResult& result) {
              const LimbRows first = a.tile(start);
              loops.mod_multiply(divisors.at(start, scratch), first, is_square ? first : b.tile(start),
                                 result, scratch);
            });
}

void check_modular(const Matrix32& x, const Matrix32& modulus, const MutableMatrix32& out) {
  require(x.shape(0) <= modulus.shape(0), "an operand must not have more limbs than the modulus");
  require(out.shape(0) == modulus.shape(0), "the result must have the limbs of the modulus");
}

bool add_modular(const Matrix32& x, const Matrix32& y, const Matrix32& modulus, bool subtract,
                 const MutableMatrix32& out, const std::string& level) {
  check_modular(x, modulus, out);
  check_modular(y, modulus, out);
  const i64 count = static_cast<i64>(out.shape(1));
  const ModularSums& loops = modular_sums(level);
  Run a(x, count), b(y, count), m(modulus, count);
  nb::gil_scoped_release release;
  PositionalScratch scratch;
  bool are_reduced = true;
  for_tiles(loops.lanes, {&a, &b, &m}, out, 32 * out.shape(0), false,
            [&](i64 first, i64 start, const LimbResult& result) {
              const i64 lanes = std::min(loops.lanes, count - first - start);
              are_reduced &= loops.add_modular(a.tile(start), b.tile(start), m.tile(start), subtract, lanes,
                                               result, scratch);
            });
  return are_reduced;
}

// The first column that has no inverse, or -1.
i64 invert(const Matrix32& x, const Matrix32& modulus, const MutableMatrix32& out, const std::string& level) {
  check_modular(x, modulus, out);
  const i64 count = static_cast<i64>(out.shape(1));
  const PositionalLoops& loops = positional_loops(level);
  Run a(x, count), m(modulus, count);
  nb::gil_scoped_release release;
  PositionalScratch scratch;
  i64 found = -1;
  for_tiles(loops.lanes, {&a, &m}, out, 32 * out.shape(0), false,
            [&](i64 first, i64 start, const LimbResult& result) {
              u8 has_none[kMostLanes];
              loops.invert(a.tile(start), m.tile(start), result, has_none, scratch);
              for (i64 j = std::min(loops.lanes, count - first - start) - 1; j >= 0; --j) {
                if (has_none[j] != 0 && (found < 0 || found >= first + start)) found = first + start + j;
              }
            });
  return found;
}

// Moduli, and the squares of R modulo them; one for all is loaded once.
class Moduli {
 public:
  Moduli(const Matrix32& modulus, const Matrix32& square, i64 count, const PositionalLoops& loops)
      : modulus_(modulus, count), square_(square, count), loops_(loops) {
    require(modulus.shape(0) == square.shape(0), "moduli and squares must have the same limbs");
    require(32 * modulus.shape(0) <= kMostMontgomeryBits, "the moduli are too long");
  }

  std::vector<Run*> runs() { return {&modulus_, &square_}; }
  const MontgomeryTile& at(i64 start) {
    if (!is_loaded_ || !modulus_.is_single())
      loops_.load_montgomery(modulus_.tile(start), square_.tile(start), tile_);
    is_loaded_ = true;
    return tile_;
  }

 private:
  // A sum of products of 1000 digits of 52 bits fits 64 bits.
  static constexpr size_t kMostMontgomeryBits = 52000;

  Run modulus_, square_;
  const PositionalLoops& loops_;
  MontgomeryTile tile_;
  bool is_loaded_ = false;
};

void montgomery_multiply(const Matrix32& x, const Matrix32& y, const Matrix32& modulus,
                         const Matrix32& square, const MutableMatrix32& out, const std::string& level) {
  check_modular(x, modulus, out);
  check_modular(y, modulus, out);
  const i64 count = static_cast<i64>(out.shape(1));
  const PositionalLoops& loops = positional_loops(level);
  const bool is_square = are_same(x, y);
  Run a(x, count), b = is_square ? Run() : Run(y, count);
  Moduli moduli(modulus, square, count, loops);
  std::vector<Run*> runs = moduli.runs();
  runs.insert(runs.end(), {&a, &b});
  nb::gil_scoped_release release;
  PositionalScratch scratch;
  for_tiles(loops.lanes, runs, out, 32 * out.shape(0), false, [&](i64, i64 start, const LimbResult& result) {
    const LimbRows first = a.tile(start);
    loops.montgomery_multiply(moduli.at(start), first, is_square ? first : b.tile(start), result, scratch);
  });
}

void montgomery_power(const Matrix32& x, const Matrix32& exponent, i64 bits, const Matrix32& modulus,
                      const Matrix32& square, int window, const MutableMatrix32& out,
                      const std::string& level) {
  check_modular(x, modulus, out);
  require(bits >= 0 && bits <= 32 * static_cast<i64>(exponent.shape(0)),
          "exponents have the limbs of their bits");
  require(window >= 1 && window <= 8, "a window has from 1 to 8 bits");
  const i64 count = static_cast<i64>(out.shape(1));
  const PositionalLoops& loops = positional_loops(level);
  Run a(x, count), e(exponent, count);
  Moduli moduli(modulus, square, count, loops);
  std::vector<Run*> runs = moduli.runs();
  runs.insert(runs.end(), {&a, &e});
  nb::gil_scoped_release release;
  PositionalScratch scratch;
  for_tiles(loops.lanes, runs, out, 32 * out.shape(0), false, [&](i64, i64 start, const LimbResult& result) {
    loops.montgomery_power(moduli.at(start), a.tile(start), e.tile(start), bits, window, result, scratch);
  });
}

}  // namespace

void bind_positional(nb::module_& module) {
  module.def("positional_multiply", multiply, nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg(),
             nb::arg(), nb::arg().none(), nb::arg(), nb::arg());
  module.def("positional_mod_add", add_modular);
  module.def("montgomery_multiply", montgomery_multiply);
  module.def("montgomery_power", montgomery_power);
  module.def("positional_divmod", divide);
  module.def("positional_mod_multiply", mod_multiply);
  module.def("positional_inverse", invert);
  module.def("montgomery_bits", [](i64 limbs, const std::string& level) {
    const PositionalLoops& loops = positional_loops(level);
    return loops.digit_bits * loops.montgomery_digits(limbs);
  });
  module.def("positional_levels", positional_levels);
}

}  // namespace rns
