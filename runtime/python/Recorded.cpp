// Saves the arguments of an op's backward op in autograd's node, and calls the backward op. The node is one of
// torch.autograd.Function. In Python, its two functions would take several times as long as the ops.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/python/Recorded.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace nb = nanobind;

namespace kpkg::python {
namespace {

/// Interned names of attributes of a node, and of kpkg's `Op`.
struct Names {
  PyObject *plan, *values, *toSave, *savedTensors, *needs, *nonDifferentiable, *materialize, *default_, *op, *torchForm,
      *save, *backward, *nextFunctions, *willExecute;
};
Names names;

nb::object own(PyObject *object) {
  if (!object)
    throw nb::python_error();
  return nb::steal(object);
}

void set(nb::handle object, PyObject *name, nb::handle value) {
  if (PyObject_SetAttr(object.ptr(), name, value.ptr()) != 0)
    throw nb::python_error();
}

nb::object get(nb::handle object, PyObject *name) { return own(PyObject_GetAttr(object.ptr(), name)); }

/// Builds a tuple from entries that are given in order.
class TupleBuilder {
public:
  explicit TupleBuilder(size_t size) : tuple(own(PyTuple_New(Py_ssize_t(size)))) {}
  void add(nb::handle value) { PyTuple_SET_ITEM(tuple.ptr(), next++, value.inc_ref().ptr()); }
  nb::object take() { return std::move(tuple); }

private:
  nb::object tuple;
  Py_ssize_t next = 0;
};

nb::object nones(size_t size) {
  TupleBuilder tuple(size);
  for (size_t i = 0; i < size; ++i)
    tuple.add(nb::none());
  return tuple.take();
}

/// Returns whether autograd's engine, which runs now, will execute `next`.
bool isExecuted(nb::handle next) {
  static const nb::handle willExecute =
      own(PyObject_GetAttr(nb::module_::import_("torch._C").ptr(), names.willExecute)).release();
  PyObject *answer = PyObject_CallOneArg(willExecute.ptr(), next.ptr());
  if (!answer) { // PyTorch refuses leaves whose gradient is asked of torch.autograd.grad
    if (!PyErr_ExceptionMatches(PyExc_RuntimeError))
      throw nb::python_error();
    PyErr_Clear();
    return true;
  }
  return own(answer).is(Py_True);
}

/// Returns whether KPKG_REQUIRE restricts the process to deterministic instances.
bool requiresDeterministic() {
  const char *flags = std::getenv("KPKG_REQUIRE");
  return flags && ("," + std::string(flags) + ",").find(",deterministic,") != std::string::npos;
}

/// Returns True if PyTorch or the environment wants deterministic gradients now, else False.
nb::object isDeterministic() {
  static const bool isRequired = requiresDeterministic(); // the runtime, too, reads the environment once
  if (isRequired)
    return nb::borrow(Py_True);
  static const nb::handle asked =
      nb::object(nb::module_::import_("torch").attr("are_deterministic_algorithms_enabled")).release();
  return own(PyObject_CallNoArgs(asked.ptr()));
}

/// Returns a tuple of bools: the inputs of `node` whose gradients this run of the backward asks for. PyTorch's
/// `needs_input_grad` is not enough. It names all inputs that require a gradient, even if torch.autograd.grad is called
/// for others only.
nb::object needed(nb::handle node) {
  nb::object needs = get(node, names.needs);
  Py_ssize_t count = PyTuple_GET_SIZE(needs.ptr()), required = 0;
  for (Py_ssize_t i = 0; i < count; ++i)
    required += PyTuple_GET_ITEM(needs.ptr(), i) == Py_True;
  if (required < 2) // the node only runs because its one gradient is asked for
    return needs;
  // Tensors that require no gradient have an edge to None. The other edges are in the order of the inputs.
  nb::object edges = get(node, names.nextFunctions);
  TupleBuilder found{size_t(count)};
  Py_ssize_t edge = 0;
  for (Py_ssize_t i = 0; i < count; ++i) {
    bool isNeeded = PyTuple_GET_ITEM(needs.ptr(), i) == Py_True;
    if (isNeeded) {
      PyObject *next = Py_None;
      for (; next == Py_None && edge < PyTuple_GET_SIZE(edges.ptr()); ++edge)
        next = PyTuple_GET_ITEM(PyTuple_GET_ITEM(edges.ptr(), edge), 0);
      isNeeded = next == Py_None || isExecuted(next);
    }
    found.add(isNeeded ? Py_True : Py_False);
  }
  return found.take();
}

/// The gradient that a package has for an op. It is immutable: nodes keep the plan of their call.
class GradientPlan {
public:
  /// `sources` says where each argument of the op `backward` comes from, as `Op.backward_arguments` does. `isTensor`
  /// and `defaults` describe the arguments of the recorded op.
  GradientPlan(nb::object backward, const std::vector<std::pair<std::string, int>> &sources, std::vector<bool> isTensor,
               nb::tuple defaults)
      : backwardOp(std::move(backward)), isTensor(std::move(isTensor)), defaults(std::move(defaults)) {
    for (const auto &[source, index] : sources) {
      if (source == "gradient") {
        steps.push_back({Gradient, index});
        ++differentiable;
      } else if (source == "needs")
        steps.push_back({Needs, index});
      else if (source == "deterministic")
        steps.push_back({Deterministic, index});
      else if (source == "result")
        steps.push_back({Result, index}), ++savedCount;
      else if (this->isTensor.at(size_t(index)))
        steps.push_back({TensorArgument, index}), ++savedCount;
      else
        steps.push_back({OtherArgument, index}), ++otherCount;
    }
  }

  /// Saves the arguments and results of the call that the backward needs in `node`. Trailing arguments may be missing:
  /// their defaults are saved.
  void save(nb::handle node, nb::handle arguments, nb::handle results) const {
    TupleBuilder saved(savedCount), others(otherCount);
    for (Step step : steps)
      if (step.source == Result)
        saved.add(PyTuple_GET_ITEM(results.ptr(), step.index));
      else if (step.source == TensorArgument)
        saved.add(argument(arguments, step.index));
      else if (step.source == OtherArgument)
        others.add(unchanging(argument(arguments, step.index)));
    set(node, names.toSave, saved.take());
    set(node, names.values, others.take());
    if (Py_ssize_t count = PyTuple_GET_SIZE(results.ptr()); count > differentiable) {
      nb::list rest;
      for (Py_ssize_t i = differentiable; i < count; ++i)
        if (nb::handle result = PyTuple_GET_ITEM(results.ptr(), i); !result.is_none())
          rest.append(result);
      set(node, names.nonDifferentiable, nb::tuple(rest));
    }
    if (differentiable == 1) // the backward reads no other gradient, so zeros for it would only cost time
      set(node, names.materialize, Py_False);
  }

  /// Returns the gradients of the node's inputs. The first input is no argument of the op.
  nb::object backward(nb::handle node, nb::handle gradients) const {
    nb::object needs = needed(node);
    auto inputCount = size_t(PyTuple_GET_SIZE(needs.ptr()));
    bool isNeeded = false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(gradients.ptr()); ++i)
      isNeeded |= PyTuple_GET_ITEM(gradients.ptr(), i) != Py_None;
    if (!isNeeded)
      return nones(inputCount);

    nb::object saved = get(node, names.savedTensors), others = get(node, names.values);
    TupleBuilder arguments(steps.size());
    Py_ssize_t nextSaved = 0, nextOther = 0;
    for (Step step : steps)
      switch (step.source) {
      case Gradient:
        arguments.add(PyTuple_GET_ITEM(gradients.ptr(), step.index));
        break;
      case Needs:
        arguments.add(neededInput(needs, step.index) ? Py_True : Py_False);
        break;
      case Deterministic:
        arguments.add(isDeterministic());
        break;
      case Result:
      case TensorArgument:
        arguments.add(PyTuple_GET_ITEM(saved.ptr(), nextSaved++));
        break;
      case OtherArgument:
        arguments.add(PyTuple_GET_ITEM(others.ptr(), nextOther++));
        break;
      }
    nb::object results = own(PyObject_CallObject(callable().ptr(), arguments.take().ptr()));

    TupleBuilder found(inputCount);
    found.add(nb::none());
    Py_ssize_t next = 0;
    for (size_t i = 0; i + 1 < inputCount; ++i) {
      nb::handle gradient = nb::none();
      if (isTensor[i]) {
        gradient = PyTuple_Check(results.ptr()) ? nb::handle(PyTuple_GET_ITEM(results.ptr(), next)) : results;
        ++next;
      }
      found.add(neededInput(needs, int(i)) ? gradient : nb::handle(Py_None));
    }
    return found.take();
  }

private:
  enum Source { Gradient, Needs, Deterministic, Result, TensorArgument, OtherArgument };
  struct Step {
    Source source;
    int index;
  };

  nb::handle argument(nb::handle given, int index) const {
    return PyTuple_GET_ITEM(index < PyTuple_GET_SIZE(given.ptr()) ? given.ptr() : defaults.ptr(), index);
  }

  /// Copies a list to a tuple, since the caller may change the list later.
  static nb::object unchanging(nb::handle value) {
    return PyList_CheckExact(value.ptr()) ? own(PyList_AsTuple(value.ptr())) : nb::borrow(value);
  }

  static bool neededInput(nb::handle needs, int argument) {
    return argument + 1 < PyTuple_GET_SIZE(needs.ptr()) && PyTuple_GET_ITEM(needs.ptr(), argument + 1) == Py_True;
  }

  /// Looks up the callable of the backward op anew: its library may have lost the public name since the last call.
  nb::object callable() const {
    nb::object overload = get(backwardOp, names.default_);
    if (overload.is_none())
      overload = own(PyObject_CallMethodOneArg(backwardOp.ptr(), names.torchForm, nb::dict().ptr()));
    return get(overload, names.op);
  }

  nb::object backwardOp;
  std::vector<bool> isTensor;
  nb::tuple defaults;
  std::vector<Step> steps;
  size_t savedCount = 0, otherCount = 0;
  int differentiable = 0;
};

/// The current plan of one op, for its new nodes: a GradientPlan or a Python object with the same two methods.
struct Recorder {
  nb::object plan;
};

nb::object packed(PyObject *const *values, Py_ssize_t count) {
  TupleBuilder tuple{size_t(count)};
  for (Py_ssize_t i = 0; i < count; ++i)
    tuple.add(values[i]);
  return tuple.take();
}

/// Calls `function`, and converts a C++ exception to a Python exception and null, as a C function has to.
template <typename Function> PyObject *guarded(Function function) {
  try {
    return function().release().ptr();
  } catch (nb::python_error &error) {
    error.restore();
  } catch (const std::exception &error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

/// Implements forward(node, run, *arguments): returns the results of run(*arguments).
PyObject *forward(PyObject *self, PyObject *const *values, Py_ssize_t count) {
  return guarded([&] {
    if (count < 2)
      throw nb::type_error("forward(node, run, *arguments)");
    nb::object results = own(PyObject_Vectorcall(values[1], values + 2, size_t(count - 2), nullptr));
    nb::object plan = nb::inst_ptr<Recorder>(self)->plan;
    nb::object arguments = packed(values + 2, count - 2);
    PyObject *single = results.ptr();
    nb::object all = PyTuple_Check(single) ? results : packed(&single, 1);
    set(values[0], names.plan, plan);
    if (nb::isinstance<GradientPlan>(plan))
      nb::inst_ptr<GradientPlan>(plan)->save(values[0], arguments, all);
    else
      own(PyObject_CallMethodObjArgs(plan.ptr(), names.save, values[0], arguments.ptr(), all.ptr(), nullptr));
    return results;
  });
}

/// Implements backward(node, *gradients): returns the gradients of the node's inputs.
PyObject *backward(PyObject *, PyObject *const *values, Py_ssize_t count) {
  return guarded([&] {
    if (count < 1)
      throw nb::type_error("backward(node, *gradients)");
    nb::object plan = get(values[0], names.plan);
    nb::object gradients = packed(values + 1, count - 1);
    if (nb::isinstance<GradientPlan>(plan))
      return nb::inst_ptr<GradientPlan>(plan)->backward(values[0], gradients);
    return own(PyObject_CallMethodObjArgs(plan.ptr(), names.backward, values[0], gradients.ptr(), nullptr));
  });
}

PyMethodDef forwardDefinition = {"forward", reinterpret_cast<PyCFunction>(reinterpret_cast<void *>(forward)),
                                 METH_FASTCALL, nullptr};
PyMethodDef backwardDefinition = {"backward", reinterpret_cast<PyCFunction>(reinterpret_cast<void *>(backward)),
                                  METH_FASTCALL, nullptr};

} // namespace

void defineRecorded(nb::module_ &module) {
  auto intern = [](const char *text) { return PyUnicode_InternFromString(text); };
  names = {intern("plan"),
           intern("values"),
           intern("to_save"),
           intern("saved_tensors"),
           intern("needs_input_grad"),
           intern("non_differentiable"),
           intern("materialize_grads"),
           intern("_default"),
           intern("_op"),
           intern("_torch_form"),
           intern("save"),
           intern("backward"),
           intern("next_functions"),
           intern("_will_engine_execute_node")};
  module.def("needed", needed, nb::arg("node"));
  nb::class_<GradientPlan>(module, "GradientPlan")
      .def(nb::init<nb::object, const std::vector<std::pair<std::string, int>> &, std::vector<bool>, nb::tuple>(),
           nb::arg("backward"), nb::arg("sources"), nb::arg("is_tensor"), nb::arg("defaults"));
  nb::class_<Recorder>(module, "Recorder")
      .def(nb::init<>())
      .def_rw("plan", &Recorder::plan, nb::arg().none())
      .def_prop_ro("forward", [](nb::handle self) { return own(PyCFunction_New(&forwardDefinition, self.ptr())); })
      .def_prop_ro_static("backward", [](nb::handle) { return own(PyCFunction_New(&backwardDefinition, nullptr)); })
      .def_prop_ro_static("apply", [](nb::handle) {
        nb::object function = own(PyCFunction_New(&backwardDefinition, nullptr));
        return own(PyInstanceMethod_New(function.ptr()));
      });
}

} // namespace kpkg::python
