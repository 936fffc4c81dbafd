// What each room shows to Python, a function a file.
#pragma once

#include <nanobind/nanobind.h>

namespace polyleaf {

void bind_sums(nanobind::module_& m);
void bind_packing(nanobind::module_& m);
void bind_table(nanobind::module_& m);
void bind_table_parts(nanobind::module_& m);
void bind_gradients(nanobind::module_& m);
void bind_growth(nanobind::module_& m);
void bind_kept_tree(nanobind::module_& m);
void bind_dense(nanobind::module_& m);
void bind_label_sparse(nanobind::module_& m);
void bind_label_hashed(nanobind::module_& m);
void bind_predict(nanobind::module_& m);
void bind_explain(nanobind::module_& m);
void bind_rules(nanobind::module_& m);

}  // namespace polyleaf
