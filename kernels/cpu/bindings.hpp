// One function for each subject; module.cpp calls them all.
#pragma once

#include "residues.hpp"

namespace rns {

void bind_arithmetic(nb::module_& module);
void bind_check(nb::module_& module);
void bind_checked_read(nb::module_& module);
void bind_compare(nb::module_& module);
void bind_convert(nb::module_& module);
void bind_convolution(nb::module_& module);
void bind_cramer(nb::module_& module);
void bind_crc32c(nb::module_& module);
void bind_decimal(nb::module_& module);
void bind_divide(nb::module_& module);
void bind_elimination(nb::module_& module);
void bind_fermat(nb::module_& module);
void bind_fermat_limbs(nb::module_& module);
void bind_fermat_fft(nb::module_& module);
void bind_fixed_point(nb::module_& module);
void bind_gpu_files(nb::module_& module);
void bind_int8_product(nb::module_& module);
void bind_interval(nb::module_& module);
void bind_keys(nb::module_& module);
void bind_matmul(nb::module_& module);
void bind_mixed_radix(nb::module_& module);
void bind_interval_rns(nb::module_& module);
void bind_ntt(nb::module_& module);
void bind_overlap_add(nb::module_& module);
void bind_polynomials(nb::module_& module);
void bind_positional(nb::module_& module);
void bind_positional_integers(nb::module_& module);
void bind_limbs(nb::module_& module);
void bind_python_ints(nb::module_& module);
void bind_recurrences(nb::module_& module);
void bind_reduce(nb::module_& module);
void bind_remainder(nb::module_& module);
void bind_scan(nb::module_& module);
void bind_small_polynomials(nb::module_& module);
void bind_sparse(nb::module_& module);
void bind_table_product(nb::module_& module);
void bind_text_format(nb::module_& module);
void bind_text_parse(nb::module_& module);
void bind_transpose(nb::module_& module);
void bind_wide_arithmetic(nb::module_& module);
void bind_wide_matmul(nb::module_& module);
void bind_wide_ntt(nb::module_& module);
void bind_wide_polynomials(nb::module_& module);
void bind_wide_residues(nb::module_& module);
void bind_digit_conversion(nb::module_& module);
void bind_digit_division(nb::module_& module);
void bind_digit_proof(nb::module_& module);
void bind_digit_remainder(nb::module_& module);

}  // namespace rns
