// A stand-in for NVIDIA's driver: devices are host memory; tests set its answers and read its launches in `fake`.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "fake_driver.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct FakeDriver fake = {.major = 9, .minor = 0, .devices = 2, .clusters = 8};
uint64_t keptBytes; // by the memory pool, which is created once

struct LaunchAttribute {
  int id, pad, flag, rest[15];
};
struct LaunchConfig {
  uint32_t grid[3], block[3], shared;
  void *stream;
  struct LaunchAttribute *attributes;
  uint32_t attributeCount;
};
// Mirrors runtime/device/cuda/StridedElements.h in C.
struct StridedElements {
  uint64_t from, to, count;
  uint32_t rank, reserved;
  uint64_t shape[16];
  int64_t fromStrides[16], toStrides[16];
};
struct Copy2D {
  size_t srcX, srcY;
  uint32_t srcType;
  const void *srcHost;
  uint64_t srcDevice;
  void *srcArray;
  size_t srcPitch, dstX, dstY;
  uint32_t dstType;
  void *dstHost;
  uint64_t dstDevice;
  void *dstArray;
  size_t dstPitch, width, height;
};

int cuInit(unsigned flags) { return 0; }
int cuDriverGetVersion(int *version) { return *version = 13000, 0; }
int cuDeviceGetCount(int *count) { return *count = fake.devices, 0; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { return *bytes = (size_t)64 << 30, 0; }
struct ErrorText {
  int code;
  const char *name, *text;
};
static const struct ErrorText errors[] = {
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
    {218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
};
static const struct ErrorText *errorOf(int code) {
  static const struct ErrorText other = {0, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"};
  for (size_t i = 0; i < sizeof errors / sizeof *errors; ++i)
    if (errors[i].code == code)
      return &errors[i];
  return &other;
}
int cuGetErrorName(int code, const char **name) { return *name = errorOf(code)->name, 0; }
int cuGetErrorString(int code, const char **text) { return *text = errorOf(code)->text, 0; }
int cuDeviceGet(int *device, int number) { return *device = number, number < fake.devices ? 0 : 101; }
int cuDeviceGetName(char *name, int size, int device) { return strncpy(name, "Fake", (size_t)size), 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  *value = attribute == 75 ? fake.major : attribute == 76 ? fake.minor : attribute == 38 ? 1 << 20 : 4;
  return 0;
}
int cuDevicePrimaryCtxRetain(void **context, int device) { return *context = &fake.contexts[device], 0; }
int cuCtxGetCurrent(void **context) { return *context = fake.current, 0; }
int cuCtxPushCurrent_v2(void *context) { return fake.current = context, ++fake.depth, 0; }
int cuCtxPopCurrent_v2(void **context) { return *context = fake.current, fake.current = 0, --fake.depth, 0; }
static int isMachineCode(const char *code) { return code[0] == 0x7f && !strncmp(code + 1, "ELF", 3); }
/* Reads PTX, and takes everything else for machine code. */
int cuLibraryLoadData(void **library, const void *code, void *a, void *b, unsigned c, void *d, void *e, unsigned f) {
  const char *text = code, *end = text + strlen(text);
  while (end > text && strchr(" \n", end[-1]))
    --end;
  ++fake.loads;
  if (fake.failLoading)
    return fake.failLoading;
  if (end == text || strstr(text, "no code"))
    return 200;
  if (strstr(text, ".visible .entry") && end[-1] != '}')
    return 218;
  return *library = strdup(text), 0;
}
/* Refuses machine code for as long as FAKE_DRIVER_REFUSES is set, or images with the text `fake.refused`. */
int cuLibraryGetModule(void **module, void *library) {
  if (fake.refused[0] ? strstr(library, fake.refused) != 0 : getenv("FAKE_DRIVER_REFUSES") && isMachineCode(library))
    return 209;
  return *module = library, 0;
}
int cuLibraryGetGlobal(uint64_t *address, size_t *bytes, void *library, const char *name) {
  static uint64_t zeros[2];
  if (!strstr(library, name))
    return 500;
  return *address = (uint64_t)(uintptr_t)zeros, *bytes = sizeof zeros, 0;
}
int cuLibraryGetKernel(void **kernel, void *library, const char *name) {
  if (strstr(library, ".visible .entry") && !strstr(library, name))
    return 500;
  return *kernel = strdup(name), 0;
}
int cuKernelGetFunction(void **function, void *kernel) { return *function = kernel, 0; }
int cuFuncSetAttribute(void *function, int attribute, int value) { return fake.allowedShared = value, 0; }
/* What the kernels of runtime/device/cuda/CopyElements.device.cpp do with their parameter. */
static void copyElements(const struct StridedElements *copy, uint64_t bytes) {
  ++fake.elementCopies;
  for (uint64_t number = 0; number < copy->count; ++number) {
    int64_t from = 0, to = 0;
    uint64_t rest = number;
    for (uint32_t dim = 0; dim < copy->rank; rest /= copy->shape[dim++]) {
      from += (int64_t)(rest % copy->shape[dim]) * copy->fromStrides[dim];
      to += (int64_t)(rest % copy->shape[dim]) * copy->toStrides[dim];
    }
    memcpy((char *)copy->to + to * (int64_t)bytes, (const char *)copy->from + from * (int64_t)bytes, bytes);
  }
}
/* Launches of `doubled_blocks` between cuStreamBeginCapture and cuStreamEndCapture. */
static struct {
  int isOpen, count;
  uint64_t words[16][4];
} captured;
/* Computes y = 2 x: pointer, extent and stride of x, then of y. */
static void doubleBlocks(const uint64_t words[4]) {
  for (uint64_t i = 0; i < words[1]; ++i)
    ((float *)words[3])[i] = 2 * ((float *)words[0])[i];
}
static void launchDoubled(void **parameters) {
  uint64_t words[4];
  for (int i = 0; i < 4; ++i)
    memcpy(&words[i], parameters[i], 8);
  if (captured.isOpen)
    memcpy(captured.words[captured.count++ % 16], words, sizeof words);
  else
    doubleBlocks(words);
}
int cuLaunchKernelEx(const struct LaunchConfig *config, void *function, void **parameters, void **extra) {
  if (fake.failLaunch)
    return 719;
  if (!strncmp(function, "kpkg_copy_", 10) || !strncmp(function, "kpkg_turn_", 10)) {
    fake.turns += !strncmp(function, "kpkg_turn_", 10);
    return copyElements(parameters[0], (uint64_t)atoi((char *)function + 10)), 0;
  }
  ++fake.launches;
  strncpy(fake.symbol, function, sizeof fake.symbol - 1);
  memcpy(fake.grid, config->grid, sizeof fake.grid);
  fake.threads = config->block[0], fake.shared = config->shared, fake.stream = config->stream;
  fake.attributes = 0;
  for (uint32_t i = 0; i < config->attributeCount; ++i)
    fake.attributes |= config->attributes[i].flag ? 1u << config->attributes[i].id : 0;
  for (int i = 0; i < fake.wordCount; ++i)
    memcpy(&fake.words[i], parameters[i], 8);
  if (fake.onLaunch)
    fake.onLaunch(parameters);
  if (!strncmp(function, "doubled_blocks", 14)) // of tests that check results
    launchDoubled(parameters);
  if (!strcmp(function, "failed_blocks")) // the report follows the grid
    **(int32_t **)parameters[3] = 2;
  return 0;
}
int cuOccupancyMaxActiveClusters(int *clusters, void *function, const struct LaunchConfig *config) {
  *clusters =
      config->attributeCount == 1 && config->attributes[0].id == 4 ? fake.clusters / config->attributes[0].flag : -1;
  return 0;
}
int cuTensorMapEncodeTiled(struct FakeTensorMap *map, int type, uint32_t rank, uint64_t address,
                           const uint64_t *extents, const uint64_t *strides, const uint32_t *box, const uint32_t *steps,
                           int interleave, int swizzle, int promotion, int fill) {
  static const int bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2};
  ++fake.encodings;
  if (fake.failEncoding || (uint64_t)map % 64 || address % 16 || rank < 1 || rank > 5 || type > 9 || interleave || fill)
    return 1;
  memset(map, 0, sizeof *map);
  map->address = address, map->type = (uint8_t)type, map->rank = (uint8_t)rank;
  map->swizzle = (uint8_t)swizzle, map->promotion = (uint8_t)promotion;
  if (swizzle && box[0] * (uint32_t)bytes[type] > 16u << swizzle)
    return 1;
  for (uint32_t i = 0; i < rank; ++i) {
    if (extents[i] < 1 || extents[i] > (uint64_t)1 << 32 || box[i] < 1 || box[i] > 256 || steps[i] != 1)
      return 1;
    map->extents[i] = extents[i], map->box[i] = box[i];
    if (i && (strides[i - 1] % 16 || strides[i - 1] >> 40))
      return 1;
    if (i)
      map->strides[i - 1] = strides[i - 1];
  }
  return 0;
}
int cuTensorMapEncodeIm2col(struct FakeTensorMap *map, int type, uint32_t rank, uint64_t address,
                            const uint64_t *extents, const uint64_t *strides, const int *lower, const int *upper,
                            uint32_t channels, uint32_t pixels, const uint32_t *steps, int interleave, int swizzle,
                            int promotion, int fill) {
  const uint32_t box[] = {channels, 1, 1, 1, 1}, ones[] = {1, 1, 1, 1, 1};
  if (rank < 3 || pixels < 1 || pixels > 1024 || steps[rank - 1] != 1 ||
      cuTensorMapEncodeTiled(map, type, rank, address, extents, strides, box, ones, interleave, swizzle, promotion,
                             fill))
    return 1;
  const int end = 1 << (16 / (rank - 2) - 1);
  map->pixels = (uint16_t)pixels;
  for (uint32_t i = 0; i < rank - 2; ++i) {
    if (lower[i] < -end || lower[i] >= end || upper[i] < -end || upper[i] >= end || steps[i + 1] < 1 ||
        steps[i + 1] > 8)
      return 1;
    map->lower[i] = (int16_t)lower[i], map->upper[i] = (int16_t)upper[i], map->steps[i] = (uint16_t)steps[i + 1];
  }
  return 0;
}
int cuTensorMapReplaceAddress(struct FakeTensorMap *map, uint64_t address) {
  return map->address = address, address % 16 ? 1 : 0;
}
int cuStreamIsCapturing(void *stream, uint32_t *state) { return *state = (uint32_t)fake.capturing, 0; }
int cuStreamGetCaptureInfo_v2(void *stream, uint32_t *state, uint64_t *id, void **graph, void *dependencies,
                              void *count) {
  return *state = (uint32_t)fake.capturing, *id = (uint64_t)fake.recording, *graph = &fake, 0;
}
int cuStreamBeginCapture_v2(void *stream, int mode) {
  return captured.count = 0, captured.isOpen = fake.capturing = 1, 0;
}
int cuStreamEndCapture(void *stream, void **graph) {
  return captured.isOpen = fake.capturing = 0, *graph = &captured, 0;
}
int cuGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long flags) {
  return *executable = graph, 0;
}
int cuGraphLaunch(void *executable, void *stream) {
  for (int i = 0; i < captured.count; ++i)
    doubleBlocks(captured.words[i]);
  return 0;
}
int cuGraphExecDestroy(void *executable) { return 0; }
int cuGraphDestroy(void *graph) { return 0; }
int cuStreamGetId(void *stream, uint64_t *id) { return *id = (uint64_t)stream + 1, fake.capturing ? 900 : 0; }
int cuUserObjectCreate(void **object, void *kept, void (*forget)(void *), unsigned references, unsigned flags) {
  return *object = &fake.kept, fake.kept = kept, fake.forget = forget, 0;
}
int cuGraphRetainUserObject(void *graph, void *object, unsigned references, unsigned flags) { return 0; }
int cuCtxSynchronize(void) { return ++fake.waits, 0; }
int cuStreamCreate(void **stream, unsigned flags) { return *stream = malloc(1), ++fake.streams, 0; }
int cuStreamDestroy_v2(void *stream) { return free(stream), --fake.streams, 0; }
int cuStreamSynchronize(void *stream) { return ++fake.waits, 0; }
int cuEventCreate(void **event, unsigned flags) { return *event = malloc(sizeof(struct timespec)), ++fake.events, 0; }
int cuEventDestroy_v2(void *event) { return free(event), --fake.events, 0; }
int cuEventRecord(void *event, void *stream) { return clock_gettime(CLOCK_MONOTONIC, event), 0; }
int cuEventElapsedTime(float *milliseconds, struct timespec *start, struct timespec *end) {
  *milliseconds = (float)((double)(end->tv_sec - start->tv_sec) * 1e3 + (double)(end->tv_nsec - start->tv_nsec) * 1e-6);
  return 0;
}
int cuMemPoolCreate(void **pool, const void *properties) { return *pool = &keptBytes, 0; }
int cuMemPoolSetAttribute(void *pool, int attribute, uint64_t *value) { return *(uint64_t *)pool = *value, 0; }
int cuMemAllocFromPoolAsync(uint64_t *memory, size_t bytes, void *pool, void *stream) {
  if (bytes > (size_t)64 << 30)
    return 2;
  return *memory = (uint64_t)aligned_alloc(256, (bytes + 255) / 256 * 256), ++fake.allocations, 0;
}
int cuMemFreeAsync(uint64_t memory, void *stream) { return free((void *)memory), --fake.allocations, 0; }
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream) {
  return memcpy((void *)to, from, bytes), ++fake.copies, 0;
}
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream) {
  return memcpy(to, (void *)from, bytes), ++fake.copies, 0;
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream) {
  return memcpy((void *)to, (void *)from, bytes), ++fake.copies, 0;
}
int cuMemcpy2DAsync_v2(const struct Copy2D *copy, void *stream) {
  for (size_t row = 0; row < copy->height; ++row)
    memcpy((char *)copy->dstDevice + row * copy->dstPitch, (char *)copy->srcDevice + row * copy->srcPitch, copy->width);
  return ++fake.copies, 0;
}
