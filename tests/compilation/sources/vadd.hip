// A kernel and the host function that starts it: enough for every stage of hipcc.
#include <hip/hip_runtime.h>

__global__ void vadd(const float *a, const float *b, float *sum, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        sum[i] = a[i] + b[i];
}

extern "C" void run(const float *a, const float *b, float *sum, int count)
{
    vadd<<<dim3((count + 63) / 64), dim3(64)>>>(a, b, sum, count);
}
