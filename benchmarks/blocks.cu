// A source that takes some seconds for each arch: CUB's block primitives for two types.
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>

template <typename Value>
__global__ void sorted_sums(Value *values, Value *sums)
{
    constexpr int threads = 128;
    constexpr int each = 8;
    using Sort = cub::BlockRadixSort<Value, threads, each>;
    using Scan = cub::BlockScan<Value, threads>;
    using Reduce = cub::BlockReduce<Value, threads>;
    __shared__ union {
        typename Sort::TempStorage sort;
        typename Scan::TempStorage scan;
        typename Reduce::TempStorage reduce;
    } shared;

    Value own[each];
    for (int i = 0; i < each; ++i)
        own[i] = values[(blockIdx.x * threads + threadIdx.x) * each + i];
    Sort(shared.sort).Sort(own);
    __syncthreads();
    Scan(shared.scan).InclusiveSum(own, own);
    __syncthreads();
    Value sum = Reduce(shared.reduce).Sum(own);
    for (int i = 0; i < each; ++i)
        values[(blockIdx.x * threads + threadIdx.x) * each + i] = own[i];
    if (threadIdx.x == 0)
        sums[blockIdx.x] = sum;
}

template __global__ void sorted_sums(int *, int *);
template __global__ void sorted_sums(float *, float *);
