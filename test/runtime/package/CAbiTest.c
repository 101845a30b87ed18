/* The C ABI from C: opens a package, calls an op, reads errors. Also the example of docs/c-api.md.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <kpkg/kernel_abi.h>
#include <kpkg/kpkg.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                                               \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);                                          \
      exit(1);                                                                                                         \
    }                                                                                                                  \
  } while (0)

static kpkg_error last_error(void) {
  kpkg_error error;
  memset(&error, 0, sizeof error);
  error.struct_size = sizeof error;
  kpkg_last_error(&error);
  return error;
}

/* [call.begin] */
static kpkg_status allocate(void *context, const kpkg_allocation *wanted, void **data) {
  (void)context;
  *data = malloc(wanted->bytes ? wanted->bytes : 1);
  return *data ? KPKG_OK : kpkg_set_error(KPKG_ERROR_MEMORY, "malloc failed");
}

static void scale(const kpkg_op *op) {
  float x[6] = {0, 1, 2, 3, 4, 5};
  int64_t shape[2] = {2, 3};
  kpkg_tensor tensor = {x, shape, NULL, 2, KPKG_FLOAT32, {KPKG_DEVICE_CPU, 0}};
  kpkg_value arguments[2] = {{KPKG_TENSOR, 0, {.tensor = &tensor}}, {KPKG_FLOAT, 0, {.real = 3.0}}};
  kpkg_result result;
  kpkg_call call = {.struct_size = sizeof call,
                    .arguments = arguments,
                    .argument_count = 2,
                    .results = &result,
                    .result_capacity = 1,
                    .allocate = allocate};
  CHECK(kpkg_op_call(op, &call) == KPKG_OK);
  CHECK(result.rank == 2 && result.shape[1] == 3 && result.whole);
  CHECK(((float *)result.data)[5] == 15.0f);
  free(result.data);
}
/* [call.end] */

static void errors(const kpkg_library *library, const kpkg_op *op) {
  const kpkg_op *none = NULL;
  CHECK(kpkg_library_op(library, "nothing", &none) == KPKG_ERROR_NOT_FOUND);
  CHECK(strstr(last_error().message, "has no op 'nothing'"));
  kpkg_call call;
  memset(&call, 0, sizeof call);
  CHECK(kpkg_op_call(op, &call) == KPKG_ERROR_USE);
  CHECK(kpkg_op_call(NULL, &call) == KPKG_ERROR_USE);
  call.struct_size = sizeof call;
  CHECK(kpkg_op_call(op, &call) == KPKG_ERROR_USE); /* no room for results */
  kpkg_library *bad = NULL;
  CHECK(kpkg_library_open("/does/not/exist.kpkg", NULL, &bad) == KPKG_ERROR_FILE && !bad);
  CHECK(kpkg_library_open_memory("x", 1, "x", NULL, &bad) == KPKG_ERROR_FORMAT && !bad);
  CHECK(strcmp(kpkg_status_name(KPKG_ERROR_FORMAT), "format error") == 0);
}

/* A caller built against an older, shorter struct gets what it knows and no more. */
static void sizes(const kpkg_op *op) {
  struct {
    kpkg_op_info info;
    char guard[8];
  } old;
  memset(&old, 0x5a, sizeof old);
  old.info.struct_size = offsetof(kpkg_op_info, doc);
  CHECK(kpkg_op_describe(op, &old.info) == KPKG_OK);
  CHECK(strcmp(old.info.name, "test::scale") == 0);
  CHECK(old.info.struct_size == offsetof(kpkg_op_info, doc));
  CHECK(memcmp(&old.info.doc, "\x5a\x5a\x5a\x5a", 4) == 0);
}

/* The host as a device, so that programs need no second way for it. */
static void devices(void) {
  kpkg_device host = {KPKG_DEVICE_CPU, 0}, other = {9, 0};
  int32_t count = 0;
  CHECK(kpkg_device_count(KPKG_DEVICE_CPU, &count) == KPKG_OK && count == 1);
  CHECK(kpkg_device_count(9, &count) == KPKG_ERROR_UNSUPPORTED);
  kpkg_device_info info;
  memset(&info, 0, sizeof info);
  CHECK(kpkg_device_describe(host, &info) == KPKG_ERROR_USE); /* no struct_size */
  info.struct_size = sizeof info;
  CHECK(kpkg_device_describe(host, &info) == KPKG_OK && info.processors >= 1 && info.target[0]);
  float x[4] = {1, 2, 3, 4}, y[4] = {0};
  void *memory = NULL, *stream = NULL;
  CHECK(kpkg_stream_create(host, &stream) == KPKG_OK && !stream);
  CHECK(kpkg_memory_allocate(host, sizeof x, stream, &memory) == KPKG_OK && (uintptr_t)memory % 64 == 0);
  CHECK(kpkg_memory_copy(host, memory, host, x, sizeof x, stream) == KPKG_OK);
  CHECK(kpkg_memory_copy(host, y, host, memory, sizeof x, stream) == KPKG_OK && y[3] == 4);
  CHECK(kpkg_stream_synchronize(host, stream) == KPKG_OK && kpkg_stream_destroy(host, stream) == KPKG_OK);
  CHECK(kpkg_memory_free(host, memory, stream) == KPKG_OK);
  CHECK(kpkg_memory_allocate(other, 4, NULL, &memory) == KPKG_ERROR_UNSUPPORTED && !memory);
}

int main(int count, char **arguments) {
  CHECK(count == 2);
  kpkg_library *library = NULL;
  if (kpkg_library_open(arguments[1], NULL, &library) != KPKG_OK) {
    fprintf(stderr, "%s\n", last_error().message);
    return 1;
  }
  const kpkg_op *op = NULL;
  CHECK(kpkg_library_op(library, "test::scale", &op) == KPKG_OK);
  CHECK(kpkg_library_op_count(library) == 8);
  scale(op);
  devices();
  errors(library, op);
  sizes(op);
  kpkg_string *text = NULL;
  CHECK(kpkg_op_plan_json(op, 0, &text) == KPKG_OK && strstr(kpkg_string_data(text), "launch"));
  kpkg_string_free(text);
  CHECK(strcmp(kpkg_dtype_name(KPKG_BFLOAT16), "bfloat16") == 0);
  CHECK(kpkg_dtype_from_name("float8_e5m2") == KPKG_FLOAT8_E5M2 && kpkg_dtype_size(KPKG_FLOAT64) == 8);
  CHECK(kpkg_dtype_bits(KPKG_BFLOAT16) == 16 && kpkg_dtype_bits(KPKG_NO_DTYPE) == 0 && kpkg_dtype_bits(-1) == 0);
  CHECK(kpkg_dtype_bytes(KPKG_INT32, 3) == 12 && kpkg_dtype_bytes(KPKG_FLOAT8_E5M2, INT64_MAX) == INT64_MAX);
  CHECK(kpkg_dtype_bytes(KPKG_INT32, INT64_MAX / 4 + 1) == -1 && kpkg_dtype_bytes(KPKG_INT32, -1) == -1);
  CHECK(kpkg_set_cpu_threads(0) == KPKG_ERROR_USE && kpkg_set_cpu_threads(1) == KPKG_OK && kpkg_cpu_threads() == 1);
  CHECK(kpkg_cpu_threads() >= 1 && kpkg_cpu_target(0) && kpkg_version()[0]);
  kpkg_library_close(library);
  puts("ok");
  return 0;
}
