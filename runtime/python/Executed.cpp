// Asks autograd's engine which nodes it goes on to. PyTorch's own function for that refuses leaves whose gradient
// torch.autograd.grad is asked for, and its exceptions, with the stack of the call in them, take longer than the
// gradients. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/python/Executed.h"

#include <dlfcn.h>
#include <memory>
#include <unordered_map>

namespace nb = nanobind;

namespace kpkg::python {
namespace {

/// PyTorch's GraphTask::ExecInfo: what a run of the engine knows of a node.
struct ExecInfo {
  bool needed = false;
  std::unique_ptr<char> captures; ///< null, or what torch.autograd.grad is to be given; never deleted here
};
using ExecInfos = std::unordered_map<void *, ExecInfo>;

/// PyTorch's THPCppFunction: an object of Python for a node of C++, to which it has a counted pointer.
struct NodeObject {
  PyObject_HEAD;
  void *node;
};

/// How PyTorch's engine can be asked without its function for Python. None of it is part of PyTorch's stable ABI: the
/// first answers are compared with those of that function.
struct Engine {
  const ExecInfos *(*infos)() = nullptr; ///< null where it cannot be asked so
  nb::handle willExecute, accumulates;   ///< torch._C's function; the type of leaves
};

Engine findEngine() {
  Engine engine;
  nb::module_ torch = nb::module_::import_("torch._C");
  engine.willExecute = nb::object(torch.attr("_will_engine_execute_node")).release();
  nb::object types = nb::getattr(torch, "_functions", nb::none());
  nb::object accumulates = types.is_none() ? nb::none() : nb::getattr(types, "AccumulateGrad", nb::none());
#ifdef __GLIBCXX__ // whose unordered_map PyTorch's is
  void *library = ::dlopen("libtorch_cpu.so", RTLD_NOW | RTLD_NOLOAD);
  if (library && PyType_Check(accumulates.ptr()) &&
      reinterpret_cast<PyTypeObject *>(accumulates.ptr())->tp_basicsize >= Py_ssize_t(sizeof(NodeObject)))
    engine.infos = reinterpret_cast<const ExecInfos *(*)()>(
        ::dlsym(library, "_ZN5torch8autograd32get_current_graph_task_exec_infoEv"));
#endif
  engine.accumulates = accumulates.release();
  return engine;
}

bool ask(const Engine &engine, nb::handle node) {
  PyObject *answer = PyObject_CallOneArg(engine.willExecute.ptr(), node.ptr());
  if (!answer) { // it refuses leaves whose gradient torch.autograd.grad is asked for
    if (!PyErr_ExceptionMatches(PyExc_RuntimeError))
      throw nb::python_error();
    PyErr_Clear();
    return true;
  }
  return nb::steal(answer).is(Py_True);
}

/// Answers for leaves that are still to be compared; negative once one was another. Under the GIL.
int unchecked = 8;

} // namespace

bool isExecuted(nb::handle node) {
  static const Engine engine = findEngine();
  if (!engine.infos || reinterpret_cast<PyObject *>(Py_TYPE(node.ptr())) != engine.accumulates.ptr() || unchecked < 0)
    return ask(engine, node);
  const ExecInfos *infos = engine.infos();
  bool found = true;
  if (infos && !infos->empty()) { // else the engine goes wherever edges lead
    auto entry = infos->find(reinterpret_cast<NodeObject *>(node.ptr())->node);
    found = entry != infos->end() && (entry->second.needed || entry->second.captures);
  }
  if (unchecked > 0) {
    bool expected = ask(engine, node);
    unchecked = expected == found ? unchecked - 1 : -1;
    return expected;
  }
  return found;
}

} // namespace kpkg::python
