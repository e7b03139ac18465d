/* stub_cuda.c - CUDA's driver and cuBLAS, as far as host/qualify/gpu.c calls them: two devices, whose memory
 * is this process's. The variable STUB_CUDA makes them misbehave: "wrong" (one element of each product of
 * device 1), "abort", "hang" (in cuInit), "none" (no devices). */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int cuInit(unsigned flags);
int cuDeviceGetCount(int *count);
int cuDeviceGet(int *device, int ordinal);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(uint64_t *address, size_t bytes);
int cuMemFree_v2(uint64_t address);
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes);
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes);
int cuCtxSynchronize(void);
int cublasCreate_v2(void **handle);
int cublasDestroy_v2(void *handle);
int cublasSgemm_v2(void *handle, int left_op, int right_op, int m, int n, int k, const float *alpha,
                   uint64_t left, int left_stride, uint64_t right, int right_stride, const float *beta,
                   uint64_t out, int out_stride);

static int contexts[2], *current;

static int misbehaves(const char *how)
{
    const char *text = getenv("STUB_CUDA");
    return text && strcmp(text, how) == 0;
}

int cuInit(unsigned flags)
{
    if (misbehaves("abort"))
        abort();
    while (misbehaves("hang"))
        pause();
    return flags == 0 ? 0 : 1;
}

int cuDeviceGetCount(int *count)
{
    *count = misbehaves("none") ? 0 : 2;
    return 0;
}

int cuDeviceGet(int *device, int ordinal)
{
    *device = 100 + ordinal;
    return 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    *context = &contexts[device - 100];
    return 0;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    return device >= 100 ? 0 : 1;
}

int cuCtxSetCurrent(void *context)
{
    current = context;
    return 0;
}

int cuMemAlloc_v2(uint64_t *address, size_t bytes)
{
    *address = (uint64_t)(uintptr_t)malloc(bytes);
    return 0;
}

int cuMemFree_v2(uint64_t address)
{
    free((void *)(uintptr_t)address);
    return 0;
}

int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes)
{
    memcpy((void *)(uintptr_t)to, from, bytes);
    return 0;
}

int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes)
{
    memcpy(to, (void *)(uintptr_t)from, bytes);
    return 0;
}

int cuCtxSynchronize(void)
{
    return 0;
}

int cublasCreate_v2(void **handle)
{
    *handle = malloc(1);
    return 0;
}

int cublasDestroy_v2(void *handle)
{
    free(handle);
    return 0;
}

int cublasSgemm_v2(void *handle, int left_op, int right_op, int m, int n, int k, const float *alpha,
                   uint64_t left, int left_stride, uint64_t right, int right_stride, const float *beta,
                   uint64_t out, int out_stride)
{
    const float *a = (const float *)(uintptr_t)left, *b = (const float *)(uintptr_t)right;
    float *c = (float *)(uintptr_t)out;
    if (!handle || left_op || right_op || *alpha != 1 || *beta != 0)
        return 1;
    for (int column = 0; column < n; column++)
        for (int row = 0; row < m; row++) {
            float sum = 0;
            for (int i = 0; i < k; i++)
                sum += a[i * left_stride + row] * b[column * right_stride + i];
            c[column * out_stride + row] = sum;
        }
    if (current == &contexts[1] && misbehaves("wrong"))
        c[5] += 1;
    return 0;
}
