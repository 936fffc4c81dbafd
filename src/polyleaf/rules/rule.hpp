// What every device compiles is marked with this: small pure functions, free of any container and of standard headers.
#pragma once

#if defined(__CUDACC__)
#define POLYLEAF_RULE static __host__ __device__ inline
#else
#define POLYLEAF_RULE static inline
#endif
