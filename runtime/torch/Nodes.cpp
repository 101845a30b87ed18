// Implements autograd nodes in C++ for ops whose package has their gradient.
//
// `kpkg._autograd` does the same with PyTorch's Python nodes; these avoid Python and its lock in backwards. PyTorch's
// stable ABI has no nodes. So this file needs PyTorch's headers and is built for one release, and the Python package
// loads it only with that release.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/torch/Direct.h"

#include <ATen/Context.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/grad_mode.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/csrc/utils/object_ptr.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <vector>

namespace torch::jit { // of pybind_utils.h, whose other contents take long to compile
c10::IValue toIValue(pybind11::handle object, const c10::TypePtr &type, std::optional<int32_t> size);
}

namespace kpkg::torch_nodes {
namespace {

using torch::autograd::Node;
using torch::autograd::SavedVariable;
using torch::autograd::variable_list;

/// Number of registrations with PyTorch, after which names may refer to other ops.
std::atomic<uint64_t> registrations{1};

THPObjectPtr own(PyObject *object) {
  if (!object)
    throw python_error();
  return THPObjectPtr(object);
}

at::Tensor tensorOf(PyObject *value) { return THPVariable_Check(value) ? THPVariable_Unpack(value) : at::Tensor(); }

/// Returns whether the process uses only deterministic instances. Read once, like in the runtime.
bool requiresDeterministic() {
  static const bool required = [] {
    const char *flags = std::getenv("KPKG_REQUIRE");
    return flags && ("," + std::string(flags) + ",").find(",deterministic,") != std::string::npos;
  }();
  return required;
}

enum class Source { Gradient, Needs, Deterministic, Result, TensorArgument, OtherArgument };
struct Step {
  Source source;
  int index;
};

/// A package's gradient of an op. Never destroyed.
class Plan {
public:
  /// Needs the GIL, like all members except `target`. Arguments are those of `kpkg._autograd._known`.
  Plan(PyObject *backwardOp, PyObject *sources, PyObject *tensors, PyObject *defaults)
      : backwardOp(Py_NewRef(backwardOp)), defaults(Py_NewRef(defaults)) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(tensors); ++i)
      edges.push_back(PyObject_IsTrue(PyList_GET_ITEM(tensors, i)) == 1 ? edgeCount++ : -1);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sources); ++i) {
      PyObject *pair = PyTuple_GET_ITEM(sources, i);
      std::string source = PyUnicode_AsUTF8(PyTuple_GET_ITEM(pair, 0));
      int index = int(PyLong_AsLong(PyTuple_GET_ITEM(pair, 1)));
      Source kind = source == "gradient"           ? Source::Gradient
                    : source == "needs"            ? Source::Needs
                    : source == "deterministic"    ? Source::Deterministic
                    : source == "result"           ? Source::Result
                    : edges.at(size_t(index)) >= 0 ? Source::TensorArgument
                                                   : Source::OtherArgument;
      steps.push_back({kind, index});
      differentiable += kind == Source::Gradient;
    }
  }

  /// Returns argument `index` of a call, borrowed. Trailing arguments may be missing.
  PyObject *argument(PyObject *const *given, Py_ssize_t count, int index) const {
    return index < count ? given[index] : PyTuple_GET_ITEM(defaults, index);
  }

  /// Returns the backward op as currently registered.
  const c10::OperatorHandle &target() {
    if (seen.load(std::memory_order_acquire) != registrations.load()) {
      pybind11::gil_scoped_acquire lock;
      resolve();
    }
    return *found.load();
  }

  const c10::TypePtr &typeOf(size_t step) { return target().schema().arguments()[step].type(); }

  std::vector<Step> steps;
  std::vector<int> edges; ///< by the op's arguments: the number among its tensors; negative for others
  int edgeCount = 0, differentiable = 0;

private:
  void resolve() {
    uint64_t now = registrations.load();
    THPObjectPtr overload = own(PyObject_GetAttrString(backwardOp, "_default"));
    if (overload.get() == Py_None) {
      THPObjectPtr none = own(PyDict_New());
      overload = own(PyObject_CallMethod(backwardOp, "_torch_form", "O", none.get()));
    }
    THPObjectPtr schema = own(PyObject_GetAttrString(overload, "_schema"));
    THPObjectPtr name = own(PyObject_GetAttrString(schema, "name"));
    found = new c10::OperatorHandle(c10::Dispatcher::singleton().findSchemaOrThrow(
        PyUnicode_AsUTF8(name), "")); // never destroyed: others may use the last one
    seen.store(now, std::memory_order_release);
  }

  PyObject *backwardOp, *defaults;
  std::atomic<const c10::OperatorHandle *> found{nullptr};
  std::atomic<uint64_t> seen{0};
};

/// One recorded call.
class RecordedNode : public Node {
public:
  explicit RecordedNode(Plan &plan) : plan(plan) {}

  std::string name() const override { return "RecordedBackward"; }

  void release_variables() override {
    std::lock_guard<std::mutex> hold(mutex_);
    for (SavedVariable &each : saved)
      each.reset_data();
  }

  /// Saves the inputs of the backward op. `results` have their history.
  void save(PyObject *const *arguments, Py_ssize_t count, PyObject *const *results) {
    for (size_t i = 0; i < plan.steps.size(); ++i) {
      auto [source, index] = plan.steps[i];
      if (source == Source::Result)
        saved.emplace_back(tensorOf(results[index]), index < plan.differentiable);
      else if (source == Source::TensorArgument)
        saved.emplace_back(tensorOf(plan.argument(arguments, count, index)), false);
      else if (source == Source::OtherArgument)
        others.push_back(torch::jit::toIValue(plan.argument(arguments, count, index), plan.typeOf(i), std::nullopt));
    }
  }

  variable_list apply(variable_list &&gradients) override {
    std::lock_guard<std::mutex> hold(mutex_);
    variable_list found(size_t(plan.edgeCount));
    if (std::none_of(gradients.begin(), gradients.end(), [](const at::Tensor &each) { return each.defined(); }))
      return found;
    std::vector<c10::IValue> stack;
    stack.reserve(plan.steps.size());
    size_t nextSaved = 0, nextOther = 0;
    auto isNeeded = [&](int edge) { return edge >= 0 && task_should_compute_output(size_t(edge)); };
    for (auto [source, index] : plan.steps)
      switch (source) {
      case Source::Gradient: // zeros for missing gradients of several results, like torch.autograd.Function
        stack.emplace_back(gradients[size_t(index)].defined() ? gradients[size_t(index)]
                                                              : input_metadata(size_t(index)).zeros_like());
        break;
      case Source::Needs:
        stack.emplace_back(isNeeded(plan.edges[size_t(index)]));
        break;
      case Source::Deterministic:
        stack.emplace_back(requiresDeterministic() || at::globalContext().deterministicAlgorithms());
        break;
      case Source::Result:
      case Source::TensorArgument: {
        at::Tensor tensor = saved[nextSaved++].unpack(getptr());
        stack.push_back(tensor.defined() ? c10::IValue(std::move(tensor)) : c10::IValue());
        break;
      }
      case Source::OtherArgument:
        stack.push_back(others[nextOther++]);
        break;
      }
    call(stack);
    size_t next = 0;
    for (int edge : plan.edges)
      if (edge >= 0) {
        const c10::IValue &gradient = stack.at(next++);
        if (gradient.isTensor() && isNeeded(edge))
          found[size_t(edge)] = gradient.toTensor();
      }
    return found;
  }

private:
  /// Calls below autograd's key, unless this backward is recorded itself, or transforms of torch.func must see it.
  void call(std::vector<c10::IValue> &stack) {
    const c10::OperatorHandle &target = plan.target();
    if (c10::GradMode::is_enabled() ||
        c10::impl::tls_is_dispatch_key_included(c10::DispatchKey::FuncTorchDynamicLayerFrontMode)) {
      target.callBoxed(&stack);
      return;
    }
    at::AutoDispatchBelowAutograd below;
    target.callBoxed(&stack);
  }

  Plan &plan;
  std::vector<SavedVariable> saved;
  std::vector<c10::IValue> others;
};

/// A template, because only some releases of PyTorch have the base class.
template <typename Base> auto makeNode(Plan &plan) {
  if constexpr (std::is_base_of_v<c10::intrusive_ptr_target, Base>) // since PyTorch 2.13
    return c10::make_intrusive<RecordedNode>(plan);
  else
    return std::shared_ptr<RecordedNode>(new RecordedNode(plan),
                                         [](auto *node) { deleteNode(static_cast<Base *>(node)); });
}

/// How calls of one op are recorded: with its current plan, or else by a Python function.
struct Recorder {
  Plan *plan = nullptr;
  PyObject *otherwise;
};

Recorder &recorderOf(PyObject *capsule) { return *static_cast<Recorder *>(PyCapsule_GetPointer(capsule, nullptr)); }

/// record(call, *arguments): the results of call(*arguments), with their history. `call` is an Unrecorded.
PyObject *record(PyObject *self, PyObject *const *values, Py_ssize_t count) {
  HANDLE_TH_ERRORS
  const Recorder &recorder = recorderOf(self);
  if (!recorder.plan)
    return PyObject_Vectorcall(recorder.otherwise, values, size_t(count), nullptr);
  static PyObject *const wrapped = PyUnicode_InternFromString("__wrapped__");
  Plan &plan = *recorder.plan;
  PyObject *const *arguments = values + 1;
  variable_list tensors;
  for (size_t i = 0; i < plan.edges.size(); ++i)
    if (plan.edges[i] >= 0)
      tensors.push_back(tensorOf(plan.argument(arguments, count - 1, int(i))));
  auto node = makeNode<Node>(plan);
  node->set_next_edges(torch::autograd::collect_next_edges(tensors));
  THPObjectPtr returned;
  { // calls the inner function directly: `call` has checked that only autograd must see this
    THPObjectPtr target = own(PyObject_GetAttr(values[0], wrapped));
    c10::AutoGradMode recordsNothing(false);
    c10::AutoFwGradMode noTangents(false);
    at::AutoDispatchBelowAutograd below;
    returned = own(PyObject_Vectorcall(target, arguments, size_t(count - 1), nullptr));
  }
  PyObject *single = returned.get();
  PyObject *const *results = PyTuple_Check(single) ? &PyTuple_GET_ITEM(single, 0) : &single;
  for (int i = 0; i < plan.differentiable; ++i)
    torch::autograd::set_history(tensorOf(results[i]), node);
  node->save(arguments, count - 1, results);
  return returned.release();
  END_HANDLE_TH_ERRORS
}

PyMethodDef recordDefinition = {"record", reinterpret_cast<PyCFunction>(reinterpret_cast<void *>(record)),
                                METH_FASTCALL, nullptr};

/// recorder(otherwise): (record, state)
PyObject *recorder(PyObject *, PyObject *otherwise) {
  PyObject *state =
      PyCapsule_New(new Recorder{nullptr, Py_NewRef(otherwise)}, nullptr, nullptr); // lives as long as the op: forever
  PyObject *function = state ? PyCFunction_New(&recordDefinition, state) : nullptr;
  return function ? Py_BuildValue("NN", function, state) : nullptr;
}

/// use(state, backward, sources, is_tensor, defaults), or use(state) for the Python implementation
PyObject *use(PyObject *, PyObject *arguments) {
  HANDLE_TH_ERRORS
  PyObject *state = nullptr, *backward = nullptr, *sources = nullptr, *tensors = nullptr, *defaults = nullptr;
  if (!PyArg_ParseTuple(arguments, "O|OO!O!O!", &state, &backward, &PyTuple_Type, &sources, &PyList_Type, &tensors,
                        &PyTuple_Type, &defaults))
    return nullptr;
  recorderOf(state).plan =
      backward ? new Plan(backward, sources, tensors, defaults) : nullptr; // nodes may still have the last one
  Py_RETURN_NONE;
  END_HANDLE_TH_ERRORS
}

/// note_registration(): names of ops may refer to other ops from now on
PyObject *noteRegistration(PyObject *, PyObject *) {
  ++registrations;
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {{"recorder", recorder, METH_O, nullptr},
                         {"use", use, METH_VARARGS, nullptr},
                         {"note_registration", noteRegistration, METH_NOARGS, nullptr},
                         {}};
PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, KPKG_NODES_MODULE, nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

} // namespace
} // namespace kpkg::torch_nodes

extern "C" __attribute__((visibility("default"))) PyObject *KPKG_NODES_INIT() {
  PyObject *module = PyModule_Create(&kpkg::torch_nodes::definition);
  if (module && !kpkg::torch_nodes::defineDirect(module))
    Py_CLEAR(module);
  return module;
}
