// Adds one to each of n numbers, and says for which CUDA it was made.
#include <cuda_runtime.h>

__global__ void add_one(float *numbers, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) numbers[i] += 1.0f;
}

extern "C" int run(float *numbers, int n) {
  float *there = nullptr;
  cudaError_t error = cudaMalloc(&there, n * sizeof(float));
  if (error != cudaSuccess) return error;
  cudaMemcpy(there, numbers, n * sizeof(float), cudaMemcpyHostToDevice);
  add_one<<<(n + 255) / 256, 256>>>(there, n);
  error = cudaMemcpy(numbers, there, n * sizeof(float), cudaMemcpyDeviceToHost);
  cudaFree(there);
  return error;
}

extern "C" int built_for(void) { return CUDART_VERSION; }
