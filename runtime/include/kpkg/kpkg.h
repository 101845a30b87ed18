/* The C ABI of the kpkg runtime: opens packages, looks ops up, calls them, explains calls.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Rules. Every function returns a status and throws nothing. kpkg_last_error() describes this thread's last failed
 * call. Structs that start with `struct_size` only grow at their end: set it to sizeof the struct. Other structs never
 * change. Strings are UTF-8, and belong to the object that returned them unless stated otherwise. Any number of threads
 * may use any object concurrently. Opening a package runs none of its code.
 */
#ifndef KPKG_KPKG_H
#define KPKG_KPKG_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define KPKG_API __declspec(dllimport)
#else
#define KPKG_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define KPKG_ABI_VERSION 1
#define KPKG_MAX_RANK 16

/* ---- Status and errors ------------------------------------------------------------------------------------------ */

typedef enum kpkg_status {
  KPKG_OK = 0,
  KPKG_ERROR_USE = 1,         /* wrong use of this interface: null pointer, unknown struct size, wrong argument count */
  KPKG_ERROR_FILE = 2,        /* a file cannot be read or written */
  KPKG_ERROR_FORMAT = 3,      /* a file is refused: not a package, damaged, or of a newer major version */
  KPKG_ERROR_TRUST = 4,       /* the trust policy refuses a section */
  KPKG_ERROR_NOT_FOUND = 5,   /* no op, section or device of this name */
  KPKG_ERROR_KERNEL = 6,      /* KernelError: arguments refused by the op's plan, or an assert in a kernel failed */
  KPKG_ERROR_NO_INSTANCE = 7, /* KernelError: no instance can run this call, and no fallback ran it */
  KPKG_ERROR_DEVICE = 8,      /* DeviceError: a driver call failed */
  KPKG_ERROR_MEMORY = 9,      /* out of memory */
  KPKG_ERROR_UNSUPPORTED = 10, /* valid, but this version of the runtime cannot do it */
  KPKG_ERROR_INTERNAL = 11,
  KPKG_ERROR_CAPTURE = 12 /* KernelError: the call needs an operation that is not possible during graph capture */
} kpkg_status;

typedef struct kpkg_error {
  size_t struct_size;
  kpkg_status status;
  const char *message;  /* one complete sentence or more; never NULL */
  const char *op;       /* "" if not about an op */
  const char *instance; /* "" if not about a kernel instance */
  const char *argument; /* "" if not about one argument */
} kpkg_error;

/* Returns this thread's last failure. Its strings are valid until this thread's next failing call. */
KPKG_API void kpkg_last_error(kpkg_error *error);
/* Sets this thread's last error; for callbacks (allocators, fallbacks) that return a failing status. */
KPKG_API kpkg_status kpkg_set_error(kpkg_status status, const char *message);
/* "ok", "format error", ... */
KPKG_API const char *kpkg_status_name(kpkg_status status);
/* "0.1.0" */
KPKG_API const char *kpkg_version(void);

/* A string that the caller frees with kpkg_string_free. */
typedef struct kpkg_string kpkg_string;
KPKG_API const char *kpkg_string_data(const kpkg_string *string);
KPKG_API size_t kpkg_string_size(const kpkg_string *string);
KPKG_API void kpkg_string_free(kpkg_string *string);

/* ---- Log -------------------------------------------------------------------------------------------------------- */

typedef enum kpkg_log_level {
  KPKG_LOG_ERROR = 0,
  KPKG_LOG_WARN = 1,
  KPKG_LOG_INFO = 2,
  KPKG_LOG_DEBUG = 3,
  KPKG_LOG_PRINT = 4 /* output of a kernel's print; the default sink always shows it verbatim */
} kpkg_log_level;
/* May be called by several threads at once; must not call kpkg_set_log. */
typedef void (*kpkg_log_fn)(void *context, kpkg_log_level level, const char *message);
/* Sets the sink of messages for the whole process. NULL restores the default: warnings and errors on stderr, one line
 * each (KPKG_LOG=error|warn|info|debug sets the limit). */
KPKG_API void kpkg_set_log(kpkg_log_fn log, void *context);

/* ---- Tensors and values ------------------------------------------------------------------------------------------ */

/* KPKG_BOOL, KPKG_INT8, KPKG_FLOAT32, KPKG_BFLOAT16, KPKG_FLOAT8_E4M3FN, ...: dtypes.def is the list. */
typedef enum kpkg_dtype {
  KPKG_NO_DTYPE = 0,
#define KPKG_DTYPE_ROW(constant, Type, name, code, ...) KPKG_##constant = code,
#include <kpkg/dtypes.def>
} kpkg_dtype;
enum {
  KPKG_DTYPE_COUNT = 1 /* KPKG_NO_DTYPE included */
#define KPKG_DTYPE_ROW(...) +1
#include <kpkg/dtypes.def>
};

/* "float32"; "none" for KPKG_NO_DTYPE, NULL for a number that is no dtype. */
KPKG_API const char *kpkg_dtype_name(int32_t dtype);
/* KPKG_NO_DTYPE if there is none of this name. */
KPKG_API int32_t kpkg_dtype_from_name(const char *name);
/* Bits of one element in memory; 0 for KPKG_NO_DTYPE. */
KPKG_API int32_t kpkg_dtype_bits(int32_t dtype);
/* Bytes of `count` elements side by side, rounded up; -1 if the number is too large or negative. */
KPKG_API int64_t kpkg_dtype_bytes(int32_t dtype, int64_t count);
/* Bytes that one element needs, rounded up; 0 for KPKG_NO_DTYPE. */
KPKG_API size_t kpkg_dtype_size(int32_t dtype);

/* Device numbers are DLPack's: 1 is the host, 2 a CUDA device. */
#define KPKG_DEVICE_CPU 1
#define KPKG_DEVICE_CUDA 2
typedef struct kpkg_device {
  int32_t type;
  int32_t index;
} kpkg_device;

/* Memory of the caller. Frozen. */
typedef struct kpkg_tensor {
  void *data;             /* address of the element with all indices 0; may be NULL if there is no element */
  const int64_t *shape;   /* rank entries, each >= 0 */
  const int64_t *strides; /* rank entries, in elements, may be 0 or negative; NULL: dense, last dimension fastest */
  int32_t rank;           /* 0 .. KPKG_MAX_RANK */
  int32_t dtype;
  kpkg_device device;
} kpkg_tensor;

typedef enum kpkg_kind {
  KPKG_DEFAULT = 0, /* the schema's default; refused for an argument without one */
  KPKG_NONE = 1,
  KPKG_TENSOR = 2,
  KPKG_INT = 3,
  KPKG_FLOAT = 4,
  KPKG_BOOLEAN = 5,
  KPKG_INT_LIST = 6,
  KPKG_DTYPE = 7,
  KPKG_STRING = 8,
  KPKG_TENSOR_LIST = 9
} kpkg_kind;

/* One argument. The memory that it points to belongs to the caller. Frozen. */
typedef struct kpkg_value {
  int32_t kind;  /* kpkg_kind */
  int32_t count; /* KPKG_INT_LIST: number of entries; KPKG_TENSOR_LIST: number of tensors */
  union {
    const kpkg_tensor *tensor; /* KPKG_TENSOR; KPKG_TENSOR_LIST: the first of `count`, side by side */
    int64_t integer;           /* KPKG_INT, KPKG_BOOLEAN (0 or 1), KPKG_DTYPE */
    double real;
    const int64_t *list;
    const char *string;
  } as;
} kpkg_value;

/* ---- Libraries --------------------------------------------------------------------------------------------------- */

typedef struct kpkg_library kpkg_library;
typedef struct kpkg_op kpkg_op;

typedef enum kpkg_trust {
  KPKG_TRUST_DEFAULT = 0, /* environment variable KPKG_TRUST, else digest */
  KPKG_TRUST_ANY = 1,     /* digests are not checked */
  KPKG_TRUST_DIGEST = 2,  /* each section's SHA-256 is checked before its first use */
  KPKG_TRUST_SIGNED = 3   /* in addition, the manifest must have a signature by one of `keys` */
} kpkg_trust;

typedef struct kpkg_open_options {
  size_t struct_size;
  int32_t trust;           /* kpkg_trust */
  const char *const *keys; /* Ed25519 public keys, 64 hexadecimal digits each */
  size_t key_count;
  const char *policy; /* replaces `trust` and `keys`, in the format of KPKG_TRUST; may be NULL */
  const char *lock;   /* a lock file in addition to that of KPKG_LOCK; may be NULL */
} kpkg_open_options;

/* Reads and checks the file's header and manifest. Sections are read on first use. `options` may be NULL. */
KPKG_API kpkg_status kpkg_library_open(const char *path, const kpkg_open_options *options, kpkg_library **library);
/* Opens a package in memory, which must outlive the library and all its ops. `name` is used in messages. */
KPKG_API kpkg_status kpkg_library_open_memory(const void *bytes, size_t size, const char *name,
                                              const kpkg_open_options *options, kpkg_library **library);
/* Releases the caller's reference; registries hold their own. Ops that were looked up through the library itself must
 * not be running, and must not be used afterwards. */
KPKG_API void kpkg_library_close(kpkg_library *library);

KPKG_API size_t kpkg_library_op_count(const kpkg_library *library);
/* NULL past the end. The op belongs to the library. */
KPKG_API const kpkg_op *kpkg_library_op_at(const kpkg_library *library, size_t index);
/* `name` as in the package ("kpkg::softmax"), or without its namespace if that is unambiguous. */
KPKG_API kpkg_status kpkg_library_op(const kpkg_library *library, const char *name, const kpkg_op **op);
/* The manifest as canonical JSON. */
KPKG_API const char *kpkg_library_manifest(const kpkg_library *library);
/* A section's checked and decompressed bytes, valid as long as the library. */
KPKG_API kpkg_status kpkg_library_section(const kpkg_library *library, const char *name, const void **data,
                                          size_t *size);
/* Checks every section's digest, and every plan. */
KPKG_API kpkg_status kpkg_library_verify(const kpkg_library *library);
/* Loads everything that calls on this device can need, so that later calls load nothing. */
KPKG_API kpkg_status kpkg_library_prewarm(const kpkg_library *library, kpkg_device device);

/* ---- Ops: schema ------------------------------------------------------------------------------------------------- */

typedef struct kpkg_op_info {
  size_t struct_size;
  const char *name;       /* "kpkg::softmax" */
  const char *schema;     /* PyTorch schema without the namespace: "softmax(Tensor input, int dim=-1) -> Tensor" */
  const char *doc;        /* "" if there is none */
  const char *reference;  /* name of the reference implementation, "" if there is none */
  const char *plan;       /* section names of the bytecode; see kpkg_library_section */
  const char *shape_plan; /* "" if there is none */
  int32_t argument_count;
  int32_t result_count;
  const char
      *backward; /* name of the op with the gradients, "" if there is none; kpkg_op_kernel_info lists its arguments */
  const char *torch; /* JSON of how PyTorch treats the op, "" if the package does not say; docs/package-format.md */
} kpkg_op_info;
KPKG_API kpkg_status kpkg_op_describe(const kpkg_op *op, kpkg_op_info *info);

/* Returns the op's bytecode as JSON, for other evaluators. `which` is 0 for the whole plan of calls on the host.
 * KPKG_PLAN_SHAPES selects the slice that computes shapes, and KPKG_PLAN_ON_GPU the plan of calls on GPUs. */
enum { KPKG_PLAN_SHAPES = 1, KPKG_PLAN_ON_GPU = 2 };
KPKG_API kpkg_status kpkg_op_plan_json(const kpkg_op *op, int32_t which, kpkg_string **json);

typedef struct kpkg_argument_info {
  size_t struct_size;
  const char *name;
  const char *type; /* schema type: "Tensor", "Tensor?", "Tensor(a!)", "int", "float", "bool", "int[]", "ScalarType",
                    "str", "Tensor[]", "Tensor(a!)[]" */
  int32_t kind;     /* kpkg_kind of values other than None */
  int32_t optional; /* 1: None is accepted */
  int32_t mutates;  /* 1: the op writes into this tensor, or those of this list */
  int32_t has_default;
  kpkg_value default_value; /* kind KPKG_DEFAULT if there is none */
} kpkg_argument_info;
KPKG_API kpkg_status kpkg_op_argument(const kpkg_op *op, int32_t index, kpkg_argument_info *info);
/* Schema type of a result: "Tensor", "int", ... */
KPKG_API kpkg_status kpkg_op_result_type(const kpkg_op *op, int32_t index, const char **type);

/* ---- Ops: calls -------------------------------------------------------------------------------------------------- */

/* A call's request of memory for a result. */
typedef struct kpkg_allocation {
  size_t struct_size;
  int32_t index; /* 0, 1, ... within the call; kpkg_result.source names it */
  int32_t rank;
  int32_t dtype;
  kpkg_device device;
  const int64_t *shape;
  const int64_t *strides; /* non-negative, no two elements overlap */
  size_t bytes;           /* from the first element to the end of the last; may be 0 */
} kpkg_allocation;

/* Returns memory aligned to at least the element size (64 bytes is best) in *data. Called on the caller's thread,
 * before any part of the op runs. A failing status ends the call with that status. */
typedef kpkg_status (*kpkg_allocate_fn)(void *context, const kpkg_allocation *allocation, void **data);

typedef enum kpkg_source {
  KPKG_FROM_ALLOCATION = 0, /* memory from the allocator */
  KPKG_FROM_ARGUMENT = 1,   /* an argument itself, or a view of it */
  KPKG_FROM_OUTPUT = 2,     /* the caller's `outputs` entry */
  KPKG_FROM_NOTHING = 3     /* None, or a value that is not a tensor */
} kpkg_source;

/* One result. Frozen. */
typedef struct kpkg_result {
  int32_t kind;   /* KPKG_TENSOR, KPKG_NONE, KPKG_INT, KPKG_FLOAT, KPKG_BOOLEAN */
  int32_t source; /* kpkg_source */
  int32_t index;  /* which allocation, or which argument */
  int32_t dtype;
  kpkg_device device;
  int32_t rank;
  int32_t whole;  /* 1: shape and strides equal those of the allocation or argument, and the offset is 0 */
  int64_t offset; /* elements from the start of the allocation or argument */
  void *data;     /* address of the first element; NULL after kpkg_op_infer */
  int64_t shape[KPKG_MAX_RANK];
  int64_t strides[KPKG_MAX_RANK];
  union {
    int64_t integer;
    double real;
  } as;
} kpkg_result;

typedef struct kpkg_call {
  size_t struct_size;
  const kpkg_value *arguments; /* in schema order; arguments after argument_count have their defaults */
  int32_t argument_count;
  int32_t result_capacity;   /* entries of `results`; at least the op's result_count */
  kpkg_result *results;      /* filled by the call */
  void *stream;              /* device stream; NULL: the default stream. The host has none: calls are synchronous. */
  kpkg_allocate_fn allocate; /* may be NULL if all results go to `outputs` */
  void *allocate_context;
  const kpkg_tensor *const *outputs; /* NULL, or result_count entries: memory for result i, or NULL */
  void *user;                        /* not used by kpkg; for fallbacks */
  const char *precision; /* for an empty argument of that name: "highest", "high", "medium"; NULL: the op's choice */
} kpkg_call;

/* Runs the op. If it fails, nothing has been written, except after a failed kernel assert or a DeviceError. */
KPKG_API kpkg_status kpkg_op_call(const kpkg_op *op, kpkg_call *call);
/* Runs the op only with kernels of packages, for callers with their own fallback. If no kernel can run the call,
 * returns KPKG_ERROR_NO_INSTANCE without any effect on memory or counters. */
KPKG_API kpkg_status kpkg_op_call_packaged(const kpkg_op *op, kpkg_call *call);
/* Checks the arguments and fills `results` with shapes, dtypes and strides. No memory is read, written or allocated.
 * Data pointers may be NULL; stream, allocate and outputs are ignored. */
KPKG_API kpkg_status kpkg_op_infer(const kpkg_op *op, kpkg_call *call);

typedef enum kpkg_text_format { KPKG_TEXT = 0, KPKG_JSON = 1 } kpkg_text_format;
/* Explains how a call would be resolved: the verdict on each instance, the copies, the choice. Runs nothing. */
KPKG_API kpkg_status kpkg_op_explain(const kpkg_op *op, const kpkg_call *call, kpkg_text_format format,
                                     kpkg_string **text);

/* Gives the steps of a call for a target that a framework runs, such as "tpu", as JSON (docs/runtime.md). */
KPKG_API kpkg_status kpkg_op_resolve(const kpkg_op *op, const kpkg_call *call, const char *target, kpkg_string **json);
typedef struct kpkg_op_stats {
  size_t struct_size;
  uint64_t calls;       /* all, including failed ones */
  uint64_t resolutions; /* signatures evaluated: calls that did not hit the cache */
  uint64_t launches;
  uint64_t copies; /* steps that only move data (a necessary `contiguous`, an output with other strides) */
  uint64_t copied_bytes;
  uint64_t fallbacks;
  uint64_t errors;
  uint64_t references; /* fallbacks that ran the packaged reference */
} kpkg_op_stats;
KPKG_API kpkg_status kpkg_op_get_stats(const kpkg_op *op, kpkg_op_stats *stats);
/* JSON: counters, the kernel instances that ran and how often, fallbacks by reason. */
KPKG_API kpkg_status kpkg_op_kernel_info(const kpkg_op *op, kpkg_string **json);

/* For callers that do an op's work themselves because the package cannot: counts a fallback with its reason, and logs
 * it by the policy. Under the strict policy it fails with KPKG_ERROR_NO_INSTANCE instead. */
KPKG_API kpkg_status kpkg_op_count_fallback(const kpkg_op *op, const char *reason);

/* ---- Profile ----------------------------------------------------------------------------------------------------- */

enum {
  /* Each call is also a range for NVTX tools, through the library that KPKG_NVTX names, else libnvToolsExt.so.1 or
   * libnvtx3interop.so.1. KPKG_ERROR_NOT_FOUND if there is none. */
  KPKG_PROFILE_RANGES = 1,
  /* Launches on a GPU are timed by events even if CUPTI is available. */
  KPKG_PROFILE_EVENTS = 2
};
/* Records every call and every launch of the process from now on, and forgets earlier records. Launches on a GPU are
 * timed by CUPTI if the process can load it and no other tool uses it, else by a pair of events around each. Launches
 * that are captured into a graph are not timed. `flags` is a sum of KPKG_PROFILE_..., or 0. */
KPKG_API kpkg_status kpkg_profile_start(uint32_t flags);
/* Ends the profile, waits for the GPUs, and returns the records as JSON, which docs/runtime.md describes. */
KPKG_API kpkg_status kpkg_profile_stop(kpkg_string **json);

/* ---- Registry: several libraries and fallbacks
 * ------------------------------------------------------------------------ */

typedef struct kpkg_registry kpkg_registry;

typedef enum kpkg_policy {
  KPKG_POLICY_DEFAULT = 0, /* environment variable KPKG_FALLBACK, else warn */
  KPKG_POLICY_STRICT = 1,  /* only instances: otherwise the call fails, and lists what was tried */
  KPKG_POLICY_WARN = 2,    /* uses fallbacks, and logs once per op and reason */
  KPKG_POLICY_SILENT = 3   /* uses fallbacks, and only counts them */
} kpkg_policy;

/* Computes the op: fills call->results, with memory from call->allocate or call->outputs. All arguments are given (no
 * KPKG_DEFAULT), unless the op is known by its name alone. On failure it sets an error with kpkg_set_error; after
 * KPKG_ERROR_NO_INSTANCE the packaged reference is tried. */
typedef kpkg_status (*kpkg_fallback_fn)(void *context, const kpkg_op *op, kpkg_call *call);

KPKG_API kpkg_status kpkg_registry_create(kpkg_registry **registry);
KPKG_API void kpkg_registry_destroy(kpkg_registry *registry);
/* Adds a library, to which the registry holds a reference. Libraries added earlier are tried first. */
KPKG_API kpkg_status kpkg_registry_add(kpkg_registry *registry, const kpkg_library *library);
/* Opens and adds every *.kpkg of the ':'-separated folders and files; NULL means KPKG_PATH. */
KPKG_API kpkg_status kpkg_registry_add_path(kpkg_registry *registry, const char *path);
/* Sets the function that runs if no instance can. Without it the op's packaged reference runs. `op` is the name of an
 * op of a library, any op's full name ("kpkg::gemm"), or a schema ("kpkg::gemm(Tensor a, Tensor b, float alpha=1.0) ->
 * Tensor"). Libraries with the op may be added later or never. Until then, an op with a schema is called like any
 * other, and an op known by its name passes its arguments on unchanged. `destroy` (may be NULL) is called on
 * replacement and at the end. A NULL `fallback` removes it. */
KPKG_API kpkg_status kpkg_registry_set_fallback(kpkg_registry *registry, const char *op, kpkg_fallback_fn fallback,
                                                void *context, void (*destroy)(void *context));
KPKG_API kpkg_status kpkg_registry_set_policy(kpkg_registry *registry, kpkg_policy policy);
/* Sets the policy of one op, which overrides the registry's; KPKG_POLICY_DEFAULT restores the registry's. */
KPKG_API kpkg_status kpkg_registry_set_op_policy(kpkg_registry *registry, const char *op, kpkg_policy policy);
/* Restricts which instances calls of the op may use, until it is set again; NULL allows all. JSON, each entry optional:
 *   {"params": {"BM": ["64", "128"]}, "kernels": {"gemm_tiles": {"BN": ["64"]}}, "target": "sm_90a", "variant":
 *    "vector", "threads": [128, 256], "instances": {"gemm_tiles": NAME}, "precision": "high",
 *    "require": ["batch_invariant"]}
 * `params` apply to every kernel that has them, and those in `kernels` to one kernel. Values are written as in instance
 * names ("64", "True"). An instance's whole name is as in kpkg_op_explain. `precision` replaces an empty argument of
 * that name. `require` has words of KPKG_REQUIRE: an argument `batch_invariant` is then true, and no fallback runs. */
KPKG_API kpkg_status kpkg_registry_restrict(kpkg_registry *registry, const char *op, const char *json);
/* Returns the op of the registry: its libraries, then its fallback, then its reference. Valid as long as the registry.
 */
KPKG_API kpkg_status kpkg_registry_op(const kpkg_registry *registry, const char *name, const kpkg_op **op);
KPKG_API size_t kpkg_registry_op_count(const kpkg_registry *registry);
KPKG_API const kpkg_op *kpkg_registry_op_at(const kpkg_registry *registry, size_t index);

/* ---- DLPack and this machine ------------------------------------------------------------------------------------ */

/* `dl_tensor` is a DLTensor. Fills `tensor`, which borrows its memory and shape. */
KPKG_API kpkg_status kpkg_tensor_from_dlpack(const void *dl_tensor, kpkg_tensor *tensor);
/* Creates a DLManagedTensor (or, if `versioned`, a DLManagedTensorVersioned of DLPack 1.0). Its deleter calls
 * release(owner). On failure nothing is released. */
KPKG_API kpkg_status kpkg_tensor_to_dlpack(const kpkg_tensor *tensor, int32_t versioned, void *owner,
                                           void (*release)(void *owner), void **dl_managed_tensor);

/* Targets that this machine's CPU can run, best first ("x86-64-v3"); NULL past the end. */
KPKG_API const char *kpkg_cpu_target(size_t index);
/* Returns the threads of a large call: the last number of kpkg_set_cpu_threads, else KPKG_NUM_THREADS, else the result
 * of the followed function, else the size of the process' CPU set. */
KPKG_API int32_t kpkg_cpu_threads(void);
/* Sets the threads of later calls of the process, 1 to 1024, else KPKG_ERROR_USE. Running calls keep theirs. */
KPKG_API kpkg_status kpkg_set_cpu_threads(int32_t count);
/* Shares a thread budget with another library. If no number is set, each large call asks `count` on its own thread. It
 * must not throw. NULL ends that. */
KPKG_API void kpkg_follow_cpu_threads(int32_t (*count)(void));

/* ---- Devices, their memory and streams
 * ------------------------------------------------------------------------------ */

/* Returns the number of devices of a kind (KPKG_DEVICE_CPU, KPKG_DEVICE_CUDA). KPKG_ERROR_DEVICE if there is no NVIDIA
 * driver, or it does not start; the message says why. */
KPKG_API kpkg_status kpkg_device_count(int32_t type, int32_t *count);

typedef struct kpkg_device_info {
  size_t struct_size;
  const char *name;       /* "NVIDIA H200"; lives as long as the process */
  const char *target;     /* target name of exactly this device: "sm_90", "x86-64-v4" */
  int32_t processors;     /* multiprocessors of a GPU, threads of the host */
  int32_t driver_version; /* 13000: the newest CUDA version whose code the driver runs; 0 on the host */
  uint64_t memory_bytes;  /* 0 on the host */
  uint64_t cache_bytes;   /* the cache that all multiprocessors share; 0 on the host */
} kpkg_device_info;
KPKG_API kpkg_status kpkg_device_describe(kpkg_device device, kpkg_device_info *info);

/* Allocates memory of a device in stream order: work queued on `stream` afterwards may use it. It is at least 64-byte
 * aligned; NULL for 0 bytes of a GPU. `stream` is ignored on the host. */
KPKG_API kpkg_status kpkg_memory_allocate(kpkg_device device, size_t bytes, void *stream, void **data);
/* Frees memory of kpkg_memory_allocate once the work that is queued on `stream` is done. */
KPKG_API kpkg_status kpkg_memory_free(kpkg_device device, void *data, void *stream);
/* Copies within a device in stream order, without waiting. Copies from or to the host return when they are done. */
KPKG_API kpkg_status kpkg_memory_copy(kpkg_device to_device, void *to, kpkg_device from_device, const void *from,
                                      size_t bytes, void *stream);

/* Creates a stream that does not wait for the default stream. The host has none: NULL. */
KPKG_API kpkg_status kpkg_stream_create(kpkg_device device, void **stream);
/* Destroys a stream. Queued work still runs. NULL is allowed. */
KPKG_API kpkg_status kpkg_stream_destroy(kpkg_device device, void *stream);
/* Waits for all work queued so far, and reports errors of its kernels. NULL is the default stream. */
KPKG_API kpkg_status kpkg_stream_synchronize(kpkg_device device, void *stream);

#ifdef __cplusplus
}
#endif
#endif
