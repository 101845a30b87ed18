// Makes a package of small ops with the C kernels of test/runtime/kernels, as the compiler would write it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/runtime/package/SamplePackage.h"

#include "runtime/format/Writer.h"
#include "test/runtime/package/PlanWriter.h"

#include <fstream>
#include <iterator>
#include <kpkg/kpkg.h>
#include <stdexcept>

namespace kpkg::test {

using nlohmann::json;
using plan::Opcode;

std::string runnableTarget() { return kpkg_cpu_target(0); }
std::string foreignTarget() { return runnableTarget() == "aarch64" ? "x86-64-v3" : "aarch64"; }

static std::string readObject(const std::string &name) {
  std::ifstream file(std::string(KPKG_TEST_OBJECTS) + "/" + name, std::ios::binary);
  if (!file)
    throw std::runtime_error("no object " + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Launches y = alpha * x; both have rank 2.
static void launchScale(PlanWriter &plan, PlanWriter::Register x, PlanWriter::Register y, PlanWriter::Register alpha) {
  auto type = plan.op(Opcode::dtype_of, 'd', {x});
  auto rows = plan.op(Opcode::dim, 'i', {x, plan.integer(0)}), cols = plan.op(Opcode::dim, 'i', {x, plan.integer(1)});
  plan.launch("scale_rows", {{"T", type}, {"COLS", cols, true}}, {{x}, {y, true}, {alpha}}, {rows});
}

static std::string scalePlan() {
  PlanWriter plan("test::scale");
  auto x = plan.parameter("x", 't'), alpha = plan.parameter("alpha", 'F');
  auto rank = plan.op(Opcode::rank, 'i', {x});
  plan.require(plan.op(Opcode::cmp_int, 'b', {rank, plan.integer(2)}, {1}), "x must have rank 2, got {}", rank);
  auto y = plan.op(Opcode::empty_like, 't', {x});
  launchScale(plan, x, y, alpha);
  return plan.finish({y});
}

/// Writes scale(x) with one block per processor.
static std::string spreadPlan() {
  PlanWriter plan("test::spread");
  auto x = plan.parameter("x", 't'), alpha = plan.parameter("alpha", 'F');
  auto y = plan.op(Opcode::empty_like, 't', {x});
  auto type = plan.op(Opcode::dtype_of, 'd', {x});
  auto cols = plan.op(Opcode::dim, 'i', {x, plan.integer(1)});
  plan.launch("scale_rows", {{"T", type}, {"COLS", cols, true}}, {{x}, {y, true}, {alpha}},
              {plan.op(Opcode::processors, 'i', {})});
  return plan.finish({y});
}

static std::string scaleInPlacePlan() {
  PlanWriter plan("test::scale_");
  auto x = plan.parameter("x", 't', true), alpha = plan.parameter("alpha", 'F');
  plan.launch("scale_in_place", {}, {{x, true}, {alpha}}, {plan.op(Opcode::dim, 'i', {x, plan.integer(0)})});
  return plan.finish({});
}

static std::string scaleTransposedPlan() {
  PlanWriter plan("test::scale_transposed");
  auto x = plan.parameter("x", 't');
  auto turned = plan.op(Opcode::transpose, 't', {x, plan.integer(0), plan.integer(1)});
  auto dense = plan.op(Opcode::contiguous, 't', {turned});
  auto y = plan.op(Opcode::empty_like, 't', {dense});
  auto two = plan.op(Opcode::const_float, 'f', {}, {0x4000000000000000});
  launchScale(plan, dense, y, plan.op(Opcode::defer_float, 'F', {two}));
  return plan.finish({y});
}

static std::string numberPlan() {
  PlanWriter plan("test::number");
  auto n = plan.parameter("n", 'i');
  auto y = plan.op(Opcode::empty, 't',
                   {plan.op(Opcode::list, 'l', {n}), plan.op(Opcode::const_dtype, 'd', {}, {KPKG_INT64})});
  plan.launch("number_tiles", {}, {{y, true}}, {});
  return plan.finish({y});
}

static std::string numberInPlacePlan() {
  PlanWriter plan("test::number_");
  auto y = plan.parameter("y", 't', true);
  plan.launch("number_tiles", {}, {{y, true}}, {});
  return plan.finish({});
}

/// Writes number(n) without its first element.
static std::string tailPlan() {
  PlanWriter plan("test::tail");
  auto n = plan.parameter("n", 'i');
  auto y = plan.op(Opcode::empty, 't',
                   {plan.op(Opcode::list, 'l', {n}), plan.op(Opcode::const_dtype, 'd', {}, {KPKG_INT64})});
  plan.launch("number_tiles", {}, {{y, true}}, {});
  return plan.finish({plan.op(Opcode::slice, 't', {y, plan.integer(0), plan.integer(1), n, plan.integer(1)})});
}

static std::string complainPlan() {
  PlanWriter plan("test::complain");
  auto y =
      plan.op(Opcode::empty, 't',
              {plan.op(Opcode::list, 'l', {plan.integer(1)}), plan.op(Opcode::const_dtype, 'd', {}, {KPKG_INT64})});
  plan.launch("complain", {}, {{y, true}}, {plan.integer(8)});
  return plan.finish({y});
}

static json view(const char *name, int rank, const char *dtype, bool mut) {
  return {{"name", name}, {"kind", "view"}, {"rank", rank}, {"dtype", dtype}, {"mut", mut}};
}

static json instance(int kernel, json params, const std::string &variant, json facts, const std::string &target,
                     const std::string &symbol) {
  return {{"kernel", kernel},
          {"params", std::move(params)},
          {"variant", variant},
          {"facts", std::move(facts)},
          {"target", target},
          {"section", "host/" + target},
          {"symbol", symbol},
          {"scratch", symbol == "number_tiles" ? 64 : 0},
          {"asserts", symbol == "complain" ? json{"never fails", "block is not 3"} : json::array()},
          {"prints", symbol == "complain" ? json{"block {i64}"} : json::array()},
          {"flags", {"deterministic"}}};
}

static json op(const char *name, const char *schema, json arguments, json results) {
  return {{"name", name},
          {"schema", schema},
          {"doc", "A test op."},
          {"plan", std::string("plan/") + name},
          {"reference", nullptr},
          {"arguments", std::move(arguments)},
          {"results", std::move(results)}};
}

json sampleManifest() {
  json kernels = {
      {{"name", "scale_rows"},
       {"params", {{{"name", "T"}, {"kind", "dtype"}}, {{"name", "COLS"}, {"kind", "int"}}}},
       {"args",
        {view("x", 2, "T", false), view("y", 2, "T", true), {{"name", "alpha"}, {"kind", "scalar"}, {"dtype", "T"}}}},
       {"persistent", false}},
      {{"name", "number_tiles"},
       {"params", json::array()},
       {"args", {view("y", 1, "int64", true)}},
       {"persistent", true}},
      {{"name", "complain"}, {"params", json::array()}, {"args", {view("y", 1, "int64", true)}}, {"persistent", false}},
      {{"name", "scale_in_place"},
       {"params", json::array()},
       {"args", {view("x", 2, "float32", true), {{"name", "alpha"}, {"kind", "scalar"}, {"dtype", "float32"}}}},
       {"persistent", false}}};
  std::string here = runnableTarget();
  json unit = {{{"arg", 0}, {"unit", 1}}, {{"arg", 1}, {"unit", 1}}};
  json instances = json::array();
  for (int cols : {64, 1024}) {
    instances.push_back(instance(0, {"float32", cols}, "any", json::array(), here, "scale_rows_any"));
    instances.push_back(instance(0, {"float32", cols}, "unit", unit, here, "scale_rows"));
    instances.push_back(instance(0, {"float32", cols}, "unit", unit, foreignTarget(), "scale_rows"));
  }
  instances[1]["flops"] = {{{"count", 1.0}, {"factors", {{"dim", 0, 0}, {"dim", 0, 1}}}}};
  instances[1]["bytes"] = {{{"count", 8.0}, {"factors", {{"blocks"}, {"clip", 0, 1, 1024}}}}};
  instances.push_back(instance(1, json::array(), "any", json::array(), here, "number_tiles"));
  instances.push_back(instance(2, json::array(), "any", json::array(), here, "complain"));
  instances.push_back(instance(3, json::array(), "any", json::array(), here, "scale_in_place"));
  json x = {{"name", "x"}, {"type", "Tensor"}, {"mut", false}};
  json inPlace = {{"name", "x"}, {"type", "Tensor(a!)"}, {"mut", true}};
  json alpha = {{"name", "alpha"}, {"type", "float"}, {"mut", false}}, alphaTwo = alpha;
  alphaTwo["default"] = 2.0;
  json ops = {
      op("test::scale", "scale(Tensor x, float alpha=2.0) -> Tensor", {x, alphaTwo}, {"Tensor"}),
      op("test::scale_", "scale_(Tensor(a!) x, float alpha) -> ()", {inPlace, alpha}, json::array()),
      op("test::scale_transposed", "scale_transposed(Tensor x) -> Tensor", json::array({x}), {"Tensor"}),
      op("test::number", "number(int n) -> Tensor", json::array({{{"name", "n"}, {"type", "int"}}}), {"Tensor"}),
      op("test::number_", "number_(Tensor(a!) y) -> ()",
         json::array({{{"name", "y"}, {"type", "Tensor(a!)"}, {"mut", true}}}), json::array()),
      op("test::tail", "tail(int n) -> Tensor", json::array({{{"name", "n"}, {"type", "int"}}}), {"Tensor"}),
      op("test::complain", "complain() -> Tensor", json::array(), {"Tensor"}),
      op("test::spread", "spread(Tensor x, float alpha=2.0) -> Tensor", {x, alphaTwo}, {"Tensor"})};
  return {{"producer", {{"kpkg", "test"}}}, {"kernels", kernels}, {"instances", instances}, {"ops", ops}};
}

std::string samplePackage(const json &manifest) {
  format::Writer writer;
  auto add = [&](const std::string &name, const char *kind, std::string contents) {
    writer.add(name, kind, std::move(contents)).value();
  };
  add("host/" + runnableTarget(), "host-object", readObject("scale.so"));
  add("host/" + foreignTarget(), "host-object", "code for another machine");
  add(sampleImage, "cubin", "code for a GPU");
  add(samplePtx, "ptx", ".version 8.0");
  add("plan/test::scale", "plan", scalePlan());
  add("plan/test::scale_", "plan", scaleInPlacePlan());
  add("plan/test::scale_transposed", "plan", scaleTransposedPlan());
  add("plan/test::number", "plan", numberPlan());
  add("plan/test::number_", "plan", numberInPlacePlan());
  add("plan/test::tail", "plan", tailPlan());
  add("plan/test::spread", "plan", spreadPlan());
  add("plan/test::complain", "plan", complainPlan());
  return writer.finish(manifest).value();
}

std::string samplePackage() { return samplePackage(sampleManifest()); }

} // namespace kpkg::test
