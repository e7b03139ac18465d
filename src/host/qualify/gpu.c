/* gpu.c - a matrix product on each GPU, by CUDA's driver and cuBLAS if this machine has them: they are loaded
 * when the test runs, never linked. The result is compared with the known answer, element by element. */
#include "host/qualify/internal.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"

enum { SIZE_DEFAULT = 2048, OP_N = 0, DEVICES_MAX = 64 };

typedef int (*call_init)(unsigned flags);
typedef int (*call_count)(int *count);
typedef int (*call_device)(int *device, int ordinal);
typedef int (*call_retain)(void **context, int device);
typedef int (*call_release)(int device);
typedef int (*call_current)(void *context);
typedef int (*call_alloc)(uint64_t *address, size_t bytes);
typedef int (*call_free)(uint64_t address);
typedef int (*call_to)(uint64_t to, const void *from, size_t bytes);
typedef int (*call_from)(void *to, uint64_t from, size_t bytes);
typedef int (*call_sync)(void);
typedef int (*call_create)(void **handle);
typedef int (*call_destroy)(void *handle);
typedef int (*call_sgemm)(void *handle, int left_op, int right_op, int m, int n, int k, const float *alpha,
                          uint64_t left, int left_stride, uint64_t right, int right_stride, const float *beta,
                          uint64_t out, int out_stride);

struct cuda {
    call_init init;
    call_count count;
    call_device device;
    call_retain retain;
    call_release release;
    call_current current;
    call_alloc alloc;
    call_free free;
    call_to to;
    call_from from;
    call_sync sync;
    call_create create;
    call_destroy destroy;
    call_sgemm sgemm;
};

struct symbol {
    const char *name;
    size_t offset; /* in struct cuda */
};
#define SYMBOL(text, member)                                                                                 \
    {                                                                                                        \
        text, offsetof(struct cuda, member)                                                                  \
    }
static const struct symbol driver_symbols[] = {
    SYMBOL("cuInit", init),
    SYMBOL("cuDeviceGetCount", count),
    SYMBOL("cuDeviceGet", device),
    SYMBOL("cuDevicePrimaryCtxRetain", retain),
    SYMBOL("cuDevicePrimaryCtxRelease_v2", release),
    SYMBOL("cuCtxSetCurrent", current),
    SYMBOL("cuMemAlloc_v2", alloc),
    SYMBOL("cuMemFree_v2", free),
    SYMBOL("cuMemcpyHtoD_v2", to),
    SYMBOL("cuMemcpyDtoH_v2", from),
    SYMBOL("cuCtxSynchronize", sync),
};
static const struct symbol blas_symbols[] = {
    SYMBOL("cublasCreate_v2", create),
    SYMBOL("cublasDestroy_v2", destroy),
    SYMBOL("cublasSgemm_v2", sgemm),
};

/* --- the libraries -------------------------------------------------------------------------------------- */

static bool find_symbols(void *library, const struct symbol *symbols, size_t count, struct cuda *cuda,
                         struct test_answer *answer)
{
    for (size_t i = 0; i < count; i++) {
        void *found = dlsym(library, symbols[i].name);
        if (!found)
            return test_fail(answer, "the GPU's library has no %s", symbols[i].name);
        memcpy((char *)cuda + symbols[i].offset, &found, sizeof found);
    }
    return true;
}

static void *open_first(const char *const *names)
{
    void *library = NULL;
    for (; *names && !library; names++)
        library = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
    return library;
}

static bool skip(struct test_answer *answer, const char *why)
{
    answer->skipped = true;
    snprintf(answer->why, sizeof answer->why, "%s", why);
    return true;
}

static bool open_libraries(const struct qualify_options *options, struct cuda *cuda,
                           struct test_answer *answer)
{
    const char *drivers[] = {options->cuda ? options->cuda : "libcuda.so.1", NULL};
    const char *own[] = {options->cublas, NULL};
    static const char *const usual[] = {"libcublas.so", "libcublas.so.13", "libcublas.so.12",
                                        "libcublas.so.11", NULL};
    void *driver = open_first(drivers);
    if (!driver)
        return skip(answer, "this machine has no CUDA driver");
    void *blas = open_first(options->cublas ? own : usual);
    if (!blas)
        return skip(answer, "this machine has no cuBLAS");
    return find_symbols(driver, driver_symbols, sizeof driver_symbols / sizeof *driver_symbols, cuda,
                        answer) &&
           find_symbols(blas, blas_symbols, sizeof blas_symbols / sizeof *blas_symbols, cuda, answer);
}

/* --- one device ----------------------------------------------------------------------------------------- */

struct device {
    const struct cuda *cuda;
    int number, handle_of; /* ordinal; the driver's handle */
    void *context, *blas;
    uint64_t left, right, out; /* on the device; 0: none */
    float *host;               /* [size * size] */
    const struct gemm_answer *wanted;
    uint32_t size;
};

static bool check(const struct device *device, const char *what, int rc, struct test_answer *answer)
{
    return rc == 0 || test_fail(answer, "GPU %d: %s: error %d", device->number, what, rc);
}

static size_t matrix_bytes(uint32_t size)
{
    return (size_t)size * size * sizeof(float);
}

/* Sends a matrix to the GPU. cuBLAS stores columns, so element (row, column) is at column * size + row. */
static bool send(struct device *device, uint64_t to,
                 double (*element)(const struct gemm_answer *, uint32_t, uint32_t),
                 struct test_answer *answer)
{
    for (uint32_t i = 0; i < device->size * device->size; i++)
        device->host[i] = (float)element(device->wanted, i % device->size, i / device->size);
    return check(device, "copying to it", device->cuda->to(to, device->host, matrix_bytes(device->size)),
                 answer);
}

static bool begin_device(struct device *device, struct test_answer *answer)
{
    const struct cuda *cuda = device->cuda;
    return check(device, "finding it", cuda->device(&device->handle_of, device->number), answer) &&
           check(device, "opening it", cuda->retain(&device->context, device->handle_of), answer) &&
           check(device, "using it", cuda->current(device->context), answer) &&
           check(device, "opening cuBLAS", cuda->create(&device->blas), answer) &&
           check(device, "its memory", cuda->alloc(&device->left, matrix_bytes(device->size)), answer) &&
           check(device, "its memory", cuda->alloc(&device->right, matrix_bytes(device->size)), answer) &&
           check(device, "its memory", cuda->alloc(&device->out, matrix_bytes(device->size)), answer) &&
           send(device, device->left, gemm_left, answer) && send(device, device->right, gemm_right, answer);
}

static bool multiply(const struct device *device, struct test_answer *answer)
{
    static const float one = 1, zero = 0;
    int size = (int)device->size;
    int rc = device->cuda->sgemm(device->blas, OP_N, OP_N, size, size, size, &one, device->left, size,
                                 device->right, size, &zero, device->out, size);
    return check(device, "multiplying", rc, answer);
}

static bool compare(struct device *device, struct test_answer *answer)
{
    int rc = device->cuda->from(device->host, device->out, matrix_bytes(device->size));
    if (!check(device, "copying from it", rc, answer))
        return false;
    for (uint32_t i = 0; i < device->size * device->size; i++) {
        double wanted = gemm_product(device->wanted, i % device->size, i / device->size);
        if (device->host[i] != (float)wanted)
            return test_fail(
                answer, "GPU %d computed a wrong product: %.9g instead of %.9g in row %u, column %u",
                device->number, (double)device->host[i], wanted, i % device->size, i / device->size);
    }
    return true;
}

/* Computes batches of products until the time is over; the first and the last result are compared. */
static bool work(struct device *device, int64_t until_ns, double *ret_gflops, struct test_answer *answer)
{
    enum { BATCH = 8 };
    double products = 0, size = device->size;
    if (!multiply(device, answer) || !compare(device, answer))
        return false;
    int64_t begun_ns = test_now_ns(), now_ns;
    do {
        for (int i = 0; i < BATCH; i++)
            if (!multiply(device, answer))
                return false;
        if (!check(device, "waiting for it", device->cuda->sync(), answer))
            return false;
        products += BATCH;
        now_ns = test_now_ns();
    } while (now_ns < until_ns);
    *ret_gflops = products * 2 * size * size * size / (double)(now_ns - begun_ns);
    return compare(device, answer);
}

static void end_device(struct device *device)
{
    const uint64_t memory[] = {device->left, device->right, device->out};
    for (int i = 0; i < 3; i++)
        if (memory[i])
            device->cuda->free(memory[i]);
    if (device->blas)
        device->cuda->destroy(device->blas);
    if (device->context)
        device->cuda->release(device->handle_of);
}

bool test_gpu(const struct qualify_options *options, struct test_answer *answer)
{
    struct cuda cuda;
    struct gemm_answer wanted;
    uint32_t size = options->gpu_size ? options->gpu_size : SIZE_DEFAULT;
    int count = 0;
    if (!open_libraries(options, &cuda, answer) || answer->skipped)
        return answer->skipped;
    int rc = cuda.init(0);
    if (rc == 0)
        rc = cuda.count(&count);
    if (rc != 0)
        return test_fail(answer, "the CUDA driver does not start: error %d", rc);
    test_figure(answer, "gpu/devices", count);
    if (count <= 0 || count > DEVICES_MAX)
        return skip(answer, "the CUDA driver knows no GPU");
    gemm_init(&wanted, size, 7);
    float *host = mem_alloc(matrix_bytes(size));
    double slowest = 0;
    bool good = true;
    for (int i = 0; i < count && good; i++) {
        struct device device = {.cuda = &cuda, .number = i, .host = host, .wanted = &wanted, .size = size};
        double gflops = 0;
        int64_t until_ns = test_now_ns() + options->budget_ns / count;
        good = begin_device(&device, answer) && work(&device, until_ns, &gflops, answer);
        end_device(&device);
        slowest = i == 0 || gflops < slowest ? gflops : slowest;
    }
    mem_free(host);
    gemm_done(&wanted);
    if (good)
        test_figure(answer, "gpu/gflops", slowest);
    return good;
}
