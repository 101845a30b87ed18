/* The C ABI of the kpkg runtime: open packages, look ops up, call them, ask why.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Rules. Every function returns a status and throws nothing; on failure kpkg_last_error() tells more about this
 * thread's last failed call. Structs that start with `struct_size` grow at the end only: set it to sizeof the struct.
 * Structs without it never change. Strings are UTF-8 and owned by the object that gave them unless said otherwise. Any
 * number of threads may use any object at the same time. Opening a package runs nothing of it.
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
  KPKG_ERROR_USE = 1,         /* this interface used wrongly: null pointer, unknown struct size, wrong argument count */
  KPKG_ERROR_FILE = 2,        /* a file cannot be read or written */
  KPKG_ERROR_FORMAT = 3,      /* a package is refused: not a package, damaged, or of a newer major version */
  KPKG_ERROR_TRUST = 4,       /* the trust policy refuses a section */
  KPKG_ERROR_NOT_FOUND = 5,   /* no op, section or device of this name */
  KPKG_ERROR_KERNEL = 6,      /* KernelError: arguments refused by the op's plan, or an assert in a kernel failed */
  KPKG_ERROR_NO_INSTANCE = 7, /* KernelError: nothing in the package can run this call, and no fallback took it */
  KPKG_ERROR_DEVICE = 8,      /* DeviceError: a driver call failed */
  KPKG_ERROR_MEMORY = 9,      /* out of memory */
  KPKG_ERROR_UNSUPPORTED = 10, /* valid, but this version of the runtime cannot do it */
  KPKG_ERROR_INTERNAL = 11,
  KPKG_ERROR_CAPTURE = 12 /* KernelError: what the call needs cannot be done while a graph is captured */
} kpkg_status;

typedef struct kpkg_error {
  size_t struct_size;
  kpkg_status status;
  const char *message;  /* one complete sentence or more; never NULL */
  const char *op;       /* "" when not about an op */
  const char *instance; /* "" when not about a kernel instance */
  const char *argument; /* "" when not about one argument */
} kpkg_error;

/* This thread's last failure; its strings live until this thread's next failing call. */
KPKG_API void kpkg_last_error(kpkg_error *error);
/* Sets this thread's last error; for callbacks (allocators, fallbacks) that return a failing status. */
KPKG_API kpkg_status kpkg_set_error(kpkg_status status, const char *message);
/* "ok", "format error", ... */
KPKG_API const char *kpkg_status_name(kpkg_status status);
/* "0.1.0" */
KPKG_API const char *kpkg_version(void);

/* A string made for the caller, freed with kpkg_string_free. */
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
  KPKG_LOG_PRINT = 4 /* what a kernel prints; the default sink always shows it, as it is */
} kpkg_log_level;
/* May be called by several threads at once; must not call kpkg_set_log. */
typedef void (*kpkg_log_fn)(void *context, kpkg_log_level level, const char *message);
/* Where messages go, for the whole process. NULL restores the default: warnings and worse to stderr, one line each
 * (KPKG_LOG=error|warn|info|debug moves the limit). */
KPKG_API void kpkg_set_log(kpkg_log_fn log, void *context);

/* ---- Tensors and values ------------------------------------------------------------------------------------------ */

typedef enum kpkg_dtype {
  KPKG_NO_DTYPE = 0,
  KPKG_BOOL = 1,
  KPKG_INT8 = 2,
  KPKG_INT16 = 3,
  KPKG_INT32 = 4,
  KPKG_INT64 = 5,
  KPKG_UINT8 = 6,
  KPKG_UINT16 = 7,
  KPKG_UINT32 = 8,
  KPKG_UINT64 = 9,
  KPKG_FLOAT16 = 10,
  KPKG_BFLOAT16 = 11,
  KPKG_FLOAT32 = 12,
  KPKG_FLOAT64 = 13,
  KPKG_FLOAT8_E4M3FN = 14,
  KPKG_FLOAT8_E5M2 = 15
} kpkg_dtype;
#define KPKG_DTYPE_COUNT 16

/* "float32"; "none" for KPKG_NO_DTYPE, NULL for a number that is no dtype. */
KPKG_API const char *kpkg_dtype_name(int32_t dtype);
/* KPKG_NO_DTYPE when there is none of this name. */
KPKG_API int32_t kpkg_dtype_from_name(const char *name);
/* Bytes of one element; 0 for KPKG_NO_DTYPE. */
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
  void *data;             /* address of the element with all indices 0; may be NULL when there is no element */
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
  KPKG_STRING = 8
} kpkg_kind;

/* One argument; memory it points at is the caller's. Frozen. */
typedef struct kpkg_value {
  int32_t kind;  /* kpkg_kind */
  int32_t count; /* KPKG_INT_LIST: number of entries */
  union {
    const kpkg_tensor *tensor;
    int64_t integer; /* KPKG_INT, KPKG_BOOLEAN (0 or 1), KPKG_DTYPE */
    double real;
    const int64_t *list;
    const char *string;
  } as;
} kpkg_value;

/* ---- Libraries --------------------------------------------------------------------------------------------------- */

typedef struct kpkg_library kpkg_library;
typedef struct kpkg_op kpkg_op;

typedef enum kpkg_trust {
  KPKG_TRUST_DEFAULT = 0, /* KPKG_TRUST of the environment, else digest */
  KPKG_TRUST_ANY = 1,     /* digests are not checked */
  KPKG_TRUST_DIGEST = 2,  /* each section's SHA-256 is checked before its first use */
  KPKG_TRUST_SIGNED = 3   /* also, the manifest must carry a signature by one of `keys` */
} kpkg_trust;

typedef struct kpkg_open_options {
  size_t struct_size;
  int32_t trust;           /* kpkg_trust */
  const char *const *keys; /* Ed25519 public keys, 64 hexadecimal digits each */
  size_t key_count;
  const char *policy; /* in place of `trust` and `keys`, the text of KPKG_TRUST; may be NULL */
  const char *lock;   /* a lock file that holds beside that of KPKG_LOCK; may be NULL */
} kpkg_open_options;

/* Reads and checks the file's header and manifest; sections are read when first needed. `options` may be NULL. */
KPKG_API kpkg_status kpkg_library_open(const char *path, const kpkg_open_options *options, kpkg_library **library);
/* The same over memory, which must outlive the library and all its ops; `name` is used in messages. */
KPKG_API kpkg_status kpkg_library_open_memory(const void *bytes, size_t size, const char *name,
                                              const kpkg_open_options *options, kpkg_library **library);
/* Gives up the caller's share; registries hold their own. Ops looked up through the library itself must be neither used
 * after it nor running. */
KPKG_API void kpkg_library_close(kpkg_library *library);

KPKG_API size_t kpkg_library_op_count(const kpkg_library *library);
/* NULL past the end. The op belongs to the library. */
KPKG_API const kpkg_op *kpkg_library_op_at(const kpkg_library *library, size_t index);
/* `name` as in the package ("kpkg::softmax"), or without its namespace when that is not ambiguous. */
KPKG_API kpkg_status kpkg_library_op(const kpkg_library *library, const char *name, const kpkg_op **op);
/* The manifest as canonical JSON. */
KPKG_API const char *kpkg_library_manifest(const kpkg_library *library);
/* A section's checked and decompressed bytes, alive as long as the library. */
KPKG_API kpkg_status kpkg_library_section(const kpkg_library *library, const char *name, const void **data,
                                          size_t *size);
/* Checks every section's digest, and every plan. */
KPKG_API kpkg_status kpkg_library_verify(const kpkg_library *library);
/* Loads everything that calls on this device can need, so that no later call loads. */
KPKG_API kpkg_status kpkg_library_prewarm(const kpkg_library *library, kpkg_device device);

/* ---- Ops: schema ------------------------------------------------------------------------------------------------- */

typedef struct kpkg_op_info {
  size_t struct_size;
  const char *name;       /* "kpkg::softmax" */
  const char *schema;     /* PyTorch schema without the namespace: "softmax(Tensor input, int dim=-1) -> Tensor" */
  const char *doc;        /* "" when there is none */
  const char *reference;  /* name of the op with the reference semantics, "" when there is none */
  const char *plan;       /* section names of the bytecode; see kpkg_library_section */
  const char *shape_plan; /* "" when there is none */
  int32_t argument_count;
  int32_t result_count;
  const char
      *backward; /* name of the op with the gradients, "" when there is none; kpkg_op_kernel_info says what it takes */
  const char *torch; /* JSON of how PyTorch treats the op, "" when the package does not say; docs/package-format.md */
} kpkg_op_info;
KPKG_API kpkg_status kpkg_op_describe(const kpkg_op *op, kpkg_op_info *info);

/* The op's bytecode as JSON, for other evaluators: of `which`, KPKG_PLAN_SHAPES asks for the slice that decides shapes
 * in place of the whole plan, KPKG_PLAN_ON_GPU for that of calls on GPUs; 0 is the whole plan of calls on the host.
 */
enum { KPKG_PLAN_SHAPES = 1, KPKG_PLAN_ON_GPU = 2 };
KPKG_API kpkg_status kpkg_op_plan_json(const kpkg_op *op, int32_t which, kpkg_string **json);

typedef struct kpkg_argument_info {
  size_t struct_size;
  const char *name;
  const char
      *type; /* schema type: "Tensor", "Tensor?", "Tensor(a!)", "int", "float", "bool", "int[]", "ScalarType", "str" */
  int32_t kind;     /* kpkg_kind of a value that is not None */
  int32_t optional; /* 1: None is accepted */
  int32_t mutates;  /* 1: the op writes into this tensor */
  int32_t has_default;
  kpkg_value default_value; /* kind KPKG_DEFAULT when there is none */
} kpkg_argument_info;
KPKG_API kpkg_status kpkg_op_argument(const kpkg_op *op, int32_t index, kpkg_argument_info *info);
/* Schema type of a result: "Tensor", "int", ... */
KPKG_API kpkg_status kpkg_op_result_type(const kpkg_op *op, int32_t index, const char **type);

/* ---- Ops: calls -------------------------------------------------------------------------------------------------- */

/* Memory that a call wants for a result. */
typedef struct kpkg_allocation {
  size_t struct_size;
  int32_t index; /* 0, 1, ... within the call; kpkg_result.source names it */
  int32_t rank;
  int32_t dtype;
  kpkg_device device;
  const int64_t *shape;
  const int64_t *strides; /* non-negative, no two elements overlap */
  size_t bytes;           /* from the first to past the last element; 0 is possible */
} kpkg_allocation;

/* Gives memory aligned to at least the element size (64 bytes is best) in *data. Called on the caller's thread, before
 * anything of the op runs. A failing status ends the call with it. */
typedef kpkg_status (*kpkg_allocate_fn)(void *context, const kpkg_allocation *allocation, void **data);

typedef enum kpkg_source {
  KPKG_FROM_ALLOCATION = 0, /* memory asked from the allocator */
  KPKG_FROM_ARGUMENT = 1,   /* an argument itself, or a view of it */
  KPKG_FROM_OUTPUT = 2,     /* the caller's `outputs` entry */
  KPKG_FROM_NOTHING = 3     /* None, or a value that is no tensor */
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
  const kpkg_value *arguments; /* in schema order; those past argument_count take their defaults */
  int32_t argument_count;
  int32_t result_capacity;   /* entries of `results`; at least the op's result_count */
  kpkg_result *results;      /* filled by the call */
  void *stream;              /* device stream; NULL: the default stream. The host has none: calls return when done. */
  kpkg_allocate_fn allocate; /* may be NULL when all results go to `outputs` */
  void *allocate_context;
  const kpkg_tensor *const *outputs; /* NULL, or result_count entries: memory for result i, or NULL */
  void *user;                        /* not looked at; for fallbacks */
  const char *precision; /* for an empty argument of that name: "highest", "high", "medium"; NULL: the op's choice */
} kpkg_call;

/* Runs the op. Nothing has been written when it fails with anything but a failed kernel assert or a DeviceError. */
KPKG_API kpkg_status kpkg_op_call(const kpkg_op *op, kpkg_call *call);
/* The same by kernels of packages alone, for callers that have another way. KPKG_ERROR_NO_INSTANCE where no kernel can
 * run the call: nothing has happened then, and nothing is counted. */
KPKG_API kpkg_status kpkg_op_call_packaged(const kpkg_op *op, kpkg_call *call);
/* Checks the arguments and fills `results` with shapes, dtypes and strides: no memory is read, written or allocated.
 * Data pointers may be NULL; stream, allocate and outputs are ignored. */
KPKG_API kpkg_status kpkg_op_infer(const kpkg_op *op, kpkg_call *call);

typedef enum kpkg_text_format { KPKG_TEXT = 0, KPKG_JSON = 1 } kpkg_text_format;
/* How a call would be resolved: each instance, accepted or refused and why, the copies, the choice. Runs nothing. */
KPKG_API kpkg_status kpkg_op_explain(const kpkg_op *op, const kpkg_call *call, kpkg_text_format format,
                                     kpkg_string **text);

typedef struct kpkg_op_stats {
  size_t struct_size;
  uint64_t calls;       /* all, including failed ones */
  uint64_t resolutions; /* signatures evaluated: calls that did not hit the cache */
  uint64_t launches;
  uint64_t copies; /* steps that only move data (a `contiguous` that was needed, an output of other strides) */
  uint64_t copied_bytes;
  uint64_t fallbacks;
  uint64_t errors;
  uint64_t references; /* those of the fallbacks that were the packaged reference */
} kpkg_op_stats;
KPKG_API kpkg_status kpkg_op_get_stats(const kpkg_op *op, kpkg_op_stats *stats);
/* JSON: counters, the kernel instances that ran and how often, fallbacks by reason. */
KPKG_API kpkg_status kpkg_op_kernel_info(const kpkg_op *op, kpkg_string **json);

/* For callers that do an op's work by other means because the package cannot: counts a fallback with its reason and
 * logs it, as the policy says. Under the policy strict it fails with KPKG_ERROR_NO_INSTANCE instead. */
KPKG_API kpkg_status kpkg_op_count_fallback(const kpkg_op *op, const char *reason);

/* ---- Profile ----------------------------------------------------------------------------------------------------- */

enum {
  /* Each call is also a range for NVTX tools, through the library that KPKG_NVTX names, else libnvToolsExt.so.1 or
   * libnvtx3interop.so.1: KPKG_ERROR_NOT_FOUND when there is none. */
  KPKG_PROFILE_RANGES = 1,
  /* Launches on a GPU are timed by events though CUPTI could. */
  KPKG_PROFILE_EVENTS = 2
};
/* Records every call and every launch of the process from now on; what was recorded before is forgotten. Launches on a
 * GPU are timed by CUPTI where the process can load it and no other tool uses it, else by a pair of events around each;
 * not those that are captured into a graph. `flags` is a sum of KPKG_PROFILE_..., or 0. */
KPKG_API kpkg_status kpkg_profile_start(uint32_t flags);
/* Ends it, waits for the GPUs, and gives what was recorded as JSON; docs/runtime.md says what is in it. */
KPKG_API kpkg_status kpkg_profile_stop(kpkg_string **json);

/* ---- Registry: several libraries and fallbacks
 * ------------------------------------------------------------------------ */

typedef struct kpkg_registry kpkg_registry;

typedef enum kpkg_policy {
  KPKG_POLICY_DEFAULT = 0, /* KPKG_FALLBACK of the environment, else warn */
  KPKG_POLICY_STRICT = 1,  /* nothing but instances: the call fails with the list of what was tried */
  KPKG_POLICY_WARN = 2,    /* falls back and logs once per op and reason */
  KPKG_POLICY_SILENT = 3   /* falls back and only counts */
} kpkg_policy;

/* Does what the op does: fills call->results, memory through call->allocate or call->outputs. All arguments are given
 * (no KPKG_DEFAULT), unless the op is known by its name alone. Sets an error with kpkg_set_error when it fails; after
 * KPKG_ERROR_NO_INSTANCE the packaged reference is tried. */
typedef kpkg_status (*kpkg_fallback_fn)(void *context, const kpkg_op *op, kpkg_call *call);

KPKG_API kpkg_status kpkg_registry_create(kpkg_registry **registry);
KPKG_API void kpkg_registry_destroy(kpkg_registry *registry);
/* Adds a library (the registry takes its own share). Libraries added earlier are asked first. */
KPKG_API kpkg_status kpkg_registry_add(kpkg_registry *registry, const kpkg_library *library);
/* Opens and adds every *.kpkg of the ':'-separated folders and files; NULL takes KPKG_PATH. */
KPKG_API kpkg_status kpkg_registry_add_path(kpkg_registry *registry, const char *path);
/* What runs when no instance can; without it that is the op's packaged reference. `op` is the name of an op of a
 * library, or that of any op in full ("kpkg::gemm"), or a schema ("kpkg::gemm(Tensor a, Tensor b, float alpha=1.0) ->
 * Tensor"): libraries may come later or never. Until one comes, an op with a schema is called as any other, one with a
 * name alone hands its arguments on as they are. `destroy` (may be NULL) is called on replacement and at the end. A
 * NULL `fallback` removes it. */
KPKG_API kpkg_status kpkg_registry_set_fallback(kpkg_registry *registry, const char *op, kpkg_fallback_fn fallback,
                                                void *context, void (*destroy)(void *context));
KPKG_API kpkg_status kpkg_registry_set_policy(kpkg_registry *registry, kpkg_policy policy);
/* The policy of one op, which goes before the registry's; KPKG_POLICY_DEFAULT follows the registry's again. */
KPKG_API kpkg_status kpkg_registry_set_op_policy(kpkg_registry *registry, const char *op, kpkg_policy policy);
/* Restricts which instances calls of the op may use, until it is set again; NULL allows all. JSON, each entry optional:
 *   {"params": {"BM": ["64", "128"]}, "kernels": {"gemm_tiles": {"BN": ["64"]}}, "target": "sm_90a", "variant":
 * "vector", "threads": [128, 256], "instances": {"gemm_tiles": NAME}, "precision": "high"}, which is for an empty
 * argument `precision`. `params` are for every kernel that has them, those under a kernel's name for that one, written
 * as in instance names ("64", "True"). An instance's whole name is as in kpkg_op_explain. */
KPKG_API kpkg_status kpkg_registry_restrict(kpkg_registry *registry, const char *op, const char *json);
/* The op through the registry: its libraries, then its fallback, then its reference. Lives as long as the registry. */
KPKG_API kpkg_status kpkg_registry_op(const kpkg_registry *registry, const char *name, const kpkg_op **op);
KPKG_API size_t kpkg_registry_op_count(const kpkg_registry *registry);
KPKG_API const kpkg_op *kpkg_registry_op_at(const kpkg_registry *registry, size_t index);

/* ---- DLPack and this machine ------------------------------------------------------------------------------------ */

/* `dl_tensor` is a DLTensor. Fills `tensor`, which borrows its memory and shape. */
KPKG_API kpkg_status kpkg_tensor_from_dlpack(const void *dl_tensor, kpkg_tensor *tensor);
/* Makes a DLManagedTensor (or, if `versioned`, a DLManagedTensorVersioned of DLPack 1.0); its deleter calls
 * release(owner). On failure nothing is released. */
KPKG_API kpkg_status kpkg_tensor_to_dlpack(const kpkg_tensor *tensor, int32_t versioned, void *owner,
                                           void (*release)(void *owner), void **dl_managed_tensor);

/* Targets that this machine's CPU can run, best first ("x86-64-v3"); NULL past the end. */
KPKG_API const char *kpkg_cpu_target(size_t index);
/* Threads that a large call uses: what kpkg_set_cpu_threads said last, else KPKG_NUM_THREADS, else what the followed
 * function says, else the size of the process' CPU set. */
KPKG_API int32_t kpkg_cpu_threads(void);
/* From now on, in all calls of the process; those that run already keep theirs. 1 to 1024, else KPKG_ERROR_USE. */
KPKG_API kpkg_status kpkg_set_cpu_threads(int32_t count);
/* Shares a budget with another library: `count` is asked at each large call, on its thread, where nobody has set a
 * number. It must not throw. NULL ends that. */
KPKG_API void kpkg_follow_cpu_threads(int32_t (*count)(void));

/* ---- Devices, their memory and streams
 * ------------------------------------------------------------------------------ */

/* How many devices of a kind (KPKG_DEVICE_CPU, KPKG_DEVICE_CUDA) there are. KPKG_ERROR_DEVICE when there is no NVIDIA
 * driver, or it does not start; the message says why. */
KPKG_API kpkg_status kpkg_device_count(int32_t type, int32_t *count);

typedef struct kpkg_device_info {
  size_t struct_size;
  const char *name;       /* "NVIDIA H200"; lives as long as the process */
  const char *target;     /* what code for exactly this device is called: "sm_90", "x86-64-v4" */
  int32_t processors;     /* multiprocessors of a GPU, threads of the host */
  int32_t driver_version; /* 13000: the newest CUDA version whose code the driver runs; 0 on the host */
  uint64_t memory_bytes;  /* 0 on the host */
  uint64_t cache_bytes;   /* the cache that all multiprocessors share; 0 on the host */
} kpkg_device_info;
KPKG_API kpkg_status kpkg_device_describe(kpkg_device device, kpkg_device_info *info);

/* Memory of a device, in the order of `stream`: it may be used by work queued on the stream afterwards. At least
 * 64-byte aligned; NULL for 0 bytes of a GPU. `stream` is not looked at on the host. */
KPKG_API kpkg_status kpkg_memory_allocate(kpkg_device device, size_t bytes, void *stream, void **data);
/* Gives memory of kpkg_memory_allocate back once the work that is queued on `stream` is done. */
KPKG_API kpkg_status kpkg_memory_free(kpkg_device device, void *data, void *stream);
/* Copies within a device in the order of `stream`, without waiting; from or to the host returns when the copy is done.
 */
KPKG_API kpkg_status kpkg_memory_copy(kpkg_device to_device, void *to, kpkg_device from_device, const void *from,
                                      size_t bytes, void *stream);

/* A new stream, which does not wait for the default stream. The host has none: NULL. */
KPKG_API kpkg_status kpkg_stream_create(kpkg_device device, void **stream);
/* Work that is queued still runs. NULL is allowed. */
KPKG_API kpkg_status kpkg_stream_destroy(kpkg_device device, void *stream);
/* Waits for all work queued so far. Errors of kernels that ran show here. NULL is the default stream. */
KPKG_API kpkg_status kpkg_stream_synchronize(kpkg_device device, void *stream);

#ifdef __cplusplus
}
#endif
#endif
