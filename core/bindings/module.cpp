// What Python sees of the core.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

#include "base/threads.hpp"
#include "bindings/rooms.hpp"
#include "kernels/dispatch.hpp"

namespace nb = nanobind;
using namespace nb::literals;

NB_MODULE(_core, m) {
  using namespace polyleaf;
  m.doc() = "The hot loops of polyleaf. Private: its functions change without notice.";
  nb::set_leak_warnings(false);
  bind_sums(m);
  bind_packing(m);
  bind_table(m);
  bind_table_parts(m);
  bind_gradients(m);
  bind_growth(m);
  bind_kept_tree(m);
  bind_dense(m);
  bind_label_sparse(m);
  bind_label_hashed(m);
  bind_predict(m);
  bind_explain(m);
  bind_rules(m);
  m.def("max_threads", &max_threads, "OpenMP's current limit.");
  m.def("kernels", [] { return std::string(kernels_in_use()); }, "The instruction set in use.");
  m.def("select_kernels", [](const std::string& name) { return select_kernels(name.c_str()); }, "name"_a);
}
