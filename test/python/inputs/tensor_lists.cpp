// Calls ops with lists of tensors from C++ and from C: argv[1] is the package of test_tensor_lists.py.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <kpkg/kpkg.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>

using kpkg::DType;
using kpkg::Tensor;

static void require(bool holds, const char *what) {
  if (holds)
    return;
  std::printf("wrong: %s\n", what);
  std::exit(1);
}

static void callFromC(const kpkg_op *op) {
  float memory[3] = {1, 2, 4}, sum[1] = {0};
  int64_t one[1] = {1};
  kpkg_tensor tensors[3], output = {sum, one, nullptr, 1, KPKG_FLOAT32, {KPKG_DEVICE_CPU, 0}};
  for (int i = 0; i < 3; ++i)
    tensors[i] = {&memory[i], one, nullptr, 1, KPKG_FLOAT32, {KPKG_DEVICE_CPU, 0}};
  kpkg_value value = {};
  value.kind = KPKG_TENSOR_LIST;
  value.count = 3;
  value.as.tensor = tensors;
  kpkg_result result;
  const kpkg_tensor *outputs[1] = {&output};
  kpkg_call call = {};
  call.struct_size = sizeof call;
  call.arguments = &value;
  call.argument_count = 1;
  call.results = &result;
  call.result_capacity = 1;
  call.outputs = outputs;
  require(kpkg_op_call(op, &call) == KPKG_OK && sum[0] == 7, "the sum in C");
  value.as.tensor = nullptr;
  require(kpkg_op_call(op, &call) == KPKG_ERROR_KERNEL, "a list without memory");
  value.count = -1;
  require(kpkg_op_call(op, &call) == KPKG_ERROR_KERNEL, "a list of a negative length");
}

int main(int count, char **arguments) {
  require(count == 2, "one argument");
  auto library = kpkg::Library::open(arguments[1]).value();
  kpkg::Op sum = library.op("sum_of").value();
  kpkg_argument_info info = sum.arguments()[0];
  require(info.kind == KPKG_TENSOR_LIST && std::string(info.type) == "Tensor[]", "the argument's type");
  callFromC(sum.get());

  float numbers[] = {1, 2, 3, 4, 5, 6};
  std::vector<Tensor> terms{Tensor(numbers, DType::Float32, {3}), Tensor(numbers + 3, DType::Float32, {3})};
  kpkg::Value list(terms);
  kpkg::Value copy = list;
  auto made = sum.call({}, {}, {{"terms", copy}}).value();
  require(made[0].as<float>()[0] == 5 && made[0].as<float>()[2] == 9, "the sum");
  require(sum.infer({}, {{"terms", list}}).value()[0].shape() == std::vector<int64_t>{3}, "the shape");
  require(!sum.call({}, {}, {{"terms", std::vector<Tensor>{}}}), "the refusal of an empty list");

  kpkg::Op add = library.op("add_into").value();
  Tensor total = Tensor::empty(DType::Float32, {3});
  for (int i = 0; i < 3; ++i)
    total.as<float>()[i] = 0;
  require(bool(add.call({}, {terms[0]}, {{"sum", std::vector<Tensor>{total}}, {"others", terms}})), "the call");
  require(total.as<float>()[0] == 6 && total.as<float>()[2] == 12, "the written list");
  auto shared = add.call({}, {terms[0]}, {{"sum", std::vector<Tensor>{terms[0]}}, {"others", terms}});
  require(!shared && shared.error().argument == "sum", "the argument that shares memory");

  kpkg::Registry registry;
  int calls = 0;
  auto fallback = [&](const kpkg_op *, kpkg_call &call) {
    const kpkg_value &list = call.arguments[0];
    calls += call.argument_count == 2 && list.kind == KPKG_TENSOR_LIST && list.count == 2 &&
             list.as.tensor[1].shape[0] == 3 && call.arguments[1].as.integer == 5;
    return KPKG_OK;
  };
  require(bool(registry.setFallback("other::step(Tensor(a!)[] params, int n=5) -> ()", fallback)), "the schema");
  kpkg::Op step = registry.op("other::step").value();
  require(step.arguments()[0].mutates == 1, "the written list");
  require(bool(step.call({}, {}, {{"params", terms}})) && calls == 1, "the fallback");
  require(!registry.setFallback("other::wrong(Tensor[]? xs) -> ()", fallback), "an optional list");
  std::puts("ok");
}
