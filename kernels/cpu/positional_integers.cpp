// Positional numbers as integers of GMP, one number after another, where that is quicker than digits of many.
//
// GMP is the library that gmpy2 has loaded, found by its functions' names.
#include <dlfcn.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "bindings.hpp"
#include "number_runs.hpp"

namespace rns {

namespace {

// GMP's mpz_t, of words of 64 bits, the least significant first.
struct Integer {
  int room;
  int words;  // that are used, the last one not 0; below 0 of negative numbers
  u64* data;
};

// The functions of GMP that are used.
class Gmp {
 public:
  // Of a library that is loaded and needs GMP.
  explicit Gmp(const std::string& library) : library_(dlopen(library.c_str(), RTLD_LAZY | RTLD_NOLOAD)) {
    if (library_ == nullptr) throw std::runtime_error(library + " is not loaded");
    const int* word_bits;
    find(word_bits, "__gmp_bits_per_limb");
    if (*word_bits != 64) throw std::runtime_error("GMP's words must have 64 bits");
    find(init, "__gmpz_init");
    find(clear, "__gmpz_clear");
    find(sizeinbase, "__gmpz_sizeinbase");
    find(scan1, "__gmpz_scan1");
    find(add, "__gmpz_add");
    find(mul, "__gmpz_mul");
    find(fdiv_qr, "__gmpz_fdiv_qr");
    find(fdiv_r, "__gmpz_fdiv_r");
    find(gcd, "__gmpz_gcd");
    find(sqrt, "__gmpz_sqrt");
    find(powm, "__gmpz_powm");
    find(invert, "__gmpz_invert");
  }

  void (*init)(Integer*);
  void (*clear)(Integer*);
  std::size_t (*sizeinbase)(const Integer*, int);
  unsigned long (*scan1)(const Integer*, unsigned long);
  void (*add)(Integer*, const Integer*, const Integer*);
  void (*mul)(Integer*, const Integer*, const Integer*);
  void (*fdiv_qr)(Integer*, Integer*, const Integer*, const Integer*);
  void (*fdiv_r)(Integer*, const Integer*, const Integer*);
  void (*gcd)(Integer*, const Integer*, const Integer*);
  void (*sqrt)(Integer*, const Integer*);
  void (*powm)(Integer*, const Integer*, const Integer*, const Integer*);
  int (*invert)(Integer*, const Integer*, const Integer*);

 private:
  template <class Symbol>
  void find(Symbol& symbol, const char* name) {
    symbol = reinterpret_cast<Symbol>(dlsym(library_, name));
    if (symbol == nullptr)
      throw std::runtime_error(std::string("gmpy2 has no function ") + name +
                               " of GMP that others can call: it needs GMP as a shared library");
  }

  void* library_;
};

// The words of some numbers, one number after another: not a power of two apart, of which few fit the cache.
struct Words {
  i64 each, step;

  Words(i64 limbs, i64 numbers) : each((limbs + 1) / 2), step(each + 8), data_(step * numbers) {}
  u64* of(i64 number) { return data_.data() + number * step; }

 private:
  std::vector<u64> data_;
};

// operation(j) of numbers that are copied together: row by row, since rows may be a power of two apart.
template <class Operation>
inline void for_each(i64 width, Operation operation) {
  if (width == kRun) {
    for (i64 j = 0; j < kRun; ++j) operation(j);
  } else {
    for (i64 j = 0; j < width; ++j) operation(j);
  }
}

// Numbers of an operand, or one number for all.
class Operand {
 public:
  Operand(const Matrix32& array, i64 count, bool is_signed)
      : rows_(operand_rows(array, count)),
        is_signed_(is_signed),
        is_single_(rows_.count == 1),
        words_(limbs_of(rows_), std::min(rows_.count, kRun)) {
    numbers_.resize(kRun);
    if (is_single_) copy(0, 1);
  }

  void load(i64 first, i64 width) {
    if (!is_single_) copy(first, width);
  }
  const Integer* number(i64 j) const { return &numbers_[is_single_ ? 0 : j]; }
  // By 0, GMP would end the process.
  const Integer* divisor(i64 j) const {
    if (number(j)->words == 0) throw nb::value_error("a divisor must not be 0");
    return number(j);
  }

 private:
  // GMP counts words by an int, and ends the process where a product has too many.
  static i64 limbs_of(const Residues& rows) {
    require(rows.moduli < (i64{1} << 31) - 1, "an operand of GMP must have less than 2**31 - 1 limbs");
    return rows.moduli;
  }

  void copy(i64 first, i64 width) {
    for (i64 i = 0; i + 1 < rows_.moduli; i += 2) {
      const u32 *low = rows_.row(i) + first, *high = low + rows_.stride;
      u64* data = words_.of(0) + i / 2;
      for_each(width,
               [=, step = words_.step](i64 j) { data[j * step] = low[j] | static_cast<u64>(high[j]) << 32; });
    }
    for (i64 j = 0; rows_.moduli % 2 != 0 && j < width; ++j) {
      // Above the highest limb a number goes on by its sign.
      const u32 top = rows_.row(rows_.moduli - 1)[first + j], above = is_signed_ ? 0u - (top >> 31) : 0u;
      words_.of(j)[rows_.moduli / 2] = top | static_cast<u64>(above) << 32;
    }
    for (i64 j = 0; j < width; ++j) numbers_[j] = integer(words_.of(j));
  }

  // Of words in two's complement, which become the magnitude.
  Integer integer(u64* data) const {
    i64 used = words_.each;
    const bool is_negative = is_signed_ && data[used - 1] >> 63 != 0;
    for (i64 i = 0, carry = 1; is_negative && i < used; ++i) {
      data[i] = ~data[i] + carry;
      carry = carry && data[i] == 0;
    }
    while (used > 0 && data[used - 1] == 0) --used;
    return {0, static_cast<int>(is_negative ? -used : used), data};
  }

  Residues rows_;
  bool is_signed_, is_single_;
  Words words_;
  std::vector<Integer> numbers_;
};

// An integer, and numbers modulo 2^bits that it becomes one after another, in canonical form.
class Result {
 public:
  Result(const Gmp& gmp, const MutableMatrix32& out, i64 bits, bool is_signed, u8* flags = nullptr)
      : gmp_(gmp),
        out_(out.data()),
        limbs_(out.shape(0)),
        count_(out.shape(1)),
        bits_(bits),
        is_signed_(is_signed),
        flags_(flags),
        words_(limbs_, std::min(count_, kRun)) {
    require(bits > 0 && bits > 32 * (limbs_ - 1) && bits <= 32 * limbs_,
            "the result must have the limbs of its bits");
    gmp_.init(&value_);
  }
  Result(const Gmp& gmp, const MutableMatrix32& out) : Result(gmp, out, 32 * out.shape(0), false) {}
  Result(const Result&) = delete;
  Result& operator=(const Result&) = delete;
  ~Result() { gmp_.clear(&value_); }

  i64 count() const { return count_; }
  Integer* value() { return &value_; }

  // The value becomes number j of those that are stored together, from `first` on.
  void take(i64 first, i64 j) {
    u64* data = words_.of(j);
    const bool is_negative = value_.words < 0;
    const i64 used = std::min<i64>(std::abs(value_.words), words_.each);
    std::copy_n(value_.data, used, data);
    std::fill(data + used, data + words_.each, 0);
    for (i64 i = 0, carry = 1; is_negative && i < words_.each; ++i) {
      data[i] = ~data[i] + carry;
      carry = carry && data[i] == 0;
    }
    const i64 unused = 64 * words_.each - bits_;
    u64& top = data[words_.each - 1];
    top <<= unused;
    top = is_signed_ ? static_cast<u64>(static_cast<i64>(top) >> unused) : top >> unused;
    if (flags_ != nullptr) flags_[first + j] = !is_held();
  }

  void store(i64 first, i64 width) {
    for (i64 i = 0; i < limbs_; ++i) {
      u32* row = out_ + i * count_ + first;
      const u64* data = words_.of(0) + i / 2;
      for_each(width, [=, step = words_.step, shift = i % 2 * 32](i64 j) {
        row[j] = static_cast<u32>(data[j * step] >> shift);
      });
    }
  }

 private:
  bool is_held() const {
    const i64 length = value_.words == 0 ? 0 : static_cast<i64>(gmp_.sizeinbase(&value_, 2));
    const bool is_negative = value_.words < 0;
    if (!is_signed_) return !is_negative && length <= bits_;
    return length < bits_ ||
           (is_negative && length == bits_ && static_cast<i64>(gmp_.scan1(&value_, 0)) == bits_ - 1);
  }

  const Gmp& gmp_;
  u32* out_;
  i64 limbs_, count_, bits_;
  bool is_signed_;
  u8* flags_;
  Words words_;
  Integer value_;
};

// operation(index, j) for each number: number j of the operands gives the results' values.
template <class Operation>
void for_numbers(std::vector<Operand*> operands, std::vector<Result*> results, Operation operation) {
  nb::gil_scoped_release release;
  const i64 count = results[0]->count();
  for (i64 first = 0; first < count; first += kRun) {
    const i64 width = std::min(kRun, count - first);
    for (Operand* operand : operands) operand->load(first, width);
    for (i64 j = 0; j < width; ++j) {
      operation(first + j, j);
      for (Result* result : results) result->take(first, j);
    }
    for (Result* result : results) result->store(first, width);
  }
}

// x y + addend.
void multiply(const Gmp& gmp, const Matrix32& x, const Matrix32& y, const std::optional<Matrix32>& addend,
              i64 bits, bool is_signed, const MutableMatrix32& out, const std::optional<Vector8>& flags) {
  const i64 count = static_cast<i64>(out.shape(1));
  require(!flags || static_cast<i64>(flags->shape(0)) == count, "there must be a flag for each number");
  Result result(gmp, out, bits, is_signed, flags ? flags->data() : nullptr);
  Operand a(x, count, is_signed);
  std::optional<Operand> b, c;
  std::vector<Operand*> operands = {&a};
  if (!are_same(x, y)) operands.push_back(&b.emplace(y, count, is_signed));
  if (addend) operands.push_back(&c.emplace(*addend, count, is_signed));
  for_numbers(operands, {&result}, [&](i64, i64 j) {
    gmp.mul(result.value(), a.number(j), (b ? *b : a).number(j));
    if (c) gmp.add(result.value(), result.value(), c->number(j));
  });
}

void divide(const Gmp& gmp, const Matrix32& x, const Matrix32& y, bool is_signed,
            const MutableMatrix32& quotients, const MutableMatrix32& remainders) {
  require(quotients.shape(1) == remainders.shape(1), "quotients and remainders must be as many");
  const i64 count = static_cast<i64>(quotients.shape(1));
  Operand a(x, count, is_signed), b(y, count, is_signed);
  Result q(gmp, quotients), r(gmp, remainders);
  for_numbers({&a, &b}, {&q, &r},
              [&](i64, i64 j) { gmp.fdiv_qr(q.value(), r.value(), a.number(j), b.divisor(j)); });
}

void gcd(const Gmp& gmp, const Matrix32& x, const Matrix32& y, bool is_signed, const MutableMatrix32& out) {
  const i64 count = static_cast<i64>(out.shape(1));
  Operand a(x, count, is_signed), b(y, count, is_signed);
  Result result(gmp, out);
  for_numbers({&a, &b}, {&result}, [&](i64, i64 j) { gmp.gcd(result.value(), a.number(j), b.number(j)); });
}

void isqrt(const Gmp& gmp, const Matrix32& x, const MutableMatrix32& out) {
  Operand a(x, static_cast<i64>(out.shape(1)), false);
  Result result(gmp, out);
  for_numbers({&a}, {&result}, [&](i64, i64 j) { gmp.sqrt(result.value(), a.number(j)); });
}

void mod_multiply(const Gmp& gmp, const Matrix32& x, const Matrix32& y, const Matrix32& modulus,
                  const MutableMatrix32& out) {
  const i64 count = static_cast<i64>(out.shape(1));
  Operand a(x, count, false), m(modulus, count, false);
  std::optional<Operand> b;
  std::vector<Operand*> operands = {&a, &m};
  if (!are_same(x, y)) operands.push_back(&b.emplace(y, count, false));
  Result result(gmp, out);
  for_numbers(operands, {&result}, [&](i64, i64 j) {
    gmp.mul(result.value(), a.number(j), (b ? *b : a).number(j));
    gmp.fdiv_r(result.value(), result.value(), m.divisor(j));
  });
}

void mod_power(const Gmp& gmp, const Matrix32& x, const Matrix32& exponent, const Matrix32& modulus,
               const MutableMatrix32& out) {
  const i64 count = static_cast<i64>(out.shape(1));
  Operand a(x, count, false), e(exponent, count, false), m(modulus, count, false);
  Result result(gmp, out);
  for_numbers({&a, &e, &m}, {&result},
              [&](i64, i64 j) { gmp.powm(result.value(), a.number(j), e.number(j), m.divisor(j)); });
}

// The first column that has no inverse, or -1.
i64 invert(const Gmp& gmp, const Matrix32& x, const Matrix32& modulus, const MutableMatrix32& out) {
  const i64 count = static_cast<i64>(out.shape(1));
  Operand a(x, count, false), m(modulus, count, false);
  Result result(gmp, out);
  i64 found = -1;
  for_numbers({&a, &m}, {&result}, [&](i64 index, i64 j) {
    if (gmp.invert(result.value(), a.number(j), m.divisor(j)) == 0 && found < 0) found = index;
  });
  return found;
}

}  // namespace

void bind_positional_integers(nb::module_& module) {
  nb::class_<Gmp>(module, "Gmp")
      .def(nb::init<const std::string&>())
      .def("multiply", multiply, nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg(),
           nb::arg().none())
      .def("divmod", divide)
      .def("gcd", gcd)
      .def("isqrt", isqrt)
      .def("mod_multiply", mod_multiply)
      .def("mod_power", mod_power)
      .def("inverse", invert);
}

}  // namespace rns
