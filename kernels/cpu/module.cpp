// The extension module rnsdask._cpu: the kernels for NumPy arrays. Every kernel releases the GIL.
#include "bindings.hpp"

NB_MODULE(_cpu, module) {
  // What Python has not freed at its end, as where an error that ends it holds frames, is nobody's business.
  nanobind::set_leak_warnings(false);
  rns::bind_arithmetic(module);
  rns::bind_check(module);
  rns::bind_checked_read(module);
  rns::bind_compare(module);
  rns::bind_convert(module);
  rns::bind_convolution(module);
  rns::bind_cramer(module);
  rns::bind_crc32c(module);
  rns::bind_decimal(module);
  rns::bind_divide(module);
  rns::bind_elimination(module);
  rns::bind_fermat(module);
  rns::bind_fermat_limbs(module);
  rns::bind_fermat_fft(module);
  rns::bind_fixed_point(module);
  rns::bind_gpu_files(module);
  rns::bind_int8_product(module);
  rns::bind_interval(module);
  rns::bind_keys(module);
  rns::bind_matmul(module);
  rns::bind_mixed_radix(module);
  rns::bind_interval_rns(module);
  rns::bind_ntt(module);
  rns::bind_overlap_add(module);
  rns::bind_polynomials(module);
  rns::bind_positional(module);
  rns::bind_positional_integers(module);
  rns::bind_limbs(module);
  rns::bind_python_ints(module);
  rns::bind_recurrences(module);
  rns::bind_reduce(module);
  rns::bind_remainder(module);
  rns::bind_scan(module);
  rns::bind_small_polynomials(module);
  rns::bind_sparse(module);
  rns::bind_table_product(module);
  rns::bind_text_format(module);
  rns::bind_text_parse(module);
  rns::bind_transpose(module);
  rns::bind_wide_arithmetic(module);
  rns::bind_wide_matmul(module);
  rns::bind_wide_ntt(module);
  rns::bind_wide_polynomials(module);
  rns::bind_wide_residues(module);
  rns::bind_digit_conversion(module);
  rns::bind_digit_division(module);
  rns::bind_digit_proof(module);
  rns::bind_digit_remainder(module);
}
