#include "bindings.h"
#include "spinney/common/check.h"
#include "spinney/common/crc32.h"
#include "spinney/common/dispatch.h"
#include "spinney/common/memory.h"
#include "spinney/common/parallel.h"

namespace nb = nanobind;

namespace spinney::bindings {

void bind_common(nb::module_& m) {
  common::check_instruction_set();
  m.attr("instruction_set") = common::instruction_set_name();
  m.def("get_num_threads", &common::get_num_threads);
  m.def("set_num_threads", &common::set_num_threads, nb::arg("n_threads"));
  m.def("available_cpus", &common::available_cpus);
  m.def("return_free_memory", &common::return_free_memory);
  m.def(
      "crc32",
      [](std::uint32_t sum,
         const nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>& bytes,
         int n_threads) {
        const std::span<const std::uint8_t> all(bytes.data(), bytes.size());
        const nb::gil_scoped_release release;
        return common::crc32(sum, all, n_threads);
      },
      nb::arg("sum"), nb::arg("bytes"), nb::arg("n_threads"));
  nb::register_exception_translator([](const std::exception_ptr& error, void*) {
    try {
      std::rethrow_exception(error);
    } catch (const common::InputError& e) {
      PyErr_SetString(PyExc_ValueError, e.what());
    } catch (const common::Interrupted&) {
      // The hook left the Python error (KeyboardInterrupt, or what a callback raised) in place.
      if (PyErr_Occurred() == nullptr) PyErr_SetNone(PyExc_KeyboardInterrupt);
    }
  });
}

}  // namespace spinney::bindings
